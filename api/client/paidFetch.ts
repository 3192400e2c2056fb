import type { Purchase, purse } from './calls/purse.ts'
import { PurserError } from './errors.ts'
import type { CallOptions } from './http.ts'

/** A request that may cost money. */
export type PaidFetch = {
  /** The most that it may cost, in USDC. */
  maxAmount: string
  method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  headers?: Record<string, string>
  /** A string is sent as it is; anything else as JSON. */
  body?: unknown
  /** Your reason, for the owner. */
  why?: string
  /** The name of the purchase: the same key pays once, for ever. Absent: a random one. */
  key?: string
}

/** A purchase without an answer to give: refused, not reached, or unknown. `purchase` tells what became of the money. */
export class PurchaseError extends PurserError {
  override readonly name = 'PurchaseError'
  readonly purchase: Purchase

  constructor(purchase: Purchase) {
    super(`${purchase.state}: ${purchase.detail ?? purchase.reason ?? purchase.purchaseId}`)
    this.purchase = purchase
  }
}

const WAIT_S = 40
/** Statuses whose answers have no body (Fetch Standard). */
const NO_BODY = [101, 204, 205, 304]

/** Buys, waits for the end, and gives the seller's answer as a Response. */
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
  if (response === null || response.status < 200) throw new PurchaseError(bought)
  const { status, statusText, body } = response
  const headers = new Headers()
  for (const [name, value] of Object.entries(response.headers)) {
    // The service has decompressed the body.
    if (name === 'content-encoding' || name === 'content-length') continue
    for (const line of name === 'set-cookie' ? String(value).split('\n') : [String(value)]) {
      headers.append(name, line)
    }
  }
  headers.set('purser-purchase-id', bought.purchaseId)
  return new Response(NO_BODY.includes(status) ? null : body, { status, statusText, headers })
}
