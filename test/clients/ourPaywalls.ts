/**
 * Starts a seller behind each HTTP paywall of the client library. All these sellers use the same handler.
 */
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { Hono } from 'hono'
import { requirePayment as expressPaywall } from '../../api/client/paywalls/expressPaywall.ts'
import { requirePayment as fetchPaywall } from '../../api/client/paywalls/fetchPaywall.ts'
import { requirePayment as honoPaywall } from '../../api/client/paywalls/honoPaywall.ts'
import type { HttpPaywallOptions } from '../../api/client/paywalls/httpPaywall.ts'

type Shop = AsyncDisposable & { url: string }

/** Returns the resource that the seller sells, for a request with an HTTP method, a path with query, and a body. */
export type Sale = (request: {
  method: string
  target: string
  body: string
}) => Response | Promise<Response>

export const OUR_PAYWALLS = {
  async express(options: HttpPaywallOptions, sell: Sale): Promise<Shop> {
    const app = express()
    app.use(express.json())
    app.use('/joke', expressPaywall(options), async (request, response) => {
      const body = request.body === undefined ? '' : JSON.stringify(request.body)
      const sold = await sell({ method: request.method, target: request.originalUrl, body })
      response.status(sold.status).set(Object.fromEntries(sold.headers))
      // The handler writes the response in two parts, as a stream does.
      const text = await sold.text()
      response.write(text.slice(0, 1))
      response.end(text.slice(1))
    })
    const server = await new Promise<Server>((done) => {
      const started = app.listen(0, '127.0.0.1', () => done(started))
    })
    const { port } = server.address() as AddressInfo
    return shop(port, async () => server.close())
  },
  async hono(options: HttpPaywallOptions, sell: Sale): Promise<Shop> {
    const app = new Hono()
    app.use('/joke', honoPaywall(options))
    app.all('/joke', async ({ req }) => sell(await asked(req.raw)))
    return serve(app.fetch)
  },
  async fetch(options: HttpPaywallOptions, sell: Sale): Promise<Shop> {
    return serve(fetchPaywall(options, async (request) => sell(await asked(request))))
  },
} as const

async function asked(request: Request) {
  const { pathname, search } = new URL(request.url)
  return { method: request.method, target: pathname + search, body: await request.text() }
}

function serve(handler: (request: Request) => Response | Promise<Response>): Shop {
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: (request) => handler(request),
    error: () => new Response('broken', { status: 500 }),
  })
  return shop(server.port!, () => server.stop(true))
}

const shop = (port: number, stop: () => Promise<unknown>): Shop => ({
  url: `http://127.0.0.1:${port}/joke`,
  async [Symbol.asyncDispose]() {
    await stop()
  },
})
