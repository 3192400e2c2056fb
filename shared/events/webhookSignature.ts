/**
 * Makes and checks webhook signatures: `X-Service-Signature: sha256=<hex>`, HMAC-SHA256 (RFC 2104) over the raw body.
 * The HMAC key is the whole webhook secret in UTF-8, including its prefix `whsec_`.
 */
import { createHmac } from 'node:crypto'

export type SignWebhookParameters = {
  /** Holds the webhook secret, such as `whsec_…`. */
  secret: string
  /** Holds the bytes of the webhook body, or the text of the body, which counts as UTF-8. */
  body: string | Uint8Array
}

/**
 * Signs a webhook body.
 *
 * @returns the value of the header `X-Service-Signature`: `sha256=` and 64 lower-case hex digits.
 * @throws RangeError if the secret is empty, because anybody could then make the signature.
 */
export function signWebhook({ secret, body }: SignWebhookParameters): string {
  if (secret === '') throw new RangeError('secret must not be empty')
  return `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
}

/**
 * Checks the signature of a received webhook.
 *
 * @param header is the value of `X-Service-Signature`. Null means that the request had no such header.
 */
export function verifyWebhookSignature({
  secret,
  body,
  header,
}: SignWebhookParameters & { header: string | null }): boolean {
  const expected = signWebhook({ secret, body })
  if (header === null || header.length !== expected.length) return false
  // The loop compares all digits of the signature. If it stopped at the first wrong digit, its duration would reveal
  // the number of matching digits.
  let difference = 0
  for (let index = 0; index < expected.length; index++) {
    difference |= expected.charCodeAt(index) ^ header.charCodeAt(index)
  }
  return difference === 0
}
