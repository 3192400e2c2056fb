/**
 * Makes the idempotency key of a paid request. The key is the same in every process of the seller, even after a
 * restart.
 */

/**
 * Sets the maximum number of characters of a payment header. The service refuses a longer header, so the paywall need
 * not store a response to it.
 */
const PAYMENT_MAX_CHARS = 16_384
/**
 * Sets for how many milliseconds after the end of an authorization's time window the paywall can still send the paid
 * response again, because the chain may settle an authorization at the very end of its window.
 */
const LATE_MS = 10 * 60_000

/** Limits the UTF-8 bytes, the values and the nested levels of a payment that an MCP client sends as an object. */
const OBJECT_MAX = { bytes: 1_000_000, values: 15_000, levels: 90 }
/** Matches U+0000 and lone surrogates in JSON, but not an escaped backslash before `u0000`. */
const UNSTORABLE = /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f][0-9a-f]{2})/i

/**
 * Tells whether the service can read a payment. The service refuses a call that is too large, or has text that a
 * database cannot store, before it looks at the payment. Such a refusal would look like a mistake of the seller, so the
 * paywall checks the payment first.
 */
export function isReadable(payment: string | object): boolean {
  if (isDeeper(payment, OBJECT_MAX.levels)) return false
  const text = JSON.stringify(payment)
  const isSmall =
    typeof payment === 'string'
      ? payment.length <= PAYMENT_MAX_CHARS
      : new TextEncoder().encode(text).length <= OBJECT_MAX.bytes &&
        text.split(/[,:[{]/).length <= OBJECT_MAX.values
  return isSmall && !UNSTORABLE.test(text)
}

const isDeeper = (value: unknown, levels: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some((item) => isDeeper(item, levels - 1)))

/**
 * Returns the idempotency key of a request that carries a payment. If a third party sends a copied payment with a
 * different request, this request gets a different key. The service then returns the error `duplicate_settlement` to
 * the third party.
 * @param parts describe the content that the payer asked for. Two requests with the same payment and the same parts
 * count as the same request.
 * @returns `null` if the payment header is unreadable or too long, or if the time window of its authorization is over.
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

/** Returns the SHA-256 hash of data in hexadecimal digits. */
export async function sha256(data: string | Uint8Array<ArrayBuffer>): Promise<string> {
  const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : data
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Matches the names of request headers that may identify the caller, for example `x-api-key`. */
const CREDENTIAL =
  /auth|token|key|session|secret|credential|jwt|user|principal|identity|client-cert|passw/
/**
 * Lists header names that match CREDENTIAL but do not count as credentials, because their values may differ when the
 * same person repeats a request. Authorization and Cookie are in the list, because the callers compare them separately.
 */
const NO_CREDENTIAL = new Set([
  'authorization',
  'cookie',
  ':authority',
  'payment-authorization',
  'idempotency-key',
  'x-idempotency-key',
  // The list of headers with credentials contains the session id, because MCP gives each connection another session id,
  // and forbids its use as proof of the caller.
  'mcp-session-id',
  'sec-websocket-key',
  'sec-fetch-user',
  'user-agent',
  'x-amz-user-agent',
  'x-csrf-token',
  'x-xsrf-token',
  // The list of headers with credentials contains `x-vercel-oidc-token`, because Vercel adds a new token of the seller
  // to each request in this header.
  'x-vercel-oidc-token',
])

/**
 * Returns the request headers, other than Authorization and Cookie, that may hold a credential, in the order of their
 * names. If a request has no such header, its idempotency key is the same as in earlier versions of the paywall.
 */
export const credentialsIn = (
  names: Iterable<string>,
  header: (name: string) => unknown,
): [name: string, value: unknown][] =>
  [...names]
    .filter((name) => CREDENTIAL.test(name) && !NO_CREDENTIAL.has(name))
    .toSorted()
    .map((name) => [name, header(name)])

type Unread = { payload?: { authorization?: { validBefore?: unknown } } } | null

/** Returns the end of an authorization's time window in Unix seconds. Returns `null` if the payment is unreadable. */
function validBefore(payment: string | object): number | null {
  try {
    const read = (typeof payment === 'string' ? JSON.parse(atob(payment)) : payment) as Unread
    const end = Number(read?.payload?.authorization?.validBefore)
    return Number.isSafeInteger(end) ? end : null
  } catch {
    return null
  }
}
