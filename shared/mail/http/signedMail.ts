/**
 * Reads mail over HTTP. A header of the HTTP request holds the mail's envelope, and a signature proves that the sender
 * knows a secret (docs/mail.md).
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { isEnvelopeAddress } from '../address.ts'
import { AUTHENTICATION_WORDS, type AuthenticationWord } from '../parse/authentication.ts'

/**
 * Sets the largest allowed difference in seconds between the clock of a sender of mail over HTTP and the clock of this
 * service.
 */
const SKEW_S = 300
/**
 * Sets the maximum number of recipients of one mail over HTTP. The SMTP listener has the same maximum (RFC 5321
 * §4.5.3.1.8).
 */
const RECIPIENTS_MAX = 100
/**
 * Sets the maximum number of characters of the envelope header. The header has room for a hundred addresses of 320
 * octets, in JSON and base64url.
 */
const ENVELOPE_MAX_CHARS = 64 * 1024

/** Describes the envelope of a mail (RFC 5321 §2.3.1). For a bounce, the envelope sender `from` is empty. */
export type Envelope = { from: string; to: string[] }

/**
 * Reports that an HTTP request with mail is malformed, or lacks a valid proof. The error message names the wrong header
 * and the rule that it breaks.
 */
export class SignedMailError extends Error {
  override readonly name = 'SignedMailError'
  readonly status: 400 | 401
  constructor(status: 400 | 401, message: string) {
    super(message)
    this.status = status
  }
}

/** Holds the headers of `POST /v0/inbound/raw`. */
export type MailHeaders = {
  envelope: string
  timestamp: string
  digest: string
  key: string
  signature: string
}

/**
 * Returns the text that the sender of mail over HTTP signs. It contains the digest of the body, so that the signature
 * also proves the body.
 */
export const signedText = ({ key, timestamp, envelope, digest }: Omit<MailHeaders, 'signature'>) =>
  `v1\n${key}\n${timestamp}\n${envelope}\n${digest}`

/** Computes the signature of mail over HTTP: `v1=` and the HMAC-SHA256 in hexadecimal. */
export const mailSignature = (
  secret: Uint8Array,
  headers: Omit<MailHeaders, 'signature'>,
): string => `v1=${createHmac('sha256', secret).update(signedText(headers)).digest('hex')}`

/**
 * Checks that one of the key's secrets has signed the headers of a request with mail over HTTP.
 * @throws {SignedMailError} for a malformed header, a wrong signature, or a time that is too far from the present.
 */
export function proveHeaders(
  headers: MailHeaders,
  secrets: readonly Uint8Array[],
  nowMs: number,
): void {
  const { timestamp, digest, signature } = headers
  if (!/^\d{1,11}$/.test(timestamp)) {
    throw new SignedMailError(400, 'Purser-Timestamp: must be the seconds since 1970')
  }
  if (!/^[0-9a-f]{64}$/.test(digest)) {
    throw new SignedMailError(
      400,
      'Purser-Digest: must be the SHA-256 of the body, in 64 hexadecimal digits',
    )
  }
  const given = Buffer.from(signature.slice(0, 100))
  const isRight = secrets.some((secret) => {
    const wanted = Buffer.from(mailSignature(secret, headers))
    return given.length === wanted.length && timingSafeEqual(given, wanted)
  })
  if (!isRight) throw new SignedMailError(401, 'Purser-Signature: does not fit the key')
  if (Math.abs(nowMs / 1000 - Number(timestamp)) > SKEW_S) {
    throw new SignedMailError(
      401,
      `Purser-Timestamp: must be within ${SKEW_S} seconds of our clock`,
    )
  }
}

/**
 * Reads `Purser-Envelope`: base64url of the JSON `{"from": "…", "to": ["…"]}`. If the sender has checked SPF, the JSON
 * also contains `"spf"`.
 * @throws {SignedMailError} for a malformed envelope.
 */
export function readEnvelope(header: string): Envelope & { spf: AuthenticationWord | null } {
  const wrong = (rule: string) => new SignedMailError(400, `Purser-Envelope: ${rule}`)
  if (header.length > ENVELOPE_MAX_CHARS) {
    throw wrong(`must have at most ${ENVELOPE_MAX_CHARS} characters`)
  }
  const { from, to, spf = null } = parsed(header)
  if (typeof from !== 'string' || (from !== '' && !isEnvelopeAddress(from))) {
    throw wrong('"from" must be an address, or empty')
  }
  if (!Array.isArray(to) || to.length === 0 || to.length > RECIPIENTS_MAX) {
    throw wrong(`"to" must be a list of 1 to ${RECIPIENTS_MAX} addresses`)
  }
  if (
    !to.every(
      (address): address is string => typeof address === 'string' && isEnvelopeAddress(address),
    )
  ) {
    throw wrong('"to" must hold addresses alone')
  }
  if (spf !== null && !AUTHENTICATION_WORDS.includes(spf as AuthenticationWord)) {
    throw wrong(`"spf" must be one of ${AUTHENTICATION_WORDS.join(', ')}`)
  }
  return { from, to, spf: spf as AuthenticationWord | null }
}

function parsed(header: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(Buffer.from(header, 'base64url').toString('utf8'))
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>
  } catch {
    // If the value of the envelope header is no JSON, the function goes on and throws the SignedMailError of its last
    // line.
  }
  throw new SignedMailError(400, 'Purser-Envelope: must be base64url of a JSON object')
}

/**
 * Derives the secret of a domain from a secret of the service. Therefore the database need not store the domain's
 * secret.
 */
export const domainSecret = (secret: Uint8Array, keyId: string): Uint8Array =>
  createHmac('sha256', secret).update(`purser inbound ${keyId}`).digest()

/**
 * Returns the id of a mail over HTTP. A repeated HTTP request gives the same id, so that the service stores the mail
 * only once.
 * @returns the id of the mail as a UUID.
 */
export function requestId(keyId: string, signature: string): string {
  const hex = createHmac('sha256', keyId).update(signature).digest('hex')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, '$1-$2-$3-$4-$5')
}
