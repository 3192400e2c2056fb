import { createHash } from 'node:crypto'
import {
  type MailHeaders,
  proveHeaders,
  readEnvelope,
  requestId,
} from '../../../shared/mail/http/signedMail.ts'
import { MESSAGE_MAX_BYTES, SmtpReply, TOO_LARGE } from '../acceptance.ts'
import { HttpRefusal } from './httpAnswer.ts'
import type { InboundKeys } from './inboundKeys.ts'
import type { ArrivingRequest, HandedMail } from './takeMail.ts'

/** Limits the characters of the inbound key's id, and of each signed header except the one with the envelope. */
const HEADER_MAX_CHARS = 300

/**
 * Handles the route `POST /v0/inbound/raw`, which receives the message as the HTTP body and the envelope in signed
 * headers.
 * @throws {SignedMailError} if the signed headers do not prove the origin of the mail.
 */
export async function readRawMail(
  request: ArrivingRequest,
  pathname: string,
  keys: InboundKeys,
): Promise<HandedMail | null> {
  if (pathname !== '/v0/inbound/raw') return null
  const headers: MailHeaders = {
    key: header(request, 'Purser-Key'),
    timestamp: header(request, 'Purser-Timestamp'),
    digest: header(request, 'Purser-Digest'),
    signature: header(request, 'Purser-Signature'),
    envelope: header(request, 'Purser-Envelope', Number.POSITIVE_INFINITY),
  }
  const key = await keys.find(headers.key)
  // An unknown inbound key has no secrets. Therefore a request with this key gets the same response as a request with a
  // wrong signature.
  proveHeaders(headers, key?.secrets ?? [], Date.now())
  if (Number(request.headers.get('content-length') ?? 0) > MESSAGE_MAX_BYTES) {
    throw new SmtpReply(552, TOO_LARGE)
  }
  const { spf, ...envelope } = readEnvelope(headers.envelope)
  return {
    key: key!,
    envelope,
    provider: { name: headers.key, spf },
    sourceKey: requestId(headers.key, headers.signature),
    content: request.body,
    check(bytes) {
      if (createHash('sha256').update(bytes).digest('hex') !== headers.digest) {
        throw new HttpRefusal(400, 'Purser-Digest: must be the SHA-256 of the body')
      }
    },
  }
}

function header(request: ArrivingRequest, name: string, maxChars = HEADER_MAX_CHARS): string {
  const value = request.headers.get(name)
  if (value === null || value === '') throw new HttpRefusal(401, `${name}: must be set`)
  if (value.length > maxChars) {
    throw new HttpRefusal(400, `${name}: must have at most ${maxChars} characters`)
  }
  return value
}
