import { type Static, Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { addressKey, parseAddress } from '../shared/address.ts'
import { newMessageId } from '../shared/ids.ts'
import { replyReferences, replySubject } from '../shared/threading.ts'
import { findMessage, type Message } from '../sql/messages.ts'
import type { SendIntent } from '../sql/sendMessages.ts'
import { projectOf, type Services } from './context.ts'
import { ApiError, badRequest, notFound } from './errors.ts'
import { MessageParams } from './messages.ts'
import { RepliedMessage, SentMessage } from './messageView.ts'
import { operation } from './operation.ts'

/** Recipients of one message over to, cc and bcc (contract §4). */
const RECIPIENTS_MAX = 50
/** RFC 5322 §2.1.1: a line is at most 998 characters. */
const SUBJECT_MAX_LENGTH = 998

const AddressList = (minItems: number) =>
  t.Array(t.String({ maxLength: 320 }), {
    minItems,
    maxItems: RECIPIENTS_MAX,
    examples: [['ada@example.com']],
  })

const Text = t.String({ description: 'Plain-text body.' })
const Html = t.Optional(
  t.String({ description: 'HTML body; the message is then sent as multipart/alternative.' }),
)
/** Said here so that a client is told, rather than its files left out in silence. */
const NoAttachments = t.Optional(
  t.Array(t.Unknown(), { maxItems: 0, error: 'be left out: attachments cannot be sent yet' }),
)

export const SendBody = t.Object({
  to: AddressList(1),
  subject: t.String({
    maxLength: SUBJECT_MAX_LENGTH,
    pattern: '^[^\\r\\n]*$',
    error: `be one line of at most ${SUBJECT_MAX_LENGTH} characters`,
  }),
  text: Text,
  html: Html,
  cc: t.Optional(AddressList(0)),
  bcc: t.Optional(AddressList(0)),
  attachments: NoAttachments,
})

export const ReplyBody = t.Object({
  text: Text,
  html: Html,
  replyAll: t.Optional(
    t.Boolean({ description: 'Also answer the other recipients of the original.' }),
  ),
  attachments: NoAttachments,
})

/** Send and reply: the message and its job are stored in one transaction, and the worker does the rest. */
export function sendingRoutes(services: Services) {
  return new Elysia()
    .post(
      '/v0/messages/send',
      async ({ request, body, set }) => {
        const sent = await sendMessage(services, projectOf(request), body)
        set.status = 201
        return sent
      },
      {
        body: SendBody,
        detail: operation({
          summary: 'Send a message',
          description:
            'Answers as soon as the message is stored; deliveryStatus of the message tells what became of it.',
          tag: 'Messages',
          access: 'mail:send',
          requestExample: { to: ['ada@example.com'], subject: 'Offer', text: 'Shall I order?' },
          success: {
            status: 201,
            description: 'The message was accepted. It starts a new thread.',
            schema: SentMessage,
            example: {
              messageId: '<9f86d081@mail.example.com>',
              threadId: 'thd_0a1b2c3d4e5f60718293a4b5',
              inboxId: 'agent@mail.example.com',
              from: ['agent@mail.example.com'],
              to: ['ada@example.com'],
              subject: 'Offer',
              labels: ['sent'],
              createdAt: '2026-01-05T09:30:00.000Z',
            },
          },
        }),
      },
    )
    .post(
      '/v0/messages/:messageId/reply',
      async ({ request, params, body, set }) => {
        const { projectId } = projectOf(request)
        const sent = await replyTo(services, projectId, params.messageId, body)
        set.status = 201
        return sent
      },
      {
        params: MessageParams,
        body: ReplyBody,
        detail: operation({
          summary: 'Reply to a message',
          description:
            'Goes to Reply-To, else From, of the original, in its thread, with In-Reply-To and References set.',
          tag: 'Messages',
          access: 'mail:send',
          requestExample: { text: 'Yes, please.' },
          success: {
            status: 201,
            description: 'The reply was accepted.',
            schema: RepliedMessage,
            example: {
              messageId: '<60303ae2@mail.example.com>',
              threadId: 'thd_0a1b2c3d4e5f60718293a4b5',
              subject: 'Re: Offer',
              labels: ['sent'],
              createdAt: '2026-01-05T09:45:00.000Z',
            },
          },
          errors: { 404: 'Message not found' },
        }),
      },
    )
}

/** Stores a message to send; it starts a new thread. @throws {ApiError} 400 */
export async function sendMessage(
  services: Services,
  { projectId, inboxAddress: from }: { projectId: string; inboxAddress: string },
  body: Static<typeof SendBody>,
) {
  const to = readAddresses('to', body.to)
  const cc = readAddresses('cc', body.cc ?? [])
  const bcc = readAddresses('bcc', body.bcc ?? [])
  if (to.length + cc.length + bcc.length > RECIPIENTS_MAX) {
    throw badRequest(`to, cc and bcc must name at most ${RECIPIENTS_MAX} recipients together`)
  }
  const accepted = await accept(services, {
    projectId,
    messageId: newMessageId(services.config.mailDomain),
    threadRow: null,
    from,
    to,
    cc,
    bcc,
    subject: body.subject,
    text: body.text,
    html: body.html ?? null,
    inReplyTo: [],
    references: [],
  })
  return {
    messageId: accepted.messageId,
    threadId: accepted.threadId,
    inboxId: from,
    from: [from],
    to,
    subject: body.subject,
    labels: ['sent'],
    createdAt: accepted.createdAt.toISOString(),
  }
}

/** Stores a reply, in the thread of the original. @throws {ApiError} 400, 404 */
export async function replyTo(
  services: Services,
  projectId: string,
  messageId: string,
  body: Static<typeof ReplyBody>,
) {
  const original = await findMessage(services.pool, projectId, messageId)
  if (original === null) throw notFound('Message not found')
  const subject = replySubject(original.subject)
    .slice(0, SUBJECT_MAX_LENGTH)
    .replace(/[\r\n]+/g, ' ')
  const accepted = await accept(services, {
    projectId,
    messageId: newMessageId(services.config.mailDomain),
    threadRow: original.threadRow,
    from: original.inboxAddress,
    ...replyRecipients(original, body.replyAll ?? false),
    bcc: [],
    subject,
    text: body.text,
    html: body.html ?? null,
    inReplyTo: [original.headerMessageId],
    references: replyReferences({
      messageId: original.headerMessageId,
      inReplyTo: original.inReplyTo,
      references: original.references,
    }),
  })
  return {
    messageId: accepted.messageId,
    threadId: accepted.threadId,
    subject,
    labels: ['sent'],
    createdAt: accepted.createdAt.toISOString(),
  }
}

async function accept(services: Services, intent: SendIntent) {
  const accepted = await services.sends.submit(intent)
  if (accepted === null) throw new ApiError(401, 'unauthorized', 'Invalid API key')
  return accepted
}

function readAddresses(field: string, texts: string[]): string[] {
  return unique(
    texts.map((text, n) => {
      const address = parseAddress(text)
      if (address === null)
        throw badRequest(`${field}[${n}] must be one email address, such as ada@example.com`)
      return address
    }),
  )
}

/** Each address once; upper and lower case make no difference. */
function unique(addresses: string[]): string[] {
  return [...new Map(addresses.map((address) => [addressKey(address), address])).values()]
}

/**
 * Who a reply goes to: Reply-To, else From; for a message of our own, its recipients again. Addresses that cannot be
 * written to are left out, and a reply is never addressed to its own inbox unless nobody else is there.
 */
function replyRecipients(original: Message, replyAll: boolean): { to: string[]; cc: string[] } {
  const own = addressKey(original.inboxAddress)
  const usable = (texts: string[]) => unique(texts.flatMap((text) => parseAddress(text) ?? []))
  const others = (texts: string[]) => usable(texts).filter((address) => addressKey(address) !== own)
  const sender = original.replyTo.length > 0 ? original.replyTo : original.from
  const wanted = original.direction === 'sent' ? original.to : sender
  const to = others(wanted).length > 0 ? others(wanted) : usable(wanted)
  if (to.length === 0) throw badRequest('The message has no sender that can be replied to')
  if (!replyAll) return { to: to.slice(0, RECIPIENTS_MAX), cc: [] }
  const addressed = new Set(to.map(addressKey))
  const cc = others([...original.to, ...original.cc]).filter(
    (address) => !addressed.has(addressKey(address)),
  )
  if (to.length + cc.length > RECIPIENTS_MAX) {
    throw badRequest(`replyAll must reach at most ${RECIPIENTS_MAX} recipients`)
  }
  return { to, cc }
}
