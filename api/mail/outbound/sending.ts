import type { Static } from '@sinclair/typebox'
import { FairTurns } from '../../../shared/fair/fairTurns.ts'
import { newMessageId } from '../../../shared/ids.ts'
import { domainOf, type Mailbox } from '../../../shared/mail/address.ts'
import { replyReferences, replySubject } from '../../../shared/mail/threading.ts'
import { traceparent } from '../../../shared/process/workContext.ts'
import { keepAttachments } from '../../../sql/mail/messages/attachments.ts'
import { findMessage } from '../../../sql/mail/messages/messages.ts'
import type { RefusedRecipient } from '../../../sql/mail/outbound/recipientPolicy.ts'
import {
  type AcceptedMessage,
  findSent,
  type SendIntent,
} from '../../../sql/mail/outbound/sendIntents.ts'
import { ApiError, badRequest, conflict, notFound } from '../../http/errors.ts'
import { keyOfAnother, requestHash } from '../../http/input/idempotencyKey.ts'
import type { Services } from '../../http/services.ts'
import { type Invitation, invitationOf } from '../calendar/eventInput.ts'
import { replyRecipients } from './replyRecipients.ts'
import {
  namesOf,
  RECIPIENTS_MAX,
  type ReplyBody,
  readAttachments,
  readHeaders,
  readMailboxes,
  readSendAt,
  readUnsubscribe,
  type SendBody,
  SUBJECT_MAX_LENGTH,
} from './sendInput.ts'

/** Describes the project that sends a mail, and the inbox of this project. */
export type Sender = { projectId: string; inboxAddress: string }

/** Describes the response to `send`, without the fields threadId and createdAt. */
type SentAnswer = {
  sendAt?: string
  messageId: string
  inboxId: string
  from: string[]
  to: string[]
  cc: string[]
  subject: string
  labels: string[]
  event?: Invitation['shown']
}
/** Lists the recipients that the service refused because of a rule or a suppression. */
type RefusedRecipients = { refused: RefusedRecipient[] }
/** Describes an additional response field for a mail that waits for its sending time or for its owner's approval. */
type Waiting = { deliveryStatus: 'scheduled' | 'held' }
/** Describes the response to `reply`. With the setting `ANSWERS=full` the response also has the field `inboxId`. */
export type RepliedAnswer = Omit<SentAnswer, 'inboxId'> & { inboxId?: string }

export type Prepared<Answer> = Omit<
  SendIntent,
  'projectId' | 'key' | 'refused' | 'answer' | 'draft' | 'held'
> & { answer: Answer }

/**
 * Holds the idempotency key of a call, and the draft that the call sends. The key and the draft prevent a repeated call
 * from sending a second mail. The field `held` tells whether each mail of this caller waits for the owner's approval.
 */
export type Once = { key: string | null; draft?: SendIntent['draft']; held: boolean }

/**
 * Lets changes of one calendar event in this process run one after the other. Without these turns, each change would
 * make the others prepare their mails again.
 */
const eventTurns = new FairTurns({ total: Number.POSITIVE_INFINITY, perSharer: 1 })

/**
 * Accepts a request to send a mail that starts a new thread. A repeated request with the same idempotency key gets the
 * first response again.
 * @throws {ApiError} 400 for an invalid mail, 409 for an idempotency key that belongs to another mail, or for a draft
 * that has changed.
 */
export async function sendMessage(
  services: Services,
  { projectId, inboxAddress: from }: Sender,
  body: Static<typeof SendBody>,
  once: Once,
) {
  const request = ['send', body]
  const prepare = async (): Promise<Prepared<SentAnswer>> => {
    const sendAt = readSendAt(body.sendAt)
    const shown = {
      to: readMailboxes('to', body.to),
      cc: readMailboxes('cc', body.cc ?? []),
    }
    const bare = (mailboxes: readonly Mailbox[]) => mailboxes.map(({ address }) => address)
    const [to, cc] = [bare(shown.to), bare(shown.cc)]
    const bcc = bare(readMailboxes('bcc', body.bcc ?? []))
    if (to.length + cc.length + bcc.length > RECIPIENTS_MAX) {
      throw badRequest(`to, cc and bcc must name at most ${RECIPIENTS_MAX} recipients together`)
    }
    const messageId = newMessageId(domainOf(from))
    const { subject } = body
    const files = readAttachments(body.attachments)
    const unsubscribe = readUnsubscribe(body.unsubscribe)
    const headers = readHeaders(body.headers, body.unsubscribe !== undefined)
    const invitation =
      body.event === undefined
        ? null
        : await invitationOf(services, projectId, body.event, {
            from,
            subject,
            text: body.text,
            ...shown,
          })
    const answer: SentAnswer = {
      messageId,
      inboxId: from,
      from: [from],
      to,
      cc,
      subject,
      labels: ['sent'],
      ...shownAt(sendAt),
      ...(invitation === null ? {} : { event: invitation.shown }),
    }
    return {
      messageId,
      sendAt,
      threadRow: null,
      from,
      to,
      cc,
      bcc,
      subject,
      text: body.text,
      html: body.html ?? null,
      attachments: invitation === null ? files : [invitation.attachment, ...files],
      calendar: invitation === null ? null : 0,
      unsubscribe,
      headers,
      names: namesOf([...shown.to, ...shown.cc]),
      inReplyTo: [],
      references: [],
      answer,
      ...(invitation === null ? {} : { ownEvent: invitation.change }),
    }
  }
  const uid = body.event?.uid
  const leave =
    uid === undefined ? () => {} : await eventTurns.enter(JSON.stringify([projectId, uid]))
  try {
    const answer = await acceptOnce(services, projectId, { ...once, request }, prepare)
    return { ...answer, ...textIfFull(services, body) }
  } finally {
    leave()
  }
}

/**
 * Returns the text of a sent mail, which the response to the caller shows. The code adds the text to the response only
 * when it sends the response. Therefore the stored response does not hold a copy of the text.
 */
const textIfFull = ({ config }: Services, { text }: { text: string }) =>
  config.answers === 'full' ? { text, extractedText: text } : {}

/**
 * Accepts a reply in the thread of the original message. A repeated request with the same idempotency key gets the
 * first response again.
 * @throws {ApiError} 400 for an invalid mail, 404 for an unknown original message, 409 for an idempotency key that
 * belongs to another mail, or for a draft that has changed.
 */
export async function replyTo(
  services: Services,
  projectId: string,
  { messageId: originalId, ...body }: Static<typeof ReplyBody> & { messageId: string },
  once: Once,
) {
  const request = ['reply', originalId, body]
  const answer = await acceptOnce(services, projectId, { ...once, request }, async () => {
    const sendAt = readSendAt(body.sendAt)
    const original = await findMessage(services.pool, projectId, originalId)
    if (original === null) throw notFound('Message not found')
    const messageId = newMessageId(domainOf(original.inboxAddress))
    const subject = replySubject(original.subject)
      .slice(0, SUBJECT_MAX_LENGTH)
      .toWellFormed()
      .replace(/[\r\n]+/g, ' ')
    const from = original.inboxAddress
    const recipients = replyRecipients(original, body.replyAll ?? false)
    const answer: RepliedAnswer = {
      messageId,
      ...(services.config.answers === 'full' ? { inboxId: from } : {}),
      from: [from],
      ...recipients,
      subject,
      labels: ['sent'],
      ...shownAt(sendAt),
    }
    return {
      messageId,
      sendAt,
      threadRow: original.threadRow,
      from,
      ...recipients,
      bcc: [],
      subject,
      text: body.text,
      html: body.html ?? null,
      attachments: readAttachments(body.attachments),
      unsubscribe: null,
      headers: readHeaders(body.headers, false),
      names: null,
      inReplyTo: [original.headerMessageId],
      references: replyReferences({
        messageId: original.headerMessageId,
        inReplyTo: original.inReplyTo,
        references: original.references,
      }),
      answer,
    }
  })
  return { ...answer, ...textIfFull(services, body) }
}

const shownAt = (sendAt: Date | null) => (sendAt === null ? {} : { sendAt: sendAt.toISOString() })

/**
 * Limits how often one call prepares its mail again because another change of the mail's calendar event came first.
 * Within a process, the changes of one calendar event run one after the other. Therefore only a change from another
 * process can come first.
 */
const TRIES_MAX = 20

/**
 * Runs `prepare`, and stores its response under the idempotency key. For a repeated key, the function returns the
 * stored response without a call of `prepare`.
 */
export async function acceptOnce<Answer extends { labels: string[] }>(
  services: Services,
  projectId: string,
  { key, draft = null, held, request }: Once & { request: unknown },
  prepare: () => Promise<Prepared<Answer>>,
): Promise<Answered<Answer>> {
  const bound =
    draft !== null
      ? keyOfDraft(draft.id)
      : key === null
        ? null
        : { name: key, requestHash: requestHash(request) }
  const repeated = bound === null ? null : await findAnswer<Answer>(services, projectId, bound)
  if (repeated !== null) return repeated
  for (let tries = 1; ; tries++) {
    const { answer: drafted, ...intent } = await prepare()
    const refused = await refusals(services, projectId, intent)
    const answer = { ...drafted, ...(refused.length === 0 ? {} : { refused }) }
    const objects = await keepAttachments(services.blobs.of(projectId), intent.attachments)
    const outcome = await services.sendBatcher.submit({
      ...intent,
      attachments: intent.attachments.map((file, n) => ({ ...file, blob: objects[n] ?? null })),
      projectId,
      held,
      draft,
      key: bound,
      refused,
      answer,
      traceparent: traceparent(),
    })
    if (outcome.kind === 'accepted') return answered(answer, outcome)
    if (outcome.kind === 'event changed' && tries < TRIES_MAX) continue
    if (outcome.kind === 'event changed') throw conflict('The event changes too often: try again')
    if (outcome.kind === 'gone') throw new ApiError(401, 'unauthorized', 'Invalid API key')
    if (outcome.kind === 'no thread') throw notFound('Message not found')
    // A parallel call with the same idempotency key may have stored its response in the meantime, and may itself have
    // used up the project's daily limit of mails. Therefore a stored response takes precedence over the error about the
    // limit.
    const first = bound === null ? null : await findAnswer<Answer>(services, projectId, bound)
    if (first !== null) return first
    if (outcome.kind === 'over quota') throw quotaExceeded(services.config.limits.recipientsPerDay)
    if (draft !== null) throw conflict('The draft was changed or deleted meanwhile: read it again')
    throw new Error('an idempotency key is taken but has no stored answer')
  }
}

/**
 * Returns the idempotency key that belongs to a draft. With this key, the service sends the draft only once, and a
 * repeated call gets the first response again. The key contains a space, so no client can send it as an
 * `Idempotency-Key`.
 */
const keyOfDraft = (id: string) => ({
  name: `draft ${id}`,
  requestHash: requestHash(['draft', id]),
})

/**
 * Returns the stored response to the call that sent the draft. Returns `null` if the draft was not sent. The stored
 * response holds no text, so the text comes from the message. A deleted message has no text any more.
 */
export async function findDraftAnswer(services: Services, projectId: string, draftId: string) {
  const answer = await findAnswer<RepliedAnswer>(services, projectId, keyOfDraft(draftId))
  if (answer === null || services.config.answers !== 'full') return answer
  const message = await findMessage(services.pool, projectId, answer.messageId)
  return { ...answer, ...(message === null ? {} : textIfFull(services, message)) }
}

type Answered<Answer> = Answer &
  Partial<RefusedRecipients & Waiting> &
  Omit<AcceptedMessage, 'status'>

/**
 * Returns the response to an accepted request to send a mail. If the mail is not sent at once, the response holds its
 * delivery status and its label.
 */
function answered<Answer extends { labels: string[] }>(
  answer: Answer,
  { threadId, createdAt, status }: AcceptedMessage,
): Answered<Answer> {
  const whole = { ...answer, threadId, createdAt }
  if (status === 'queued') return whole
  return { ...whole, labels: [...answer.labels, status], deliveryStatus: status }
}

const DAY_S = 24 * 60 * 60

/**
 * Makes the 429 error for a project that has reached its daily limit of mails. Its Retry-After header names the seconds
 * until the next day (UTC).
 */
function quotaExceeded(limit: number | null): ApiError {
  const waitS = DAY_S - (Math.floor(Date.now() / 1000) % DAY_S)
  const message = `The daily limit of ${limit} recipients is reached`
  return new ApiError(429, 'quota_exceeded', message, { 'retry-after': String(waitS) })
}

/**
 * Makes the 413 error for a project with a full storage. To send again, the project must delete messages, or the
 * operator must raise the storage limit.
 */
function storageFull(): ApiError {
  const message = 'The storage of this project is used up: delete messages or ask the operator'
  return new ApiError(413, 'quota_exceeded', message)
}

/**
 * Returns the recipients of a mail to whom the service refuses to send the mail.
 * @throws {ApiError} 422 if the service refuses every recipient, 413 if the project's storage is full.
 */
async function refusals(
  { policies }: Services,
  projectId: string,
  { to, cc, bcc, threadRow }: Pick<SendIntent, 'to' | 'cc' | 'bcc' | 'threadRow'>,
): Promise<RefusedRecipient[]> {
  const addresses = [...new Set([...to, ...cc, ...bcc])]
  const { refused, isFull } = await policies.submit({
    projectId,
    scope: threadRow === null ? 'SEND' : 'REPLY',
    addresses,
  })
  if (isFull) throw storageFull()
  if (refused.length < addresses.length) return refused
  const named = refused.map(({ address, reason }) => `${address} (${reason})`).join(', ')
  throw new ApiError(422, 'recipient_blocked', `Every recipient is refused: ${named}`)
}

/**
 * Returns the stored response that belongs to an idempotency key. Returns `null` if no response is stored for the
 * idempotency key.
 * @throws {ApiError} 409 for an idempotency key that belongs to another request.
 */
async function findAnswer<Answer extends { labels: string[] }>(
  { pool }: Services,
  projectId: string,
  key: NonNullable<SendIntent['key']>,
): Promise<Answered<Answer> | null> {
  const found = await findSent(pool, projectId, key.name)
  if (found === null) return null
  if (!found.requestHash.equals(key.requestHash)) throw keyOfAnother()
  const { answer, ...accepted } = found.sent
  return answered(answer as Answer, accepted)
}
