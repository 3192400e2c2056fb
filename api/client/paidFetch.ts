import type { Purchase, purse } from './calls/purse.ts'
import { PurserError } from './errors.ts'
import type { CallOptions } from './http.ts'

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
   * idempotency key is random.
   */
  key?: string
}

/**
 * Reports a purchase without a seller's response: the purchase was refused, the seller was not reached, or the outcome
 * is unknown. The field `purchase` tells whether the money of the purchase was spent.
 */
export class PurchaseError extends PurserError {
  override readonly name = 'PurchaseError'
  readonly purchase: Purchase

  constructor(purchase: Purchase) {
    super(`${purchase.state}: ${purchase.detail ?? purchase.reason ?? purchase.purchaseId}`)
    this.purchase = purchase
  }
}

const WAIT_S = 40
/** Lists the HTTP statuses of responses that have no body (Fetch Standard). */
const NO_BODY = [101, 204, 205, 304]

/** Makes a purchase, waits for its end, and returns the seller's response as a `Response`. */
export async function paidFetch(
  calls: ReturnType<typeof purse>,
  url: string,
  { key = crypto.randomUUID(), ...payment }: PaidFetch,
  options: CallOptions = {},
): Promise<Response> {
  const waits = { ...options, timeout: WAIT_S }
  let bought = await calls.pay({ url, ...payment }, { ...waits, idempotencyKey: key })
  while (bought.endedAt === null) bought = await calls.status(bought.purchaseId, waits)
  const { response } = bought
  if (response === null || response.status < 200 || response.status > 599)
    throw new PurchaseError(bought)
  const { status, statusText, body } = response
  const headers = new Headers()
  for (const [name, value] of Object.entries(response.headers)) {
    // The service has already decompressed the seller's body. The seller's headers content-encoding and content-length
    // are left out, because they do not fit the decompressed body.
    if (name === 'content-encoding' || name === 'content-length') continue
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
 * Writes each byte of a text in UTF-8 as one character, as `fetch` reads headers. `Headers` and `Response` throw a
 * TypeError for every other text.
 */
const byteString = (text: string): string =>
  Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join('')
