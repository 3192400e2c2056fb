/**
 * Starts the sellers of the client tests: unmodified x402 middleware with this service as facilitator, and the client
 * library's paywalls.
 */
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { HTTPFacilitatorClient as Facilitator, type HTTPFacilitatorClient } from '@x402/core/server'
import { ExactEvmScheme } from '@x402/evm/exact/server'
import { paymentMiddleware as expressV2, x402ResourceServer } from '@x402/express'
import { paymentMiddleware as honoV2 } from '@x402/hono'
import { withX402 } from '@x402/next'
import express, { type RequestHandler } from 'express'
import { Hono, type MiddlewareHandler } from 'hono'
import { NextRequest, NextResponse } from 'next/server'
import { paymentMiddleware as expressV1 } from 'x402-express'
import { paymentMiddleware as honoV1 } from 'x402-hono'
import { Purser } from '../../api/client/main.ts'
import { requirePayment as ourExpress } from '../../api/client/paywalls/expressPaywall.ts'
import { requirePayment as ourFetch } from '../../api/client/paywalls/fetchPaywall.ts'
import { requirePayment as ourHono } from '../../api/client/paywalls/honoPaywall.ts'
import { printed, startProcess } from '../support/process/process.ts'
import type { Agent } from '../support/service.ts'
import { NETWORK } from '../support/till/headers/x402v2.ts'
import { payTo } from '../support/till/till.ts'

type Shop = { service: { url: string }; seller: Agent }

/**
 * Describes a seller that a client test starts. `served` returns how often the seller's handler ran. The value of
 * `served` is null if the handler runs in another process.
 */
export type Seller = {
  url: string
  offers: readonly (1 | 2)[]
  served: (() => number) | null
  stop: () => Promise<unknown>
}

/**
 * Returns the settings with which a seller uses this service as its facilitator: authorization headers for each path of
 * the facilitator.
 */
export const facilitatorOf = ({ service, seller }: Shop) => {
  const headers = { Authorization: `Bearer ${seller.key}` }
  return {
    url: `${service.url}/v0/x402` as const,
    createAuthHeaders: async () => ({ verify: headers, settle: headers, supported: headers }),
  }
}

/** Creates the resource server of the x402 version 2 library. */
export const resourceServer = (
  shop: Shop,
  client: HTTPFacilitatorClient = new Facilitator(facilitatorOf(shop)),
) => new x402ResourceServer(client).register(NETWORK, new ExactEvmScheme())

const PRICE_V1 = { price: '$0.01', network: 'base-sepolia' as const }
const PRICE_V2 = { scheme: 'exact', price: '$0.01', network: NETWORK, payTo }

/**
 * Returns a route of x402 version 2 that has one price. The members of `extra` become part of the payment requirements.
 */
export const routeV2 = (extra?: Record<string, unknown>) => ({
  accepts: { ...PRICE_V2, ...(extra === undefined ? {} : { extra }) },
  description: 'A joke',
})

export const routesV2 = (extra?: Record<string, unknown>) => ({ 'GET /joke': routeV2(extra) })

/** Serves a short text with Express, behind a payment middleware. */
export async function onExpress(
  middleware: RequestHandler,
  offers: Seller['offers'],
): Promise<Seller> {
  const app = express()
  let served = 0
  app.use(middleware)
  app.get('/joke', (_request, response) => {
    served++
    response.send('ha')
  })
  const server = await new Promise<Server>((done) => {
    const started = app.listen(0, '127.0.0.1', () => done(started))
  })
  const { port } = server.address() as AddressInfo
  const stop = async () => server.close()
  return { url: `http://127.0.0.1:${port}/joke`, offers, served: () => served, stop }
}

function onHono(middleware: MiddlewareHandler, offers: Seller['offers']): Seller {
  let served = 0
  const app = new Hono()
  app.use(middleware)
  app.get('/joke', (context) => {
    served++
    return context.text('ha')
  })
  return { ...onFetch(app.fetch, offers), served: () => served }
}

function onFetch(
  handler: (request: Request) => Response | Promise<Response>,
  offers: Seller['offers'],
): Seller {
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: handler })
  const url = `http://127.0.0.1:${server.port}/joke`
  return { url, offers, served: null, stop: () => server.stop(true) }
}

function onNext(shop: Shop): Seller {
  let served = 0
  const handler = withX402(
    async () => {
      served++
      return NextResponse.json('ha')
    },
    routeV2() as never,
    resourceServer(shop) as never,
  )
  const seller = onFetch((request) => handler(new NextRequest(request)), [2])
  // NextRequest (of Next.js) changes 127.0.0.1 to localhost in the URL, so the test uses localhost.
  const url = seller.url.replace('127.0.0.1', 'localhost')
  return { ...seller, url, served: () => served }
}

async function onExample({ service, seller }: Shop): Promise<Seller> {
  const process = startProcess('examples/seller.ts', {
    KEY: seller.key,
    API: service.url,
    PORT: '0',
  })
  const [, url = ''] = await printed(process, /selling at (\S+)/)
  return { url, offers: [1, 2], served: null, stop: async () => process[Symbol.asyncDispose]() }
}

/** Starts all sellers of the client tests. */
export async function startSellers(shop: Shop): Promise<Record<string, Seller>> {
  const purser = new Purser({ apiKey: shop.seller.key, baseUrl: shop.service.url })
  const price = { purser, amount: '0.01' }
  const routesV1 = { 'GET /joke': PRICE_V1 }
  let served = 0
  const joke = ourFetch(price, () => {
    served++
    return new Response('ha')
  })
  return {
    'our express paywall': await onExpress(ourExpress(price), [1, 2]),
    'our hono paywall': onHono(ourHono(price) as never, [1, 2]),
    'our fetch paywall': { ...onFetch(joke, [1, 2]), served: () => served },
    'our paywall with versions [1]': await onExpress(ourExpress({ ...price, versions: [1] }), [1]),
    'challenge and redeem': await onExample(shop),
    '@x402/express': await onExpress(expressV2(routesV2() as never, resourceServer(shop)), [2]),
    '@x402/hono': onHono(honoV2(routesV2() as never, resourceServer(shop) as never) as never, [2]),
    '@x402/next': onNext(shop),
    'x402-express': await onExpress(
      expressV1(payTo, routesV1, facilitatorOf(shop) as never) as never,
      [1],
    ),
    'x402-hono': onHono(honoV1(payTo, routesV1, facilitatorOf(shop) as never) as never, [1]),
  }
}
