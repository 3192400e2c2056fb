import { FairTurns } from '../../../shared/fair/fairTurns.ts'
import {
  postmarkKeyId,
  provePostmark,
  readPostmark,
} from '../../../shared/mail/http/postmarkMail.ts'
import { requestId } from '../../../shared/mail/http/signedMail.ts'
import { MESSAGE_MAX_BYTES } from '../acceptance.ts'
import type { InboundKey, InboundKeys } from './inboundKeys.ts'
import { enterLargeMail } from './largeMailTurn.ts'
import { readBody, slices } from './readBody.ts'
import type { ArrivingRequest, HandedMail, HandedReports } from './takeMail.ts'

/** Sets the maximum number of bytes of Postmark's JSON text, which holds the message, its parts and its attachments. */
const JSON_MAX_BYTES = MESSAGE_MAX_BYTES * 2

/** Limits the milliseconds in which a body arrives, because a large request holds the only turn. */
const BODY_MAX_MS = 60_000
/** Requests of at most this many bytes do not wait for their turn. */
const SMALL_BYTES = 1024 * 1024

/**
 * Handles the route `POST /v0/inbound/postmark/KEY/SECRET`, which receives the webhooks of Postmark. Large requests come
 * one at a time, because a request of 50 MB takes 300 MB in memory, and Postmark sends all waiting requests at once.
 * @throws {SignedMailError} for a wrong key or secret, or for a wrong password in the header `Authorization`.
 */
export function createPostmark() {
  const large = new FairTurns({ total: 1, perSharer: 1 })
  return async (
    request: ArrivingRequest,
    pathname: string,
    keys: InboundKeys,
  ): Promise<HandedMail | HandedReports | null> => {
    const isLarge = Number(request.headers.get('content-length') ?? JSON_MAX_BYTES) > SMALL_BYTES
    return await readPostmarkRequest(request, pathname, keys, async (keyId) =>
      isLarge ? await enterLargeMail(large, keyId) : () => {},
    )
  }
}

async function readPostmarkRequest(
  request: ArrivingRequest,
  pathname: string,
  keys: InboundKeys,
  enter: (keyId: string) => Promise<() => void>,
): Promise<HandedMail | HandedReports | null> {
  const keyId = postmarkKeyId(pathname)
  if (keyId === null) return null
  const key = await keys.find(keyId)
  const authorization = request.headers.get('authorization') ?? ''
  provePostmark({ pathname, authorization }, keyId, key?.secrets ?? [])
  const release = await enter(keyId)
  try {
    const handed = await handedBy(request, keyId, key!)
    if ('reports' in handed) release()
    return 'reports' in handed ? handed : { ...handed, release }
  } catch (error) {
    release()
    throw error
  }
}

async function handedBy(
  request: ArrivingRequest,
  keyId: string,
  key: InboundKey,
): Promise<HandedMail | HandedReports> {
  const json = (await readBody(request.body, JSON_MAX_BYTES, BODY_MAX_MS)).toString('utf8')
  const news = readPostmark(json)
  if (news.kind === 'other') return { key, reports: [] }
  if (news.kind === 'report') return { key, reports: [news.report] }
  const { envelope, spf, bytes } = news
  return {
    key,
    envelope,
    provider: { name: 'postmark', spf },
    // Postmark repeats the same request until Postmark gets a response with status 200.
    sourceKey: requestId(keyId, json),
    content: slices(bytes),
    check() {},
  }
}
