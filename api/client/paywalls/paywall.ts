/**
 * Holds the code that all paywalls share. A paywall sends a challenge, redeems a payment (lets the service settle it),
 * or returns 503 if it does not know whether a payment has settled.
 */

import type { Challenge, Grant, RedeemResult } from '../calls/payments.ts'
import { ApiError, PaywallError, PurserError, RateLimitError, ServerError } from '../errors.ts'
import type { Purser } from '../purser.ts'
import { lastOffer, storeOffer } from './lastOffers.ts'
import { OpenKeys } from './openKeys.ts'
import { PaidAnswers, type Sale } from './paidAnswers.ts'
import { isReadable, requestKey } from './paidRequest.ts'

export type PaywallOptions = {
  purser: Purser
  /** Sets the price of the paid resource in decimal USDC, such as `0.01`. */
  amount: string
  /**
   * Holds the registered URL of the paid resource, as the payer sees it. The default resource is the URL of the
   * request.
   */
  resource?: string
  /** Describes the paid resource for the payer, in at most 500 characters. */
  description?: string
  /** Holds the media type of the paid resource, such as `application/json`. */
  mimeType?: string
  /**
   * Lists the x402 versions that a 402 response offers, by default both. The paywall accepts a payment of either
   * version. A wallet of `@x402/fetch` that registered only version 1 needs `[1]`, because it ignores the response body
   * if the response has a header of version 2.
   */
  versions?: readonly (1 | 2)[]
}

export type Verdict<Answer> =
  /**
   * Means that the payment has settled, so the seller serves the paid resource with these headers. The seller then
   * passes the response to `sale`, or tells `sale` that no response was sent.
   */
  | { kind: 'paid'; grant: Grant; headers: Record<string, string>; sale: Sale<Answer> }
  /** Means that the paywall already answered an equal request, so the seller sends the same response again. */
  | { kind: 'answered'; answer: Answer }
  /**
   * Means that the seller returns a refusal without the paid content. A 402 response offers a price, or says that a
   * settlement is in progress. A 503 response offers no price, because the payment may have settled, and a new offer
   * could make the payer pay twice.
   */
  | Refused

export type Refused = {
  kind: 'refused'
  status: 402 | 503
  headers: Record<string, string>
  body: Record<string, unknown>
  /**
   * Holds the paywall's offer in the form of x402 version 1, even if the response body holds no offer. The value is
   * `null` if the refusal offers no price.
   */
  challenge: Omit<Challenge, 'headers'> | null
}

export type Payment = {
  payment: string | object | null
  resource: string
  /**
   * Holds the parts of the request, apart from the resource, that determine the content of the response. If `asked` is
   * `null`, the paywall does not know these parts. It then never sends a stored response to a repeated request.
   */
  asked: readonly unknown[] | null
  /**
   * Holds the parts of the request that the paywall knows if the body is unknown, so that `asked` is `null`. Until the
   * request is sold, the paywall redeems a repeated request with equal parts under the same idempotency key.
   */
  known?: readonly unknown[]
}

/**
 * Holds a header that every response of a paywall has. A cache must not store the response, because it would serve the
 * paid resource to clients that have not paid.
 */
const NO_STORE = { 'cache-control': 'no-store' } as const

const RETRY_AFTER_S = 5
/**
 * Sets the maximum number of milliseconds for which the paywall waits for an offer of the service. Anybody can send
 * requests without a payment at no cost. Therefore such a request must not occupy the seller's server for the minute of
 * a rate limit.
 */
const OFFER_WAIT_MS = 10_000
/**
 * Sets the longest Retry-After of the service, in milliseconds, for which a paid request waits. The wait is short,
 * because a waiting request keeps its body of up to 1 MB in memory. With waits of up to a minute, 600 worthless
 * payments held 697 MB for half a minute.
 */
const REDEEM_WAIT_MS = 2_000
/**
 * Sets how many redeem calls of all paywalls may be pending in a process. A settlement takes a few seconds, so this
 * number allows about 100 payments a second.
 */
const REDEEMS_MAX = 500
let pendingRedeems = 0
/**
 * Holds the responses to paid requests for all paywalls of the process. A seller may create a new paywall for each
 * request. Each paywall must then find the responses that earlier paywalls have sent.
 */
const ANSWERS = new PaidAnswers<unknown>()
/** Holds, for all paywalls of the process, the idempotency keys of paid requests with an unknown body. */
const OPEN_KEYS = new OpenKeys()

/**
 * Sets for how many milliseconds a payer may repeat a paid request without a new payment if the process has lost the
 * response. The payer chooses the time window of an authorization, so without this limit one payment could buy new
 * content for a whole day.
 */
const AGAIN_MS = 10 * 60_000

/**
 * Creates a paywall for one price.
 * @returns a function that decides whether one request is paid. The returned function throws {@link PaywallError} if
 * the seller has configured the paywall wrongly.
 */
export function createPaywall<Answer>(
  options: PaywallOptions,
): (request: Payment) => Promise<Verdict<Answer>> {
  const { purser, amount, description, mimeType, versions = [1, 2] } = options
  const answers = ANSWERS as PaidAnswers<Answer>

  /**
   * Redeems the payment of a request at the service. If the seller does not call `sale`, the paywall does not store the
   * response. A second equal request then gets `duplicate_settlement`.
   */
  const redeem = async (
    payment: string | object,
    price: Price,
    { idempotencyKey, sale, isNew, dropKey }: Redeeming<Answer>,
  ): Promise<Verdict<Answer>> => {
    if (pendingRedeems >= REDEEMS_MAX) {
      if (isNew) dropKey?.()
      sale.unsold()
      return notYet(RETRY_AFTER_S, BUSY)
    }
    try {
      // The redeem call does not get the abort signal of the payer's request, so that the settlement continues even if
      // the payer disconnects.
      const call = purser.payments.redeem(
        { paymentHeader: payment as string, ...price },
        { idempotencyKey, retryAfterMaxMs: REDEEM_WAIT_MS },
      )
      pendingRedeems++
      const result = await call.finally(() => pendingRedeems--)
      // A service of an older version returns no `grantedAt`. The computed age of its grant (the permission to serve
      // the resource) is then NaN, so the grant never counts as too old.
      const nowMs = Date.now() - purser.clockAheadMs
      const agoMs = result.ok && !isNew ? nowMs - Date.parse(result.grantedAt ?? '') : 0
      if (agoMs > AGAIN_MS) {
        sale.sold(null)
        return redeem(payment, price, once())
      }
      if (result.ok) {
        return { kind: 'paid', grant: result, headers: { ...NO_STORE, ...result.headers }, sale }
      }
      // The paywall keeps the idempotency key of a payment whose settlement is pending, because the service may still
      // grant this payment, but only under the same key.
      if (result.reason !== 'settlement_pending') dropKey?.()
      sale.unsold()
      return refusal(result, versions)
    } catch (error) {
      // The paywall forgets a new idempotency key after a 429. Otherwise worthless payments would fill the map of
      // idempotency keys while the service refuses the calls. The paywall keeps the key if the service may have granted
      // the payment in an earlier attempt.
      if (isNew && error instanceof RateLimitError && !error.mayBeDone) dropKey?.()
      sale.unsold()
      return unavailable(error)
    }
  }

  /**
   * Redeems the payment of a request whose body is unknown. Requests whose other parts are equal run one after another.
   * After the seller has sold one of them, each of the others gets a new idempotency key, so that the service refuses
   * it with `duplicate_settlement`.
   */
  const redeemUnknown = async (
    payment: string | object,
    price: Price,
    known: readonly unknown[],
  ): Promise<Verdict<Answer>> => {
    const request = await requestKey(payment, ['unknown body', price, ...known])
    if (request === null) return redeem(payment, price, once())
    const before = await answers.ask(request)
    if (before.kind === 'open') return notYet(RETRY_AFTER_S)
    if (before.kind !== 'first') return redeem(payment, price, once())
    const drop = () => OPEN_KEYS.drop(request)
    let hasEnded = false
    const atEnd = (end: () => void) => () => {
      if (!hasEnded) end()
      hasEnded = true
    }
    const sold = atEnd(() => {
      drop()
      before.sale.sold(null)
    })
    // The request counts as sold even if the payer leaves before the end of the response, because the payer may have
    // read nearly all of it. A repeated request could have another body, and would get a second response for the same
    // payment.
    const sale = { sold, unsold: atEnd(before.sale.unsold), left: sold }
    return redeem(payment, price, { ...OPEN_KEYS.take(request), sale, dropKey: drop })
  }

  return async ({ payment, resource, asked, known }) => {
    const price = { amount, resource, ...(description === undefined ? {} : { description }) }
    if (payment === null || !isReadable(payment)) {
      const wanted = { ...price, ...(mimeType === undefined ? {} : { mimeType }) }
      try {
        const challenge = await purser.payments.challenge(wanted, { timeoutMs: OFFER_WAIT_MS })
        storeOffer(purser, wanted, challenge)
        return offer(challenge, versions)
      } catch (error) {
        const refused = unavailable(error)
        const last = lastOffer(purser, wanted)
        return last === null ? refused : offer(last, versions)
      }
    }
    // The idempotency key of a redeem call also depends on the price. Otherwise a request after a change of the price
    // would cause a 409 conflict.
    if (asked === null && known !== undefined) return redeemUnknown(payment, price, known)
    const key = asked === null ? null : await requestKey(payment, [price, ...asked])
    if (key === null) return redeem(payment, price, once())
    const before = await answers.ask(key)
    if (before.kind === 'answered') return before
    if (before.kind === 'open') return notYet(RETRY_AFTER_S)
    if (before.kind === 'spent') return redeem(payment, price, once())
    return redeem(payment, price, { idempotencyKey: key, sale: before.sale, isNew: false })
  }
}

type Price = { amount: string; resource: string; description?: string }

type Redeeming<Answer> = {
  idempotencyKey: string
  sale: Sale<Answer>
  /**
   * Means that no earlier call used the idempotency key, so that a grant (the permission to serve the resource) under
   * this key is new.
   */
  isNew: boolean
  /** Forgets the idempotency key, because the service has granted nothing under this key and never will. */
  dropKey?: () => void
}

/**
 * Makes the options of a call that redeems a payment under a new idempotency key. The service then grants the payment
 * or returns `duplicate_settlement`.
 */
const once = () => ({
  idempotencyKey: crypto.randomUUID(),
  sale: { sold() {}, unsold() {}, left() {} } satisfies Sale<unknown>,
  isNew: true,
})

type Offer = Omit<Challenge, 'headers'> & { headers: Record<string, string> }

/** Returns a 402 response with the payment challenge, in the body for x402 version 1 and in a header for version 2. */
function offer({ headers, ...challenge }: Offer, versions: readonly (1 | 2)[]): Refused {
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
  if (reason !== 'settlement_pending') return offer({ ...requirement, headers }, versions)
  // A 402 response for a pending settlement holds no payment offer, because a wallet would sign the offer and pay
  // twice.
  return {
    kind: 'refused',
    status: 402,
    headers: { ...NO_STORE, ...headers, 'retry-after': String(RETRY_AFTER_S) },
    body: { error: reason, message, status: 402, paymentId, ...(txHash && { txHash }) },
    challenge: null,
  }
}

/**
 * Returns the paywall's refusal after a call of the service failed. @throws {PaywallError} if the seller has configured
 * the paywall wrongly.
 */
function unavailable(error: unknown): Refused {
  if (!(error instanceof PurserError)) throw error
  const passes = error instanceof ServerError || error instanceof RateLimitError
  if (error instanceof ApiError && !passes) {
    throw new PaywallError(`The paywall is misconfigured: ${error.message}`, { cause: error })
  }
  return notYet(Math.ceil((passes ? error.retryAfterS : null) ?? RETRY_AFTER_S))
}

/** Returns the paywall's refusal with status 503. The payer may send the same payment again in some seconds. */
const notYet = (retryAfterS: number, body: Refused['body'] = UNAVAILABLE): Refused => ({
  kind: 'refused',
  status: 503,
  headers: { ...NO_STORE, 'retry-after': String(retryAfterS) },
  body,
  challenge: null,
})

/** Holds the body of a 503 response of a paywall. */
const UNAVAILABLE = {
  error: 'unavailable',
  message:
    'Payments are unavailable right now. Send the same payment again: it is charged only once.',
  status: 503,
} as const

/** Holds the body of a 503 response while too many calls that redeem payments are pending. */
const BUSY = {
  ...UNAVAILABLE,
  message: `The seller is redeeming ${REDEEMS_MAX} payments right now. Send the same payment again: it is charged only once.`,
} as const
