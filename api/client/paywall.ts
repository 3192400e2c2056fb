/** The common part of all paywalls. It answers a challenge, redeems a payment, or answers 503 when the outcome is unknown. */
import { ApiError, PaywallError, PurserError, RateLimitError, ServerError } from './errors.ts'
import type { Challenge, Grant } from './payments.ts'
import type { Purser } from './purser.ts'

export type PaywallOptions = {
  purser: Purser
  /** Decimal USDC, e.g. `0.01`. */
  amount: string
  /** The registered URL, as the payer sees it; default: the URL of the request. */
  resource?: string
  /** Shown to the payer, at most 500 characters. */
  description?: string
  /** Media type of the resource, e.g. `application/json`. */
  mimeType?: string
  /**
   * Trusts X-Forwarded-Proto and X-Forwarded-Host when `resource` is absent. Set it only behind a proxy that sets both:
   * otherwise any client can set them.
   */
  trustProxy?: boolean
}

export type Verdict =
  /** The payment has settled: serve, with `paymentResponse` as X-PAYMENT-RESPONSE. */
  | { kind: 'paid'; grant: Grant }
  /** Answer 402 with the challenge. */
  | { kind: 'required'; challenge: Challenge }
  /** Answer 503: the payment may have settled, and a 402 would make the payer pay again. */
  | { kind: 'unavailable'; retryAfterS: number }

export type Payment = { payment: string | object | null; resource: string }

/** On every answer of a paywall: a cache must not serve a paid resource without payment. */
export const NO_STORE = { 'cache-control': 'no-store' } as const

const RETRY_AFTER_S = 5
const UNANSWERED_MAX = 1_000
/** Longer payments are not stored: the service refuses them anyway. */
const PAYMENT_MAX_CHARS = 16_384

/**
 * Makes a paywall for one price.
 * @returns a function that judges one request; it throws {@link PaywallError}.
 */
export function createPaywall(options: PaywallOptions): (request: Payment) => Promise<Verdict> {
  const { purser, amount, description, mimeType } = options
  /**
   * Idempotency keys of payments without an answer to redeem. A payer who sends the payment again gets the lost answer
   * instead of `duplicate_settlement`.
   */
  const unanswered = new Map<string, string>()
  return async ({ payment, resource }) => {
    const price = { amount, resource, ...(description === undefined ? {} : { description }) }
    try {
      if (payment === null) {
        const challenge = await purser.payments.challenge({
          ...price,
          ...(mimeType === undefined ? {} : { mimeType }),
        })
        return { kind: 'required', challenge }
      }
    } catch (error) {
      return unavailable(error)
    }
    const identity = JSON.stringify([payment, resource])
    const idempotencyKey = unanswered.get(identity) ?? crypto.randomUUID()
    // Removed before use: of two concurrent requests with the same payment, only one gets the key.
    unanswered.delete(identity)
    try {
      // Without the signal of the request: a payer who disconnects does not stop the settlement.
      const result = await purser.payments.redeem(
        { paymentHeader: payment as string, ...price },
        { idempotencyKey },
      )
      return result.ok
        ? { kind: 'paid', grant: result }
        : { kind: 'required', challenge: result.requirement }
    } catch (error) {
      const verdict = unavailable(error)
      if (identity.length > PAYMENT_MAX_CHARS) return verdict
      if (unanswered.size >= UNANSWERED_MAX) unanswered.delete(unanswered.keys().next().value!)
      unanswered.set(identity, idempotencyKey)
      return verdict
    }
  }
}

/** The verdict for a failed call. @throws {PaywallError} for a configuration error of the seller. */
function unavailable(error: unknown): Verdict {
  if (!(error instanceof PurserError)) throw error
  const passes = error instanceof ServerError || error instanceof RateLimitError
  if (error instanceof ApiError && !passes) {
    throw new PaywallError(`The paywall is misconfigured: ${error.message}`, { cause: error })
  }
  const retryAfterS = passes ? error.retryAfterS : null
  return { kind: 'unavailable', retryAfterS: Math.ceil(retryAfterS ?? RETRY_AFTER_S) }
}

/** The body of a 503. */
export const UNAVAILABLE = {
  error: 'unavailable',
  message:
    'Payments are unavailable right now. Send the same payment again: it is charged only once.',
  status: 503,
} as const

/** The resource of a request: `options.resource`, else its URL. */
export function resourceOf(
  { resource, trustProxy = false }: PaywallOptions,
  requested: { protocol: string; host: string; path: string },
  header: (name: string) => string | null | undefined,
): string {
  if (resource !== undefined) return resource
  const forwarded = (name: string) =>
    trustProxy ? header(name)?.split(',')[0]?.trim() || undefined : undefined
  const protocol = forwarded('x-forwarded-proto') ?? requested.protocol
  return `${protocol}://${forwarded('x-forwarded-host') ?? requested.host}${requested.path}`
}
