/** The key of a paid request: the same in every process of the seller, also after a restart. */

/** Longer payments have no key: the service refuses them anyway. */
const PAYMENT_MAX_CHARS = 16_384
/** Milliseconds after the window of an authorization in which its answer is given again: it may settle at the end. */
const LATE_MS = 10 * 60_000

/**
 * The key of a request that brings a payment. A third party who copies the payment and asks for another thing has
 * another key, and so gets `duplicate_settlement`.
 * @param parts that what the payer asked for; two requests with the same parts are one.
 * @returns null for a payment that is unreadable, too long, or whose window is over.
 */
export async function requestKey(
  payment: string | object,
  parts: readonly unknown[],
): Promise<string | null> {
  const text = typeof payment === 'string' ? payment : JSON.stringify(payment)
  if (text.length > PAYMENT_MAX_CHARS) return null
  const endS = validBefore(payment)
  if (endS === null || Date.now() > endS * 1_000 + LATE_MS) return null
  return sha256(JSON.stringify([text, ...parts]))
}

/** SHA-256 in hex. */
export async function sha256(data: string | Uint8Array<ArrayBuffer>): Promise<string> {
  const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : data
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

type Unread = { payload?: { authorization?: { validBefore?: unknown } } } | null

/** The end of the window of an authorization, Unix seconds. */
function validBefore(payment: string | object): number | null {
  try {
    const read = (typeof payment === 'string' ? JSON.parse(atob(payment)) : payment) as Unread
    const end = Number(read?.payload?.authorization?.validBefore)
    return Number.isSafeInteger(end) ? end : null
  } catch {
    return null
  }
}
