import { createHash } from 'node:crypto'
import { mailSignature } from '../../../shared/mail/http/signedMail.ts'

/** Holds the bytes of a secret from INBOUND_SECRETS. */
const INBOUND_SECRET = Buffer.alloc(32, 7)
export const INBOUND_ENV = {
  INBOUND_SECRETS: `relay:${INBOUND_SECRET.toString('base64')}`,
  INBOUND_PORT: '0',
}

export type RawMail = {
  to: string[]
  mail?: string | Buffer
  from?: string
  key?: string
  secret?: Uint8Array
  atS?: number
  spf?: string
  /**
   * Holds the value of the HTTP header purser-envelope. By default, this value is made of `from`, `to` and `spf`.
   */
  envelope?: string
}

/** Makes the HTTP request in which a mail service delivers a mail to `POST /v0/inbound/raw`. */
export function signedRequest({
  to,
  mail = 'Message-ID: <1@example.com>\r\nFrom: ada@example.com\r\nSubject: Hi\r\n\r\nHi.\r\n',
  from = 'ada@example.com',
  key = 'relay',
  secret = INBOUND_SECRET,
  atS = Math.floor(Date.now() / 1000),
  spf,
  envelope = Buffer.from(JSON.stringify({ from, to, spf })).toString('base64url'),
}: RawMail): RequestInit & { headers: Record<string, string> } {
  const signed = {
    key,
    timestamp: String(atS),
    envelope,
    digest: createHash('sha256').update(mail).digest('hex'),
  }
  return {
    method: 'POST',
    body: mail,
    headers: {
      'content-type': 'message/rfc822',
      'purser-key': key,
      'purser-timestamp': signed.timestamp,
      'purser-envelope': signed.envelope,
      'purser-digest': signed.digest,
      'purser-signature': mailSignature(secret, signed),
    },
  }
}

/** Delivers a mail to the service by HTTP. */
export async function handOver(
  port: number,
  request: RequestInit,
  path = '/v0/inbound/raw',
): Promise<{ status: number; headers: Headers; body: any }> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, request)
  return { status: response.status, headers: response.headers, body: await response.json() }
}
