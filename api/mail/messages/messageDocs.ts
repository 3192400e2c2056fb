import { Type as t } from '@sinclair/typebox'
import type { Config } from '../../../shared/config/config.ts'
import { findCodes } from '../../../shared/mail/codes/codes.ts'
import { findLinks } from '../../../shared/mail/codes/links/mailLinks.ts'
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
      '`pending` means that a worker has not read the file yet. `none` means that the file holds no text, for example a scan. `failed` means that the reading failed, and `reason` says why.',
  },
)
export const Omitted = t.Array(t.String(), {
  description: `The text leaves out these parts, because a person does not see them at once: ${OMISSIONS.join(', ')}.`,
  examples: [['speaker-notes']],
})
export const TextReason = t.String({
  description:
    'The reason is `malformed`, `encrypted` (the file needs a password), `too_large`, or `too_slow` (the reading took too much time or memory).',
  examples: ['encrypted'],
})

const AttachmentTextSchema = t.Object(
  {
    state: TextState,
    chars: t.Integer({ description: 'The text has this many characters.' }),
    reason: t.Optional(TextReason),
    omitted: Omitted,
  },
  {
    description:
      'GET …/attachments/{attachmentId}/text returns the text of the file. Only received messages have this field.',
  },
)

const AttachmentSchema = t.Object({
  attachmentId: t.String(),
  filename: t.String(),
  contentType: t.String(),
  size: t.Integer({ description: 'The size is the number of bytes after decoding.' }),
  contentId: t.Union([t.String(), t.Null()]),
  disposition: t.String({ examples: ['attachment', 'inline'] }),
  text: t.Optional(AttachmentTextSchema),
})

const Word = (description: string) => t.String({ description, examples: ['pass'] })
const AuthenticationSchema = t.Object(
  {
    spf: Word('SPF says whether the sending host may use the envelope sender (RFC 7208).'),
    dkim: Word('DKIM says whether a signature is valid (RFC 6376).'),
    dmarc: Word('DMARC says whether SPF or DKIM passes for the domain in From (RFC 7489).'),
    arc: Word('ARC says whether the chain of forwarders is valid (RFC 8617).'),
    internal: t.Boolean({
      description: 'True means that the message came from an inbox of this service.',
    }),
    aligned: t.Optional(
      t.Boolean({
        description:
          'True means that SPF or DKIM passes for the domain in From, or that the message is internal. The domain needs no DMARC policy.',
      }),
    ),
    providerSpf: t.Optional(
      Word(
        'The mail service that posted this mail over HTTP gave this result of SPF. `spf` is then none.',
      ),
    ),
  },
  {
    description:
      'Only received messages have this field. The values are result words of RFC 8601. The label `unauthenticated` marks mail ' +
      'whose From address nothing proves: DMARC fails or gives no result, or neither SPF nor DKIM passes for its domain.',
  },
)

const InboxId = t.String({ examples: ['agent@mail.example.com'] })
const IF_FULL = 'The field appears only with ANSWERS=full.'
const InboxIdIfFull = t.Optional(t.String({ description: IF_FULL }))

/** Describes a message in a list. A message in a list has no cc, and by default no inboxId (docs/contract.md §4). */
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
        'This text leaves out the quoted history of a received message. With ANSWERS=full, a sent message repeats `text` here.',
    }),
  ),
  labels: Labels,
  createdAt: Time,
})

const Highlights = t.Array(
  t.Object({
    text: t.String({ description: 'This text is an excerpt of the field.' }),
    ranges: t.Array(t.Array(t.Integer(), { minItems: 2, maxItems: 2 }), {
      description:
        'Each pair gives the start and the end of a match in the excerpt, in UTF-16 units.',
    }),
  }),
)

/** Describes a message in search results, which also holds excerpts with the searched words. */
export const FoundMessage = t.Composite([
  MessageItem,
  t.Object({
    inboxId: InboxIdIfFull,
    cc: t.Optional(t.Array(t.String(), { description: IF_FULL })),
    highlights: t.Optional(
      t.Object(
        { subject: Highlights, text: Highlights },
        { description: 'Only the results of a search have this field.' },
      ),
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
          'Only sent messages have this field. A message on its way is queued, sent, deferred, bounced or failed. A waiting ' +
          'message is scheduled or held. A message that ended unsent is cancelled, rejected or expired.',
      }),
    ),
    deliveryError: t.Optional(
      t.Union([t.String(), t.Null()], {
        description:
          'The text is the answer of the other host, or the reason of the owner who rejected the message.',
      }),
    ),
    sendAt: t.Optional(
      t.String({ format: 'date-time', description: 'Only scheduled messages have this field.' }),
    ),
    authentication: t.Optional(AuthenticationSchema),
  }),
])

const CodeSchema = t.Object({
  kind: t.Union([t.Literal('numeric'), t.Literal('alphanumeric'), t.Literal('words')]),
  value: t.String({ description: 'Enter the code exactly in this form.', examples: ['482913'] }),
  confidence: t.Number({ minimum: 0, maximum: 1 }),
  part: t.Union(
    [t.Literal('subject'), t.Literal('text'), t.Literal('html'), t.Literal('attachment')],
    { description: 'This part of the message holds the code.' },
  ),
  attachmentId: t.Optional(
    t.String({ description: 'This attachment holds the code if `part` is `attachment`.' }),
  ),
  line: t.String({ description: 'This line of the message holds the code.' }),
})

const LinkSchema = t.Object({
  href: t.String({
    description: 'The message holds this address. The service does not follow a tracking redirect.',
  }),
  text: t.String({
    description: 'These words are shown for the link. An address in plain text has none.',
  }),
  purpose: t.Union(
    (['verify', 'reset', 'sign-in', 'unsubscribe', 'other'] as const).map((one) => t.Literal(one)),
  ),
  sensitive: t.Boolean({ description: 'True means that the link resets a password.' }),
})

/** Describes the message in a response of get-message or wait. */
export const SingleMessageSchema = t.Composite([
  WholeMessage,
  t.Object({
    codes: t.Optional(
      t.Array(CodeSchema, {
        description:
          'The list holds at most ten one-time codes, and the most certain code comes first. Only received messages have this field, and the key needs the scope mail:codes.',
      }),
    ),
    links: t.Optional(
      t.Array(LinkSchema, {
        description:
          'The list holds at most fifty links that a person sees. Only received messages have this field, and the key needs the scope mail:codes.',
      }),
    ),
    invites: t.Optional(
      t.Array(InviteSchema, {
        description:
          'The list holds at most twenty invitations, updates, cancellations and answers of the message. A stranger wrote them. ' +
          'Without this field, the message holds none, or a worker still reads them (event message.invite).',
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
      description:
        'A rule or a suppression refused these recipients. The field is absent if nobody was refused.',
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
        '`scheduled` means that the mail waits for `sendAt`. `held` means that the mail waits for the owner. Without this field, the mail is on its way.',
    }),
  ),
  sendAt: t.Optional(Time),
  event: t.Optional(
    t.Object(
      { uid: t.String(), sequence: t.Integer() },
      { description: 'This event was announced. To change the event, send its `uid`.' },
    ),
  ),
  text: t.Optional(t.String({ description: IF_FULL })),
  extractedText: t.Optional(
    t.String({ description: 'This field repeats `text`, and appears only with ANSWERS=full.' }),
  ),
})

/** Describes the response to `reply`. */
export const RepliedMessage = t.Composite([
  t.Omit(SentMessage, ['inboxId']),
  t.Object({ inboxId: InboxIdIfFull }),
])

/**
 * Names the scope that an API key needs to get the codes and links of messages. The API key also needs the scope
 * `mail:read`.
 */
export const CODES_SCOPE = 'mail:codes' satisfies Scope

type Answers = Config['answers']

/** Returns a message in the form in which a list of messages shows it. */
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

/** Returns a message in the form in which search results show it. */
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
 * `mail:codes` gets no one-time codes and no links.
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
 * Returns the one-time codes in a message. A message that an earlier version of the service stored has no stored codes.
 * In this case, the function then searches its subject and its text at each read.
 */
const codesOf = ({ codes, subject, text }: SingleMessage) =>
  codes ?? findCodes({ subject, text, html: null })
const linksOf = ({ links, subject, text }: SingleMessage) =>
  links ?? findLinks({ subject, text, html: null })
