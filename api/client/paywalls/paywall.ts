/** The common part of all paywalls. It answers a challenge, redeems a payment, or answers 503 when the outcome is unknown. */

import type { Challenge, Grant, RedeemResult } from '../calls/payments.ts'
import { ApiError, PaywallError, PurserError, RateLimitError, ServerError } from '../errors.ts'
import type { Purser } from '../purser.ts'
import { PaidAnswers, type Sale } from './paidAnswers.ts'
import { requestKey } from './paidRequest.ts'

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

export type Verdict<Answer> =
  /** The payment has settled: serve, with these headers. `sale` takes the answer, or hears that there was none. */
  | { kind: 'paid'; grant: Grant; headers: Record<string, string>; sale: Sale<Answer> }
  /** The same request had this answer: send it again. */
  | { kind: 'answered'; answer: Answer }
  /**
   * Serve nothing. 402 offers a price, or says that a payment is on its way. 503: the payment may have settled, and an
   * offer would make the payer pay again.
   */
  | Refused

export type Refused = {
  kind: 'refused'
  status: 402 | 503
  headers: Record<string, string>
  body: Record<string, unknown>
  /** The offer in version 1, also where the body has none; null for a refusal without an offer. */
  challenge: Omit<Challenge, 'headers'> | null
}

export type Payment = {
  payment: string | object | null
  resource: string
  /** All that the payer asks for beside the resource. Null: unknown, so that no answer is given twice. */
  asked: readonly unknown[] | null
}

/** On every answer of a paywall: a cache must not serve a paid resource without payment. */
const NO_STORE = { 'cache-control': 'no-store' } as const

const RETRY_AFTER_S = 5
/** Of all paywalls of the process: one that is made for each request must find the answers of the one before. */
const ANSWERS = new PaidAnswers<unknown>()

/**
 * Milliseconds after its grant in which a payment is granted again to the same request, by a process without its answer.
 * The payer chooses the window of an authorization: without this bound one payment could buy the news of a whole day.
 */
const AGAIN_MS = 10 * 60_000

/**
 * Makes a paywall for one price.
 * @returns a function that judges one request; it throws {@link PaywallError}.
 */
export function createPaywall<Answer>(
  options: PaywallOptions,
): (request: Payment) => Promise<Verdict<Answer>> {
  const { purser, amount, description, mimeType, versions = [1, 2] } = options
  const answers = ANSWERS as PaidAnswers<Answer>

  /** Without `sale` the answer is not stored, and a second such request is a `duplicate_settlement`. */
  const redeem = async (
    payment: string | object,
    price: Price,
    { idempotencyKey, sale }: { idempotencyKey: string; sale: Sale<Answer> },
  ): Promise<Verdict<Answer>> => {
    try {
      // Without the signal of the request: a payer who disconnects does not stop the settlement.
      const result = await purser.payments.redeem(
        { paymentHeader: payment as string, ...price },
        { idempotencyKey },
      )
      // An older service names no time: the difference is no number then.
      if (result.ok && Date.now() - Date.parse(result.grantedAt ?? '') > AGAIN_MS) {
        sale.sold(null)
        return redeem(payment, price, once())
      }
      if (result.ok) {
        return { kind: 'paid', grant: result, headers: { ...NO_STORE, ...result.headers }, sale }
      }
      sale.unsold()
      return refusal(result, versions)
    } catch (error) {
      sale.unsold()
      return unavailable(error)
    }
  }

  return async ({ payment, resource, asked }) => {
    const price = { amount, resource, ...(description === undefined ? {} : { description }) }
    if (payment === null) {
      try {
        const { headers, ...challenge } = await purser.payments.challenge({
          ...price,
          ...(mimeType === undefined ? {} : { mimeType }),
        })
        return offer(challenge, headers, versions)
      } catch (error) {
        return unavailable(error)
      }
    }
    // The price too: a key of another price would be a conflict.
    const key = asked === null ? null : await requestKey(payment, [price, ...asked])
    if (key === null) return redeem(payment, price, once())
    const before = await answers.ask(key)
    if (before.kind === 'answered') return before
    if (before.kind === 'open') return notYet(RETRY_AFTER_S)
    if (before.kind === 'spent') return redeem(payment, price, once())
    return redeem(payment, price, { idempotencyKey: key, sale: before.sale })
  }
}

type Price = { amount: string; resource: string; description?: string }

/** A redeem under a new key: the service grants the payment, or says `duplicate_settlement`. */
const once = () => ({
  idempotencyKey: crypto.randomUUID(),
  sale: { sold() {}, unsold() {} } satisfies Sale<unknown>,
})

/** A 402 with the challenge: version 1 in the body, version 2 in a header. */
function offer(
  challenge: Omit<Challenge, 'headers'>,
  headers: Record<string, string>,
  versions: readonly (1 | 2)[],
): Refused {
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

function refusal(result: Refusal, versions: readonly (1 | 2)[]): Refused {
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
function unavailable(error: unknown): Refused {
  if (!(error instanceof PurserError)) throw error
  const passes = error instanceof ServerError || error instanceof RateLimitError
  if (error instanceof ApiError && !passes) {
    throw new PaywallError(`The paywall is misconfigured: ${error.message}`, { cause: error })
  }
  return notYet(Math.ceil((passes ? error.retryAfterS : null) ?? RETRY_AFTER_S))
}

/** A 503: the same payment may be sent again after some seconds. */
const notYet = (retryAfterS: number): Refused => ({
  kind: 'refused',
  status: 503,
  headers: { ...NO_STORE, 'retry-after': String(retryAfterS) },
  body: UNAVAILABLE,
  challenge: null,
})

/** The body of a 503. */
const UNAVAILABLE = {
  error: 'unavailable',
  message:
    'Payments are unavailable right now. Send the same payment again: it is charged only once.',
  status: 503,
} as const
