/** Responds to the calls of a paywall over HTTP as the service would, so that a test can change each response. */
import type { Challenge, Grant, RedeemResult } from '../../../../api/client/calls/payments.ts'
import { Purser } from '../../../../api/client/purser.ts'
import { payTo, requirement } from './payment.ts'
import { encodeHeader } from './x402v2.ts'

type Call = { path: string; body: Record<string, unknown>; key: string | null }

export const RESOURCE = 'https://shop.example/joke'
export const REQUIRED = { x402Version: 2, accepts: [{ amount: '10000' }] }
export const SETTLED = { success: true, payer: payTo }

/** Holds the challenge that the service returns for every price. */
export const CHALLENGE: Challenge = {
  x402Version: 1,
  error: 'X-PAYMENT header is required',
  accepts: [{ ...requirement, resource: RESOURCE } as Challenge['accepts'][0]],
  headers: { 'PAYMENT-REQUIRED': encodeHeader(REQUIRED) },
}

/** Holds response headers that some caches obey instead of Cache-Control (RFC 9213, nginx, and hosts of the edge). */
export const CACHED = {
  'cdn-cache-control': 'max-age=600',
  'vercel-cdn-cache-control': 'max-age=600',
  'x-litespeed-cache-control': 'public, max-age=600',
  'surrogate-control': 'max-age=600',
  'edge-control': 'cache-maxage=10m',
  'x-accel-expires': '600',
}

/**
 * Returns a payment header that differs from all earlier ones. The payment's authorization expires in one minute.
 */
export const newPaymentHeader = (): string =>
  encodeHeader({
    payload: {
      authorization: {
        validBefore: String(Math.floor(Date.now() / 1_000) + 60),
        nonce: crypto.randomUUID(),
      },
    },
  })

export const grant = (changes: Partial<Grant> = {}) => ({
  ok: true as const,
  paymentResponse: encodeHeader(SETTLED),
  txHash: '0xab',
  payer: payTo,
  paymentId: 'pay_1',
  paymentInId: 'pay_1',
  grantedAt: new Date().toISOString(),
  headers: { 'PAYMENT-RESPONSE': encodeHeader(SETTLED) },
  ...changes,
})

type Refusal = Extract<RedeemResult, { ok: false }>

export function refusal(reason: string, changes: Partial<Refusal> = {}): Refusal {
  const { headers: _, ...offer } = CHALLENGE
  return {
    ok: false,
    stage: 'settle',
    reason,
    message: `The payment is refused: ${reason}`,
    requirement: { ...offer, error: reason },
    headers: { 'PAYMENT-REQUIRED': encodeHeader({ ...REQUIRED, error: reason }) },
    ...changes,
  }
}

export type ShopService = {
  purser: Purser
  /** Lists the calls that reached the service. */
  calls: Call[]
  /** Lists the idempotency keys of the redeem calls (which take a payment). */
  keys(): (string | null)[]
  /** Replaces the response of the service to each call, until the test sets it to null. */
  answer: ((call: Call) => unknown) | null
  /** Responds to a call as the service does while the field `answer` is null. */
  usual: (call: Call) => unknown
}

/**
 * Starts a service that accepts each payment once. A second redeem call (which takes a payment) with the same
 * idempotency key gets the same response again, and a call with another key gets `duplicate_settlement`.
 */
export function shopService(retries = 0): ShopService {
  const granted = new Map<string, string | null>()
  const usual = ({ path, body, key }: Call) => {
    if (path === '/v0/payments/challenge') return CHALLENGE
    const payment = JSON.stringify(body.paymentHeader)
    if (!granted.has(payment)) granted.set(payment, key)
    return granted.get(payment) === key ? grant() : refusal('duplicate_settlement')
  }
  const service: ShopService = {
    calls: [],
    keys: () =>
      service.calls.filter(({ path }) => path === '/v0/payments/redeem').map(({ key }) => key),
    answer: null,
    usual,
    purser: new Purser({
      apiKey: `loid-${'0'.repeat(64)}`,
      retries,
      fetch: async (request) => {
        const call = {
          path: new URL(request.url).pathname,
          body: (await request.json()) as Record<string, unknown>,
          key: request.headers.get('idempotency-key'),
        }
        service.calls.push(call)
        const answer = await (service.answer ?? usual)(call)
        return answer instanceof Response ? answer : Response.json(answer)
      },
    }),
  }
  return service
}
