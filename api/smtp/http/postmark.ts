import {
  postmarkKeyId,
  provePostmark,
  readPostmark,
} from '../../../shared/mail/http/postmarkMail.ts'
import { requestId } from '../../../shared/mail/http/signedMail.ts'
import { MESSAGE_MAX_BYTES } from '../acceptance.ts'
import type { InboundKeys } from './inboundKeys.ts'
import { readBody, slices } from './readBody.ts'
import type { ArrivingRequest, HandedMail, HandedReports } from './takeMail.ts'

/** Sets the maximum number of bytes of Postmark's JSON text, which holds the message, its parts and its attachments. */
const JSON_MAX_BYTES = MESSAGE_MAX_BYTES * 2

/**
 * Handles the route `POST /v0/inbound/postmark/KEY/SECRET`, which receives the webhooks of Postmark.
 * @throws {SignedMailError} for a wrong key or secret, or for a wrong password in the header `Authorization`.
 */
export async function readPostmarkRequest(
  request: ArrivingRequest,
  pathname: string,
  keys: InboundKeys,
): Promise<HandedMail | HandedReports | null> {
  const keyId = postmarkKeyId(pathname)
  if (keyId === null) return null
  const key = await keys.find(keyId)
  const authorization = request.headers.get('authorization') ?? ''
  provePostmark({ pathname, authorization }, keyId, key?.secrets ?? [])
  const json = (await readBody(request.body, JSON_MAX_BYTES)).toString('utf8')
  const news = readPostmark(json)
  if (news.kind === 'other') return { key: key!, reports: [] }
  if (news.kind === 'report') return { key: key!, reports: [news.report] }
  const { envelope, spf, bytes } = news
  return {
    key: key!,
    envelope,
    provider: { name: 'postmark', spf },
    // Postmark repeats the same request until Postmark gets a response with status 200.
    sourceKey: requestId(keyId, json),
    content: slices(bytes),
    check() {},
  }
}
