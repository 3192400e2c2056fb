import type { Purchase, purse } from './calls/purse.ts'
import {
  ApiError,
  ConnectionError,
  PurserError,
  RateLimitError,
  ServerError,
  TimeoutError,
} from './errors.ts'
import { type CallOptions, pause } from './http.ts'

/** Describes an HTTP request for which the seller may ask for a payment. */
export type PaidFetch = {
  /** Holds the highest price in USDC that the caller pays for the request. */
  maxAmount: string
  method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  headers?: Record<string, string>
  /**
   * Holds the body of the request. The client sends a request body unchanged if the body is a string, and otherwise as
   * JSON.
   */
  body?: unknown
  /** Holds the reason for the purchase, which tells the owner why the agent buys. */
  why?: string
  /**
   * Holds the idempotency key of the purchase. Two purchases with the same idempotency key never pay twice. The default
   * idempotency key is random. An {@link OpenPurchaseError} names the key.
   */
  key?: string
}

/**
 * Reports a purchase without a seller's response: the purchase was refused, the seller was not reached, or the result
 * is unknown. The service may also have left out the body of the response, because it is too large or not text
 * (docs/purse.md). The field `purchase` tells whether the money was spent.
 */
export class PurchaseError extends PurserError {
  override readonly name = 'PurchaseError'
  readonly purchase: Purchase

  constructor(purchase: Purchase) {
    const { state, detail, reason, purchaseId, response } = purchase
    const omitted = response?.bodyOmitted ? `the body was left out (${response.bodyOmitted})` : null
    super(`${state}: ${detail ?? reason ?? omitted ?? purchaseId}`)
    this.purchase = purchase
  }
}

/**
 * Reports a purchase that has not ended in time, or whose end the client could not read. The payment may have been made.
 * If you call `fetch` again with the same `key`, the service continues this purchase and pays nothing more.
 */
export class OpenPurchaseError extends PurserError {
  override readonly name = 'OpenPurchaseError'
  readonly key: string
  /** Holds the purchase as the client last read it. The value is `null` if no response of the service arrived. */
  readonly purchase: Purchase | null

  constructor(key: string, purchase: Purchase | null, cause: unknown) {
    super(`The purchase has not ended: call fetch again with the key ${key}`, { cause })
    this.key = key
    this.purchase = purchase
  }
}

const WAIT_S = 40
/** Lists the HTTP statuses of responses that have no body (Fetch Standard). */
const NO_BODY = [101, 204, 205, 304]

/**
 * Sets the default time limit of a purchase in milliseconds. It exceeds the 120 seconds for which a payment is valid.
 */
const PURCHASE_MAX_MS = 180_000
/**
 * Sets how many seconds before the end of a call's time limit the service must respond, so that its response can still
 * arrive.
 */
const ANSWER_MARGIN_S = 5
const AGAIN_MS = 1_000

/**
 * Makes a purchase, waits for its end, and returns the seller's response as a `Response`. After a failed call, the
 * client reads the purchase again, because the purchase may have been made. Otherwise a caller without an idempotency
 * key would repeat the whole call and pay twice.
 * @throws {PurchaseError} if the purchase has no response of the seller.
 * @throws {OpenPurchaseError} if the purchase does not end within `options.timeoutMs`, or if the caller aborts the call
 * while the purchase is open. The field `cause` then holds the reason of the abort.
 */
export async function paidFetch(
  calls: ReturnType<typeof purse>,
  url: string,
  { key = crypto.randomUUID(), ...payment }: PaidFetch,
  options: CallOptions = {},
): Promise<Response> {
  const deadlineMs = performance.now() + (options.timeoutMs ?? PURCHASE_MAX_MS)
  const body = { url, ...payment }
  let bought: Purchase | null = null
  let trouble: unknown
  // Tells whether the service may have accepted the purchase although its response was lost.
  let mayBeAccepted = false
  const failed = (error: unknown): unknown =>
    bought === null && !mayBeAccepted ? error : new OpenPurchaseError(key, bought, error)
  options.signal?.throwIfAborted()
  while (bought === null || bought.endedAt === null) {
    const startMs = performance.now()
    const leftMs = Math.ceil(deadlineMs - startMs)
    if (leftMs <= 0) throw failed(trouble ?? new TimeoutError('The purchase did not end in time'))
    const timeout = Math.min(WAIT_S, Math.max(0, Math.floor(leftMs / 1_000) - ANSWER_MARGIN_S))
    const waits = { ...options, timeoutMs: leftMs, timeout }
    try {
      bought =
        bought === null
          ? await calls.pay(body, { ...waits, idempotencyKey: key })
          : await calls.status(bought.purchaseId, waits)
      if (bought.endedAt !== null) break
    } catch (error) {
      mayBeAccepted ||= !isRefusal(error)
      if (options.signal?.aborted || !isPassing(error)) throw failed(error)
      trouble = error
    }
    // A service that is shutting down responds before the end of `timeout`. Without this pause, the client would then
    // repeat its call many times a second.
    const pauseMs = Math.min(AGAIN_MS, leftMs) - (performance.now() - startMs)
    if (pauseMs > 0) await pause(pauseMs, options.signal ?? new AbortController().signal)
    if (options.signal?.aborted) throw failed(options.signal.reason)
  }
  return responseOf(bought)
}

/**
 * Tells whether a repeated call may succeed after an error. The client does not repeat a call after status 500, because
 * such a fault of the service may last.
 */
const isPassing = (error: unknown): boolean =>
  error instanceof ConnectionError ||
  error instanceof TimeoutError ||
  error instanceof RateLimitError ||
  (error instanceof ServerError && error.status !== 500)

/** Tells whether the service has refused each attempt of a call. The service then has not accepted the purchase. */
const isRefusal = (error: unknown): boolean =>
  error instanceof ApiError && error.status >= 400 && error.status < 500 && !error.mayBeDone

function responseOf(bought: Purchase): Response {
  const { response } = bought
  if (response === null || response.status < 200 || response.status > 599)
    throw new PurchaseError(bought)
  const { body: text, bodyBase64, bodyOmitted } = response
  // An older version of the service sends no field `bodyBase64`, so the field may be absent.
  const bytes =
    bodyBase64 == null ? null : Uint8Array.from(atob(bodyBase64), (char) => char.charCodeAt(0))
  if (bytes === null && bodyOmitted !== null) throw new PurchaseError(bought)
  const body = bytes ?? text
  const isEncoded = bodyOmitted === 'unknown-encoding'
  const { status, statusText } = response
  const headers = new Headers()
  for (const [name, value] of Object.entries(response.headers)) {
    // The service has already decompressed the seller's body. Therefore the client leaves out the seller's headers
    // content-encoding and content-length, which no longer fit. Only a body in an unknown encoding is still encoded.
    if (!isEncoded && (name === 'content-encoding' || name === 'content-length')) continue
    for (const line of name === 'set-cookie' ? String(value).split('\n') : [String(value)]) {
      headers.append(name, byteString(line))
    }
  }
  headers.set('purser-purchase-id', bought.purchaseId)
  return new Response(NO_BODY.includes(status) ? null : body, {
    status,
    statusText: byteString(statusText),
    headers,
  })
}

/**
 * Writes each UTF-8 byte of a text as one character, in the way `fetch` reads headers. For any other text, `Headers`
 * and `Response` throw a TypeError.
 */
const byteString = (text: string): string =>
  Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join('')
