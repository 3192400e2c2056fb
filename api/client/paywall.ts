/** What every paywall does: no payment, ask for one; a payment, redeem it; and say nothing of money while in doubt. */
import { ApiError, PaywallError, PurserError, RateLimitError, ServerError } from './errors.ts'
import type { Challenge, Grant } from './payments.ts'
import type { Purser } from './purser.ts'

export type PaywallOptions = {
  purser: Purser
  /** Decimal USDC, e.g. `0.01`. */
  amount: string
  /** The full URL of what is paid for, as the payer sees it; read off the request when left out. */
  resource?: string
  /** Shown to the payer, at most 500 characters. */
  description?: string
  /** Of what is sold, e.g. `application/json`. */
  mimeType?: string
  /**
   * Whether X-Forwarded-Proto and X-Forwarded-Host are believed when `resource` is left out. Only behind a proxy that
   * sets both; without one, anyone can set them.
   */
  trustProxy?: boolean
}

export type Verdict =
  /** The money has moved: serve, with `paymentResponse` as X-PAYMENT-RESPONSE. */
  | { kind: 'paid'; grant: Grant }
  /** Answer 402 with the challenge. */
  | { kind: 'required'; challenge: Challenge }
  /** Answer 503: a 402 now would make the payer pay a second time for what may be paid already. */
  | { kind: 'unavailable'; retryAfterS: number }

export type Payment = { payment: string | object | null; resource: string }

/** Headers that no answer of a paywall goes without: what was paid for once must not be served from a cache. */
export const NO_STORE = { 'cache-control': 'no-store' } as const

const RETRY_AFTER_S = 5
const UNANSWERED_MAX = 1_000
/** Longer payments are not remembered: the service refuses them in any case. */
const PAYMENT_MAX_CHARS = 16_384

/**
 * A paywall for one price.
 * @returns judges one request; it throws {@link PaywallError}.
 */
export function createPaywall(options: PaywallOptions): (request: Payment) => Promise<Verdict> {
  const { purser, amount, description, mimeType } = options
  /**
   * Payments whose redeem had no answer, and the keys those were tried under: the payer who comes again is recognised,
   * and gets the answer that was lost instead of "duplicate".
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
    // Taken out before it is used: of two who bring the same payment at once, one has the key.
    unanswered.delete(identity)
    try {
      // Without the request's own signal: a payer who hangs up does not stop his money.
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

/** The verdict for a call without an answer. @throws {PaywallError} for what is the seller's own mistake. */
function unavailable(error: unknown): Verdict {
  if (!(error instanceof PurserError)) throw error
  const passes = error instanceof ServerError || error instanceof RateLimitError
  if (error instanceof ApiError && !passes) {
    throw new PaywallError(`The paywall is set up wrongly: ${error.message}`, { cause: error })
  }
  const retryAfterS = passes ? error.retryAfterS : null
  return { kind: 'unavailable', retryAfterS: Math.ceil(retryAfterS ?? RETRY_AFTER_S) }
}

/** The body of a 503. */
export const UNAVAILABLE = {
  error: 'unavailable',
  message:
    'Payments cannot be taken right now. Nothing new was charged: send the same payment again.',
  status: 503,
} as const

/** The resource of a request, from its parts as the server sees them. */
export function resourceOf(
  { resource, trustProxy = false }: PaywallOptions,
  seen: { protocol: string; host: string; path: string },
  header: (name: string) => string | null | undefined,
): string {
  if (resource !== undefined) return resource
  const forwarded = (name: string) =>
    trustProxy ? header(name)?.split(',')[0]?.trim() || undefined : undefined
  const protocol = forwarded('x-forwarded-proto') ?? seen.protocol
  return `${protocol}://${forwarded('x-forwarded-host') ?? seen.host}${seen.path}`
}
