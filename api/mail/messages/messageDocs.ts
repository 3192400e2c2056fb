import { Type as t } from '@sinclair/typebox'
import type { Config } from '../../../shared/config/config.ts'
import { findCodes } from '../../../shared/mail/codes/codes.ts'
import { findLinks } from '../../../shared/mail/codes/mailLinks.ts'
import { OMISSIONS } from '../../../shared/mail/documents/document.ts'
import { UNCHECKED } from '../../../shared/mail/parse/authentication.ts'
import type { AttachmentText } from '../../../shared/mail/parse/parseMail.ts'
import { highlight, type SearchQuery } from '../../../shared/mail/search/searchQuery.ts'
import type { Scope } from '../../../shared/scopes.ts'
import type { Message, SingleMessage } from '../../../sql/mail/messages/messages.ts'
import { Time } from '../../http/operation.ts'
import { InviteSchema } from '../calendar/inviteDocs.ts'

const MessageId = t.String({ examples: ['<4f2a@mail.example.com>'] })
const ThreadId = t.String({ examples: ['thd_0a1b2c3d4e5f'] })
const Addresses = t.Array(t.String(), { examples: [['ada@example.com']] })
const Labels = t.Array(t.String(), { examples: [['received', 'unread']] })

export const TextState = t.Union(
  (['pending', 'ready', 'none', 'failed'] as const).map((one) => t.Literal(one)),
  {
    description:
      'pending: it is still to be read. none: the file holds no text, as a scan does. failed: `reason` says why.',
  },
)
export const Omitted = t.Array(t.String(), {
  description: `What the text leaves out, because a person does not see it, or not at first: ${OMISSIONS.join(', ')}.`,
  examples: [['speaker-notes']],
})
export const TextReason = t.String({
  description:
    'malformed, encrypted (it needs a password), too_large, or too_slow (it took too much time or memory).',
  examples: ['encrypted'],
})

const AttachmentTextSchema = t.Object(
  {
    state: TextState,
    chars: t.Integer({ description: 'Characters of the text.' }),
    reason: t.Optional(TextReason),
    omitted: Omitted,
  },
  {
    description:
      'The text of the file: GET …/attachments/{attachmentId}/text. Received messages only.',
  },
)

const AttachmentSchema = t.Object({
  attachmentId: t.String(),
  filename: t.String(),
  contentType: t.String(),
  size: t.Integer({ description: 'Bytes after decoding.' }),
  contentId: t.Union([t.String(), t.Null()]),
  disposition: t.String({ examples: ['attachment', 'inline'] }),
  text: t.Optional(AttachmentTextSchema),
})

const Word = (description: string) => t.String({ description, examples: ['pass'] })
const AuthenticationSchema = t.Object(
  {
    spf: Word('Whether the sending host may use the envelope sender (RFC 7208).'),
    dkim: Word('Whether a signature is valid (RFC 6376).'),
    dmarc: Word('Whether SPF or DKIM passes for the domain in From (RFC 7489).'),
    arc: Word('Whether the chain of forwarders is valid (RFC 8617).'),
    internal: t.Boolean({ description: 'The message came from an inbox of this service.' }),
    aligned: t.Optional(
      t.Boolean({
        description:
          'SPF or DKIM passes for the domain in From, with or without a DMARC policy; or the message is internal.',
      }),
    ),
    providerSpf: t.Optional(
      Word(
        'What the service that handed the mail over by HTTP says about SPF; `spf` is then none.',
      ),
    ),
  },
  {
    description:
      'Received messages only; result words of RFC 8601. The label unauthenticated marks mail with a From that nothing vouches ' +
      'for: dmarc fails or cannot be judged, or no SPF and no DKIM passes for its domain.',
  },
)

const InboxId = t.String({ examples: ['agent@mail.example.com'] })
const IF_FULL = 'With ANSWERS=full only.'
const InboxIdIfFull = t.Optional(t.String({ description: IF_FULL }))

/** Describes a message in a list: without cc, and by default without inboxId (docs/contract.md §4). */
const MessageItem = t.Object({
  messageId: MessageId,
  threadId: ThreadId,
  from: Addresses,
  to: Addresses,
  subject: t.String(),
  text: t.String(),
  extractedText: t.Optional(
    t.String({
      description:
        'Text without quoted history; received messages only. With ANSWERS=full, sent ones show text.',
    }),
  ),
  labels: Labels,
  createdAt: Time,
})

const Highlights = t.Array(
  t.Object({
    text: t.String({ description: 'An excerpt of the field.' }),
    ranges: t.Array(t.Array(t.Integer(), { minItems: 2, maxItems: 2 }), {
      description: 'Matches in the excerpt: start and end, in UTF-16 units.',
    }),
  }),
)

/** Describes a message in a list. Search results hold the matched excerpts too. */
export const FoundMessage = t.Composite([
  MessageItem,
  t.Object({
    inboxId: InboxIdIfFull,
    cc: t.Optional(t.Array(t.String(), { description: IF_FULL })),
    highlights: t.Optional(
      t.Object({ subject: Highlights, text: Highlights }, { description: 'Search results only.' }),
    ),
  }),
])

/** Describes a message with all its fields, as get-message and get-thread return it. */
export const WholeMessage = t.Composite([
  MessageItem,
  t.Object({
    inboxId: InboxId,
    cc: Addresses,
    attachments: t.Array(AttachmentSchema),
    deliveryStatus: t.Optional(
      t.String({
        description:
          'Sent messages only. On the way: queued, sent, deferred, bounced or failed. Waiting: scheduled or held. Ended unsent: ' +
          'cancelled, rejected or expired.',
      }),
    ),
    deliveryError: t.Optional(
      t.Union([t.String(), t.Null()], {
        description: "The other host's answer, or the owner's reason for a rejection.",
      }),
    ),
    sendAt: t.Optional(t.String({ format: 'date-time', description: 'Scheduled messages only.' })),
    authentication: t.Optional(AuthenticationSchema),
  }),
])

const CodeSchema = t.Object({
  kind: t.Union([t.Literal('numeric'), t.Literal('alphanumeric'), t.Literal('words')]),
  value: t.String({ description: 'As it is entered.', examples: ['482913'] }),
  confidence: t.Number({ minimum: 0, maximum: 1 }),
  part: t.Union(
    [t.Literal('subject'), t.Literal('text'), t.Literal('html'), t.Literal('attachment')],
    { description: 'The part of the message that holds it.' },
  ),
  attachmentId: t.Optional(t.String({ description: 'Of the part attachment.' })),
  line: t.String({ description: 'The line that holds it.' }),
})

const LinkSchema = t.Object({
  href: t.String({ description: 'As the message has it; a tracking redirect is not followed.' }),
  text: t.String({ description: 'The words of the link; empty for an address in plain text.' }),
  purpose: t.Union(
    (['verify', 'reset', 'sign-in', 'unsubscribe', 'other'] as const).map((one) => t.Literal(one)),
  ),
  sensitive: t.Boolean({ description: 'It resets a password.' }),
})

/** Describes a single message in the responses of get-message and wait. */
export const SingleMessageSchema = t.Composite([
  WholeMessage,
  t.Object({
    codes: t.Optional(
      t.Array(CodeSchema, {
        description:
          'One-time codes, the most certain first, at most ten. Received messages only, and only with the scope mail:codes.',
      }),
    ),
    links: t.Optional(
      t.Array(LinkSchema, {
        description:
          'Links that a person sees, at most fifty. Received messages only, and only with the scope mail:codes.',
      }),
    ),
    invites: t.Optional(
      t.Array(InviteSchema, {
        description:
          'Invitations, updates, cancellations and answers in the message, at most twenty. The word of a stranger. Absent: ' +
          'there are none, or they are still being read (event message.invite).',
      }),
    ),
  }),
])

const Refused = t.Optional(
  t.Array(
    t.Object({
      address: t.String(),
      reason: t.Union([t.Literal('suppressed'), t.Literal('rule')]),
    }),
    {
      description: 'Recipients that a rule or a suppression refused; absent if there are none.',
    },
  ),
)

/** Describes the response to `send`. */
export const SentMessage = t.Object({
  messageId: MessageId,
  threadId: ThreadId,
  inboxId: InboxId,
  from: Addresses,
  to: Addresses,
  cc: Addresses,
  subject: t.String(),
  labels: Labels,
  createdAt: Time,
  refused: Refused,
  deliveryStatus: t.Optional(
    t.Union([t.Literal('scheduled'), t.Literal('held')], {
      description:
        'scheduled: it waits for sendAt. held: it waits for the owner. Absent: it is on its way.',
    }),
  ),
  sendAt: t.Optional(Time),
  event: t.Optional(
    t.Object(
      { uid: t.String(), sequence: t.Integer() },
      { description: 'The event that was announced. To change it, send its uid.' },
    ),
  ),
  text: t.Optional(t.String({ description: IF_FULL })),
  extractedText: t.Optional(t.String({ description: 'The same as text, with ANSWERS=full only.' })),
})

/** Describes the response to `reply`. */
export const RepliedMessage = t.Composite([
  t.Omit(SentMessage, ['inboxId']),
  t.Object({ inboxId: InboxIdIfFull }),
])

/** Names the scope that gives an API key the codes and links of messages. The key needs `mail:read` too. */
export const CODES_SCOPE = 'mail:codes' satisfies Scope

type Answers = Config['answers']

/** Returns a message in the form that a list of messages holds. */
export const toItem = (message: Message, answers: Answers) => ({
  ...toHead(message, answers),
  ...(answers === 'full' ? { inboxId: message.inboxAddress, cc: message.cc } : {}),
})

const toHead = (message: Message, answers: Answers) => ({
  messageId: message.messageId,
  threadId: message.threadId,
  from: message.from,
  to: message.to,
  subject: message.subject,
  text: message.text,
  ...(message.direction === 'received' ? { extractedText: message.extractedText ?? '' } : {}),
  ...(message.direction === 'sent' && answers === 'full' ? { extractedText: message.text } : {}),
  labels: message.labels,
  createdAt: message.createdAt.toISOString(),
})

/** Returns a message in the form that search results hold. */
export function toFound(message: Message, queries: readonly SearchQuery[], answers: Answers) {
  const query = { clauses: queries.flatMap(({ clauses }) => clauses) }
  return {
    ...toItem(message, answers),
    highlights: {
      subject: highlight(message.subject, query, 'subject'),
      text: highlight(message.text, query, 'text'),
    },
  }
}

const NO_TEXT: AttachmentText = { state: 'none', chars: 0, omitted: [] }

/** Returns a message with all its fields in the form of the API. */
export const toWhole = (message: Message, answers: Answers) => ({
  ...toHead(message, answers),
  inboxId: message.inboxAddress,
  cc: message.cc,
  attachments:
    message.direction === 'sent'
      ? message.attachments
      : message.attachments.map((one) => ({ ...one, text: one.text ?? NO_TEXT })),
  ...(message.direction === 'sent'
    ? {
        deliveryStatus: message.deliveryStatus,
        deliveryError: message.deliveryError,
        ...(message.sendAt === null ? {} : { sendAt: message.sendAt.toISOString() }),
      }
    : { authentication: message.authentication ?? UNCHECKED }),
})

/**
 * Returns a message with all its fields, as `get-message` and `wait` return it. An API key without the scope
 * `mail:codes` gets no codes and no links.
 */
export function toSingle(
  message: SingleMessage,
  answers: Answers,
  { scopes }: { scopes: readonly string[] },
) {
  const hasFound = message.direction === 'received' && scopes.includes(CODES_SCOPE)
  return {
    ...toWhole(message, answers),
    ...(hasFound ? { codes: codesOf(message), links: linksOf(message) } : {}),
  }
}

/**
 * Returns the codes of a message. An earlier version stored messages without codes. For such a message, the codes are
 * searched in subject and text at each read.
 */
const codesOf = ({ codes, subject, text }: SingleMessage) =>
  codes ?? findCodes({ subject, text, html: null })
const linksOf = ({ links, subject, text }: SingleMessage) =>
  links ?? findLinks({ subject, text, html: null })
