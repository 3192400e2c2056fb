/**
 * Sells a resource with the hono paywall. Set the environment variable KEY to a project key with `payments:accept`, and
 * API to the URL of the service.
 */
import { Hono } from 'hono'
import { Purser } from 'purser/client'
import { requirePayment } from 'purser/client/hono'

const { KEY = '', API = 'http://127.0.0.1:3000', PORT = '4002' } = process.env
const purser = new Purser({ apiKey: KEY, baseUrl: API })

const app = new Hono()
app.get('/weather', requirePayment({ purser, amount: '0.01' }), (context) =>
  context.text('The weather is fine.\n'),
)

const server = Bun.serve({ port: Number(PORT), hostname: '127.0.0.1', fetch: app.fetch })
const resource = `http://127.0.0.1:${server.port}/weather`
await purser.sellers.put({ urlPattern: resource, priceUsdc: '0.01' })
console.log(`selling at ${resource}`)
