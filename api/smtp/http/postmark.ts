import {
  postmarkKeyId,
  provePostmark,
  readPostmark,
} from '../../../shared/mail/http/postmarkMail.ts'
import { requestId } from '../../../shared/mail/http/signedMail.ts'
import { MESSAGE_MAX_BYTES, SmtpReply, TOO_LARGE } from '../acceptance.ts'
import type { InboundKeys } from './inboundKeys.ts'
import type { HandedMail, HandedReport } from './takeMail.ts'

/** Postmark sends the message, its parts and its attachments in one JSON text. */
const JSON_MAX_BYTES = MESSAGE_MAX_BYTES * 2

/** `POST /v0/inbound/postmark/KEY/SECRET`: the webhooks of Postmark. @throws {SignedMailError} */
export async function readPostmarkRequest(
  request: Request,
  pathname: string,
  keys: InboundKeys,
): Promise<HandedMail | HandedReport | null> {
  const keyId = postmarkKeyId(pathname)
  if (keyId === null) return null
  const key = await keys.find(keyId)
  const authorization = request.headers.get('authorization') ?? ''
  provePostmark({ pathname, authorization }, keyId, key?.secrets ?? [])
  const json = await readText(request)
  const news = readPostmark(json)
  if (news.kind === 'other') return { key: key!, report: null }
  if (news.kind === 'report') return { key: key!, report: news.report }
  const { envelope, spf, bytes } = news
  return {
    key: key!,
    envelope,
    provider: { name: 'postmark', spf },
    // Postmark sends the same text again until it gets a 200.
    sourceKey: requestId(keyId, json),
    content: slices(bytes),
    check() {},
  }
}

async function readText(request: Request): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of request.body ?? new Blob([]).stream()) {
    size += chunk.length
    if (size > JSON_MAX_BYTES) throw new SmtpReply(552, TOO_LARGE)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

async function* slices(bytes: Buffer): AsyncIterable<Uint8Array> {
  const SLICE_BYTES = 1024 * 1024
  for (let at = 0; at < bytes.length; at += SLICE_BYTES) yield bytes.subarray(at, at + SLICE_BYTES)
}
