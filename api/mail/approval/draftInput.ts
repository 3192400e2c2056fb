import { type Static, Type as t } from '@sinclair/typebox'
import type { Draft } from '../../../sql/mail/approval/drafts.ts'
import { badRequest } from '../../http/errors.ts'
import { Time } from '../../http/operation.ts'
import {
  RECIPIENTS_MAX,
  ReplyBody,
  readAttachments,
  readHeaders,
  readMailboxes,
  readSendAt,
  readUnsubscribe,
  SendBody,
} from '../outbound/sendInput.ts'

// A draft has no calendar event, because the service records a calendar event only when it accepts the mail about the
// event.
const { to: _to, event: _event, ...optional } = SendBody.properties

/**
 * Describes the content of a draft: the fields of a `send` call or, with `inReplyTo`, of a `reply` call. A draft may
 * lack any field until the caller sends it.
 */
export const DraftBody = t.Partial(
  t.Object({
    // A draft may have no recipients until the caller sends it, so `to` is optional like `cc`.
    to: optional.cc,
    ...optional,
    inReplyTo: t.String({
      minLength: 1,
      maxLength: 1_100,
      description: 'The draft answers the message with this `messageId`.',
    }),
    replyAll: ReplyBody.properties.replyAll,
  }),
)
type Content = Static<typeof DraftBody>
type Attachments = NonNullable<Content['attachments']>

const FIELDS = Object.keys(DraftBody.properties)

/** Describes a change of a draft: the fields to set and the fields to remove. */
export const DraftChange = t.Composite([
  DraftBody,
  t.Object({
    remove: t.Optional(
      t.Array(
        t.String({
          pattern: `^(?:${FIELDS.join('|')})$`,
          error: `be one of ${FIELDS.join(', ')}`,
        }),
        { maxItems: FIELDS.length, description: 'The draft loses these fields.' },
      ),
    ),
  }),
])

export const DraftParams = t.Object({ draftId: t.String({ minLength: 1, maxLength: 64 }) })

const DraftHead = t.Composite([
  t.Object({ draftId: t.String({ examples: ['dft_0a1b2c3d4e5f60718293a4b5'] }) }),
  t.Pick(DraftBody, ['to', 'cc', 'bcc', 'subject', 'sendAt', 'inReplyTo', 'replyAll']),
  t.Pick(DraftBody, ['unsubscribe', 'headers']),
  t.Object({ createdAt: Time, updatedAt: Time }),
])

/** Describes a draft in a list, without its bodies and attachments. */
export const DraftItem = DraftHead

/** Describes a whole draft, with its bodies and attachments. */
export const WholeDraft = t.Composite([
  DraftHead,
  t.Pick(DraftBody, ['text', 'html']),
  t.Object({
    attachments: t.Array(
      t.Object({
        filename: t.String(),
        contentType: t.String(),
        size: t.Integer({ description: 'The size is the number of bytes after decoding.' }),
        contentId: t.Union([t.String(), t.Null()]),
      }),
    ),
  }),
])

/** Names the fields that a reply copies from the original mail. */
const OF_ORIGINAL = ['to', 'cc', 'bcc', 'subject', 'unsubscribe'] as const

/**
 * Checks each field of a draft against the rules for sending and replying. A draft may lack fields.
 * @param given holds the fields that the caller sets now. The time of an older `sendAt` may have passed meanwhile.
 * @throws {ApiError} 400 for an invalid field of the draft.
 */
export function checkDraft(content: Content, given = content): void {
  const lists = (['to', 'cc', 'bcc'] as const).map((name) =>
    readMailboxes(name, content[name] ?? []),
  )
  if (lists.flat().length > RECIPIENTS_MAX) {
    throw badRequest(`to, cc and bcc must name at most ${RECIPIENTS_MAX} recipients together`)
  }
  readAttachments(content.attachments)
  readUnsubscribe(content.unsubscribe)
  readHeaders(content.headers, content.unsubscribe !== undefined)
  readSendAt(given.sendAt === undefined ? undefined : content.sendAt)
  if (content.inReplyTo === undefined) {
    if (content.replyAll === undefined) return
    throw badRequest('replyAll must stand beside inReplyTo')
  }
  const found = OF_ORIGINAL.find((name) => content[name] !== undefined)
  if (found === undefined) return
  throw badRequest(`${found} must be absent beside inReplyTo: a reply takes it from its original`)
}

/** Returns the content of a draft after a change. If the change both sets and removes a field, the field is removed. */
export function changed(content: Content, { remove = [], ...set }: Static<typeof DraftChange>) {
  const whole = Object.entries({ ...content, ...set })
  return Object.fromEntries(whole.filter(([name]) => !remove.includes(name))) as Content
}

/** Returns the content of a stored draft together with its attachments. */
export const contentOf = ({ content, attachments }: Draft): Content => ({
  ...(content as Content),
  ...(attachments.length === 0 ? {} : { attachments: attachments as Attachments }),
})

/**
 * Returns the content of a draft as the request body of a `send` or `reply` call. @throws {ApiError} 400 with the name
 * of a field that the draft lacks.
 */
export function sendable(content: Content) {
  const { inReplyTo, replyAll, to, subject, text, ...rest } = content
  const lacks = (field: string) => badRequest(`${field} must be in the draft before it is sent`)
  if (text === undefined) throw lacks('text')
  if (inReplyTo !== undefined) {
    const { cc: _cc, bcc: _bcc, unsubscribe: _unsubscribe, ...reply } = rest
    const all = replyAll === undefined ? {} : { replyAll }
    return { kind: 'reply' as const, body: { ...reply, ...all, text, messageId: inReplyTo } }
  }
  if (to === undefined || to.length === 0) throw lacks('to')
  if (subject === undefined) throw lacks('subject')
  return { kind: 'send' as const, body: { ...rest, to, subject, text } }
}
