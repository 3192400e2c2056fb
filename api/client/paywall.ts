/** The common part of all paywalls. It answers a challenge, redeems a payment, or answers 503 when the outcome is unknown. */
import { ApiError, PaywallError, PurserError, RateLimitError, ServerError } from './errors.ts'
import type { Challenge, Grant, RedeemResult } from './payments.ts'
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
   * The versions of x402 that a 402 offers; default both. A payment of either version is taken. A wallet of
   * `@x402/fetch` that registered only version 1 needs `[1]`: it reads no body beside a header of version 2.
   */
  versions?: readonly (1 | 2)[]
}

export type Verdict =
  /** The payment has settled: serve, with these headers. */
  | { kind: 'paid'; grant: Grant; headers: Record<string, string> }
  /**
   * Serve nothing. 402 offers a price, or says that a payment is on its way. 503: the payment may have settled, and an
   * offer would make the payer pay again.
   */
  | {
      kind: 'refused'
      status: 402 | 503
      headers: Record<string, string>
      body: Record<string, unknown>
      /** The offer in version 1, also where the body has none; null for a refusal without an offer. */
      challenge: Omit<Challenge, 'headers'> | null
    }

export type Payment = { payment: string | object | null; resource: string }

/** On every answer of a paywall: a cache must not serve a paid resource without payment. */
const NO_STORE = { 'cache-control': 'no-store' } as const

const RETRY_AFTER_S = 5
const UNANSWERED_MAX = 1_000
/** Longer payments are not stored: the service refuses them anyway. */
const PAYMENT_MAX_CHARS = 16_384

/**
 * Makes a paywall for one price.
 * @returns a function that judges one request; it throws {@link PaywallError}.
 */
export function createPaywall(options: PaywallOptions): (request: Payment) => Promise<Verdict> {
  const { purser, amount, description, mimeType, versions = [1, 2] } = options
  /**
   * Idempotency keys of payments without an answer to redeem. A payer who sends the payment again gets the lost answer
   * instead of `duplicate_settlement`.
   */
  const unanswered = new Map<string, string>()
  return async ({ payment, resource }) => {
    const price = { amount, resource, ...(description === undefined ? {} : { description }) }
    try {
      if (payment === null) {
        const { headers, ...challenge } = await purser.payments.challenge({
          ...price,
          ...(mimeType === undefined ? {} : { mimeType }),
        })
        return offer(challenge, headers, versions)
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
      if (!result.ok) return refusal(result, versions)
      return { kind: 'paid', grant: result, headers: { ...NO_STORE, ...result.headers } }
    } catch (error) {
      const verdict = unavailable(error)
      if (identity.length > PAYMENT_MAX_CHARS) return verdict
      if (unanswered.size >= UNANSWERED_MAX) unanswered.delete(unanswered.keys().next().value!)
      unanswered.set(identity, idempotencyKey)
      return verdict
    }
  }
}

/** A 402 with the challenge: version 1 in the body, version 2 in a header. */
function offer(
  challenge: Omit<Challenge, 'headers'>,
  headers: Record<string, string>,
  versions: readonly (1 | 2)[],
): Verdict {
  const { 'PAYMENT-REQUIRED': required, ...others } = headers
  const isTwo = required !== undefined && versions.includes(2)
  return {
    kind: 'refused',
    status: 402,
    headers: { ...NO_STORE, ...others, ...(isTwo ? { 'PAYMENT-REQUIRED': required } : {}) },
    body: versions.includes(1) ? challenge : {},
    challenge,
  }
}

type Refusal = Extract<RedeemResult, { ok: false }>

function refusal(result: Refusal, versions: readonly (1 | 2)[]): Verdict {
  const { reason, message, requirement, headers, paymentId, txHash } = result
  if (reason !== 'settlement_pending') return offer(requirement, headers, versions)
  // Without an offer: a wallet would sign, and pay, again.
  return {
    kind: 'refused',
    status: 402,
    headers: { ...NO_STORE, ...headers, 'retry-after': String(RETRY_AFTER_S) },
    body: { error: reason, message, status: 402, paymentId, ...(txHash && { txHash }) },
    challenge: null,
  }
}

/** The verdict for a failed call. @throws {PaywallError} for a configuration error of the seller. */
function unavailable(error: unknown): Verdict {
  if (!(error instanceof PurserError)) throw error
  const passes = error instanceof ServerError || error instanceof RateLimitError
  if (error instanceof ApiError && !passes) {
    throw new PaywallError(`The paywall is misconfigured: ${error.message}`, { cause: error })
  }
  const retryAfterS = Math.ceil((passes ? error.retryAfterS : null) ?? RETRY_AFTER_S)
  return {
    kind: 'refused',
    status: 503,
    headers: { ...NO_STORE, 'retry-after': String(retryAfterS) },
    body: UNAVAILABLE,
    challenge: null,
  }
}

/** The body of a 503. */
const UNAVAILABLE = {
  error: 'unavailable',
  message:
    'Payments are unavailable right now. Send the same payment again: it is charged only once.',
  status: 503,
} as const
