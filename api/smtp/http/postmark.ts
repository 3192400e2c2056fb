import { FairTurns } from '../../../shared/fair/fairTurns.ts'
import {
  postmarkKeyId,
  provePostmark,
  readPostmark,
} from '../../../shared/mail/http/postmarkMail.ts'
import { requestId } from '../../../shared/mail/http/signedMail.ts'
import { MESSAGE_MAX_BYTES, SmtpReply, TOO_LARGE, TOO_MUCH_IN_FLIGHT } from '../acceptance.ts'
import type { Incoming } from '../incomingMail.ts'
import type { InboundKey, InboundKeys } from './inboundKeys.ts'
import { enterLargeMail } from './largeMailTurn.ts'
import { slices } from './readBody.ts'
import type { ArrivingRequest, HandedMail, HandedReports } from './takeMail.ts'

/** Sets the maximum number of bytes of Postmark's JSON text, which holds the message, its parts and its attachments. */
const JSON_MAX_BYTES = MESSAGE_MAX_BYTES * 2
/** Limits how many large requests of one inbound key wait, because each of them keeps a connection and disk space. */
const WAITING_MAX = 10
/** Sets the size in bytes up to which a request with mail does not wait for other requests. */
const SMALL_BYTES = 1024 * 1024

/**
 * Handles the route `POST /v0/inbound/postmark/KEY/SECRET`, which receives the webhooks of Postmark. Postmark sends all
 * waiting requests at once, and a request of 50 MB takes 300 MB in memory. Therefore the service reads large requests
 * one at a time.
 * @throws {SignedMailError} for a wrong key or secret, or for a wrong password in the header `Authorization`.
 */
export function createPostmark() {
  const large = new FairTurns({ total: 1, perSharer: 1, waitingPerSharer: WAITING_MAX })
  return async (
    request: ArrivingRequest,
    pathname: string,
    keys: InboundKeys,
  ): Promise<HandedMail | HandedReports | null> => {
    const keyId = postmarkKeyId(pathname)
    if (keyId === null) return null
    const key = await keys.find(keyId)
    const authorization = request.headers.get('authorization') ?? ''
    provePostmark({ pathname, authorization }, keyId, key?.secrets ?? [])
    request.countAs([{ name: `inbound key ${keyId}`, factor: 1 }])
    const held = request.hold({ alwaysBytes: SMALL_BYTES })
    let release = () => {}
    try {
      const size = await storeBody(request.body, held)
      // A request with a large mail waits for the other large mails only after its own body has arrived. Otherwise a
      // slow request would delay all others.
      if (size > SMALL_BYTES) release = await enterLargeMail(large, keyId)
      const json = (await held.bytes()).toString('utf8')
      await held.discard()
      const handed = handedBy(json, keyId, key!)
      if ('reports' in handed) release()
      return 'reports' in handed ? handed : { ...handed, release }
    } catch (error) {
      release()
      throw error
    } finally {
      await held.discard()
    }
  }
}

/** Stores the body of a request on disk. @returns the number of bytes. @throws {SmtpReply} if the body is too large. */
async function storeBody(body: ArrivingRequest['body'], held: Incoming): Promise<number> {
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > JSON_MAX_BYTES) throw new SmtpReply(552, TOO_LARGE)
    if (!(await held.write(Buffer.from(chunk)))) throw new SmtpReply(452, TOO_MUCH_IN_FLIGHT)
  }
  return size
}

function handedBy(json: string, keyId: string, key: InboundKey): HandedMail | HandedReports {
  const news = readPostmark(json)
  if (news.kind === 'other') return { key, reports: [] }
  if (news.kind === 'report') return { key, reports: [news.report] }
  const { envelope, spf, bytes } = news
  return {
    key,
    envelope,
    provider: { name: 'postmark', spf },
    // The source key (the identity of a delivery) comes from the whole request, because Postmark repeats exactly the
    // same request until it gets a response with status 200.
    sourceKey: requestId(keyId, json),
    content: slices(bytes),
    check() {},
  }
}
