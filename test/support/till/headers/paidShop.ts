/** Starts the web server of a seller on the devnet, with a paywall that asks this service about payments. */
import { requirePayment } from '../../../../api/client/paywalls/fetchPaywall.ts'
import { Purser } from '../../../../api/client/purser.ts'
import type { Agent } from '../../service.ts'
import { startTestTill, type TestTill } from '../till.ts'

/**
 * Starts a till (the seller’s part of the service) on the embedded devnet, with workers for webhooks and for trials
 * (test purchases).
 */
export const startDevnetTill = (): Promise<TestTill> =>
  startTestTill({
    env: { RPC_URL: '', ALLOW_PRIVATE_NETWORKS: 'true' },
    parts: { pools: ['webhooks'] },
  })

export type PaidShop = Disposable & {
  url: string
  /** Holds the payment headers in the order in which they arrived, with repeats. */
  paid: string[]
  /** Holds the bodies of the webhook requests. */
  hooks: string[]
}

/** Sells the resource `/weather` for 0.01 USDC, and receives webhook requests at `/hook`. */
export function startPaidShop(till: TestTill, seller: Agent): PaidShop {
  const paid: string[] = []
  const hooks: string[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 120,
    async fetch(request): Promise<Response> {
      if (new URL(request.url).pathname === '/hook') {
        hooks.push(await request.text())
        return new Response('ok')
      }
      const header = request.headers.get('x-payment') ?? request.headers.get('payment-signature')
      if (header !== null) paid.push(header)
      return paywall(request)
    },
  })
  const url = `http://127.0.0.1:${server.port}/weather`
  const purser = new Purser({ baseUrl: till.service.url, apiKey: seller.key })
  const paywall = requirePayment(
    { purser, amount: '0.01', resource: url },
    () => new Response('fine weather'),
  )
  return {
    url,
    paid,
    hooks,
    [Symbol.dispose]: () => void server.stop(true),
  }
}
