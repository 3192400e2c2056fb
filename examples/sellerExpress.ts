/**
 * Sells a resource with the express paywall. Set the environment variable KEY to a project key with `payments:accept`,
 * and API to the URL of the service.
 */
import type { AddressInfo } from 'node:net'
import express from 'express'
import { Purser } from 'purser/client'
import { requirePayment } from 'purser/client/express'

const { KEY = '', API = 'http://127.0.0.1:3000', PORT = '4001' } = process.env
const purser = new Purser({ apiKey: KEY, baseUrl: API })

const app = express()
app.get('/weather', requirePayment({ purser, amount: '0.01' }), (_request, response) => {
  response.send('The weather is fine.\n')
})

const server = app.listen(Number(PORT), '127.0.0.1', async () => {
  const resource = `http://127.0.0.1:${(server.address() as AddressInfo).port}/weather`
  await purser.sellers.put({ urlPattern: resource, priceUsdc: '0.01' })
  console.log(`selling at ${resource}`)
})
