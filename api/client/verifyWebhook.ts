import type { Receipt } from './calls/payments.ts'
import { PurserError } from './errors.ts'

/** Reports a webhook delivery without a valid signature. Return status 400 and ignore the content of the delivery. */
export class InvalidWebhookError extends PurserError {
  override readonly name = 'InvalidWebhookError'
}

export type WebhookEvent = {
  /** Holds the event type, always `payment.received`. The signature does not cover the event type. */
  event: string
  /**
   * Holds an idempotency key, which is the same on every attempt of a webhook delivery. Use it only for your logs,
   * because the signature does not cover it. Anybody who has seen a delivery can send it again under another key.
   */
  idempotencyKey: string
  /**
   * Holds the signed receipt of the payment. The function `verifyReceipt` checks its signature. Handle each `paymentId`
   * only once.
   */
  receipt: Receipt
}

type HeaderSource = Headers | Record<string, string | readonly string[] | undefined>

/**
 * Verifies the signature of a webhook delivery, then parses its body. The signature covers the body, and no header.
 *
 * @param body is the raw bytes of the request body. Do not pass a re-serialised JSON body, because its bytes differ
 * from the signed bytes.
 * @param headers are the request headers, as a `Headers` object or as Node's object with lower-case names.
 * @param secret is the `whsec_…` secret of the webhook's endpoint. While you replace the secret, pass the old and the
 * new one.
 * @throws {InvalidWebhookError} if the signature is missing, malformed or wrong.
 *
 * @example
 * const event = await verifyWebhook({ body: await request.text(), headers: request.headers, secret: 'whsec_…' })
 * console.log(event.receipt.body.paymentId) // handle each payment id only once
 */
export async function verifyWebhook({
  body,
  headers,
  secret,
}: {
  body: string | Uint8Array
  headers: HeaderSource
  secret: string | readonly string[]
}): Promise<WebhookEvent> {
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body
  const [, hex] = /^sha256=([0-9a-f]{64})$/.exec(header(headers, 'x-service-signature')) ?? []
  if (hex === undefined)
    throw new InvalidWebhookError('X-Service-Signature is missing or malformed')
  const signature = Uint8Array.from(hex.match(/../g)!, (pair) => Number.parseInt(pair, 16))
  const secrets = typeof secret === 'string' ? [secret] : secret
  const matches = await Promise.all(secrets.map((one) => isSignedBy(one, signature, bytes)))
  if (!matches.includes(true)) throw new InvalidWebhookError('X-Service-Signature does not match')
  return {
    event: header(headers, 'x-service-event'),
    idempotencyKey: header(headers, 'x-service-idempotency-key'),
    receipt: JSON.parse(new TextDecoder().decode(bytes)),
  }
}

async function isSignedBy(
  secret: string,
  signature: Uint8Array<ArrayBuffer>,
  bytes: Uint8Array,
): Promise<boolean> {
  // The function refuses an empty webhook secret, because an unset environment variable would become such a secret, and
  // anyone could sign a delivery with it.
  if (secret === '') throw new TypeError('secret must not be empty')
  const raw = new TextEncoder().encode(secret)
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const key = await crypto.subtle.importKey('raw', raw, algorithm, false, ['verify'])
  // The code uses WebCrypto's verify, because it compares the signatures in constant time.
  return crypto.subtle.verify('HMAC', key, signature, bytes as Uint8Array<ArrayBuffer>)
}

function header(headers: HeaderSource, name: string): string {
  if (headers instanceof Headers) return headers.get(name) ?? ''
  const value =
    headers[name] ?? Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1]
  return typeof value === 'string' ? value : (value?.[0] ?? '')
}
