import { type Static, Type as t } from '@sinclair/typebox'
import { parseIsoTime } from '../../../shared/isoTime.ts'
import {
  ADDRESS_MAX_LENGTH,
  addressKey,
  type Mailbox,
  parseMailbox,
} from '../../../shared/mail/address.ts'
import {
  type CustomHeaders,
  readCustomHeaders,
} from '../../../shared/mail/compose/customHeaders.ts'
import {
  CONTENT_ID_MAX_LENGTH,
  decodeBase64,
  isAttachmentType,
  literalName,
  MEDIA_TYPE_MAX_LENGTH,
  parseContentId,
  type SentAttachment,
} from '../../../shared/mail/compose/sentAttachment.ts'
import {
  parseUnsubscribeMailto,
  parseUnsubscribeUrl,
  UNSUBSCRIBE_URL_MAX_LENGTH,
  type Unsubscribe,
} from '../../../shared/mail/compose/unsubscribe.ts'
import { badRequest } from '../../http/errors.ts'
import { BODY_MAX_BYTES } from '../../http/input/body.ts'
import { EventInput } from '../calendar/eventInput.ts'

/** Sets the maximum number of recipients of one message in to, cc and bcc together (docs/contract.md §4). */
export const RECIPIENTS_MAX = 50
/**
 * Sets the maximum number of characters of a subject, because a header line of a message has at most 998 characters
 * (RFC 5322 §2.1.1).
 */
export const SUBJECT_MAX_LENGTH = 998

const AddressList = (minItems: number) =>
  t.Array(t.String({ maxLength: 500 }), {
    minItems,
    maxItems: RECIPIENTS_MAX,
    examples: [['ada@example.com']],
    description: 'An address may have a display name: Jane Doe <jane@example.net>.',
  })

/**
 * Sets the maximum number of characters of the text body of a mail, and of its HTML body. It equals the maximum number
 * of bytes of a request body without attachments.
 */
const TEXT_MAX_LENGTH = BODY_MAX_BYTES
const Text = t.String({
  maxLength: TEXT_MAX_LENGTH,
  description: 'This text is the plain-text body.',
})
const Html = t.Optional(
  t.String({
    maxLength: TEXT_MAX_LENGTH,
    description: 'This text is the HTML body. The message is then sent as multipart/alternative.',
  }),
)

const ATTACHMENTS_MAX = 50
/**
 * Sets the maximum number of bytes of all attachments of a message together, because Base64 makes them a third larger,
 * and most mail hosts accept messages of up to 35 MB.
 */
const ATTACHMENTS_MAX_BYTES = 25 * 1024 * 1024
/** Returns how many characters a given number of bytes takes in base64 (RFC 4648 §4). */
const base64Length = (bytes: number): number => 4 * Math.ceil(bytes / 3)
const FILENAME_MAX_LENGTH = 255

const Attachments = t.Optional(
  t.Array(
    t.Object({
      filename: t.String({
        minLength: 1,
        maxLength: FILENAME_MAX_LENGTH,
        pattern: '^[^\\u0000-\\u001f\\u007f-\\u009f]*$',
        error: `be 1 to ${FILENAME_MAX_LENGTH} characters without control characters`,
      }),
      contentType: t.String({
        examples: ['application/pdf'],
        openapi: { maxLength: MEDIA_TYPE_MAX_LENGTH },
      }),
      content: t.String({
        description: 'The bytes are written in base64.',
        openapi: { maxLength: base64Length(ATTACHMENTS_MAX_BYTES) },
      }),
      contentId: t.Optional(
        t.String({
          description: 'The HTML body can show the attachment by the address cid:CONTENT_ID.',
          openapi: { maxLength: CONTENT_ID_MAX_LENGTH },
        }),
      ),
    }),
    {
      maxItems: ATTACHMENTS_MAX,
      description: `At most ${ATTACHMENTS_MAX} files, of ${ATTACHMENTS_MAX_BYTES} bytes together.`,
    },
  ),
)

const UnsubscribeInput = t.Optional(
  t.Object(
    {
      url: t.Optional(
        t.String({
          description: 'A POST to this https URL unsubscribes (RFC 8058).',
          openapi: { maxLength: UNSUBSCRIBE_URL_MAX_LENGTH },
        }),
      ),
      mailto: t.Optional(
        t.String({
          description: 'A mail to this address unsubscribes.',
          openapi: { maxLength: ADDRESS_MAX_LENGTH },
        }),
      ),
    },
    {
      description:
        'The mail gets the headers List-Unsubscribe and List-Unsubscribe-Post, so that a recipient unsubscribes with one click.',
    },
  ),
)

const HeadersInput = t.Optional(
  t.Record(t.String(), t.String(), {
    description: 'Header fields to add: X-*, List-* and Auto-Submitted, at most 20.',
    examples: [{ 'X-Order': '5521' }],
  }),
)

/** Sets how many days in advance a caller can schedule a mail. */
const SEND_AT_MAX_DAYS = 366
const SendAt = t.Optional(
  t.String({
    maxLength: 40,
    description: `The mail leaves at this time (ISO 8601 with a zone), at most ${SEND_AT_MAX_DAYS} days ahead. Until then you can cancel the mail.`,
    examples: ['2026-01-31T09:30:00Z'],
  }),
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
  attachments: Attachments,
  unsubscribe: UnsubscribeInput,
  headers: HeadersInput,
  sendAt: SendAt,
  event: EventInput,
})

export const ReplyBody = t.Object({
  text: Text,
  html: Html,
  replyAll: t.Optional(
    t.Boolean({
      description: 'True also sends the answer to the other recipients of the original.',
    }),
  ),
  attachments: Attachments,
  headers: HeadersInput,
  sendAt: SendAt,
})

/** Reads a list of mailboxes and removes duplicates. @throws {ApiError} 400 with the position of an invalid mailbox. */
export function readMailboxes(field: string, texts: string[]): Mailbox[] {
  const mailboxes = texts.map((text, n) => {
    const mailbox = parseMailbox(text)
    if (mailbox === null && /[^ -~][^\s<>@]*@/.test(text)) {
      throw badRequest(`${field}[${n}] must be ASCII before the @ (SMTPUTF8 is not supported)`)
    }
    if (mailbox === null) {
      throw badRequest(
        `${field}[${n}] must be one email address, such as ada@example.com or Ada <ada@example.com>`,
      )
    }
    return mailbox
  })
  return [...new Map(mailboxes.map((one) => [addressKey(one.address), one])).values()]
}

/** Returns the display names of mailboxes by address. Returns `null` if no mailbox has a display name. */
export function namesOf(mailboxes: readonly Mailbox[]): Record<string, string> | null {
  const named = mailboxes.flatMap(({ address, name }) => (name === null ? [] : [[address, name]]))
  return named.length === 0 ? null : Object.fromEntries(named)
}

/** Removes duplicate email addresses, without regard to upper and lower case. */
export function unique(addresses: string[]): string[] {
  return [...new Map(addresses.map((address) => [addressKey(address), address])).values()]
}

/** Reads the attachments of a mail to send. @throws {ApiError} 400 with the position of an invalid attachment. */
export function readAttachments(given: Static<typeof Attachments> = []): SentAttachment[] {
  const contentIds = new Set<string>()
  let bytes = 0
  return given.map(({ filename, contentType, content: encoded, contentId: id }, n) => {
    const field = `attachments[${n}]`
    if (!isAttachmentType(contentType)) {
      throw badRequest(
        `${field}.contentType must be a media type such as application/pdf, and not multipart`,
      )
    }
    const content = decodeBase64(encoded)
    if (content === null) throw badRequest(`${field}.content must be base64 (RFC 4648, section 4)`)
    bytes += content.length
    if (bytes > ATTACHMENTS_MAX_BYTES) {
      throw badRequest(`attachments must be at most ${ATTACHMENTS_MAX_BYTES} bytes together`)
    }
    const contentId = id === undefined ? null : parseContentId(id)
    if (id !== undefined && contentId === null) {
      throw badRequest(
        `${field}.contentId must be 1 to 255 visible ASCII characters without & # ; %, such as logo`,
      )
    }
    if (contentId !== null && contentIds.has(contentId)) {
      throw badRequest(`${field}.contentId must differ from the earlier ones`)
    }
    if (contentId !== null) contentIds.add(contentId)
    return { filename: literalName(filename), contentType, contentId, content }
  })
}

/**
 * Reads the additional header fields of a mail to send. Returns `null` if the mail has no additional header fields.
 * @throws {ApiError} 400 with the name of the invalid header field.
 */
export function readHeaders(
  given: Static<typeof HeadersInput> | undefined,
  withUnsubscribe: boolean,
): CustomHeaders | null {
  if (given === undefined) return null
  const read = readCustomHeaders(given, withUnsubscribe)
  if ('error' in read) throw badRequest(read.error)
  return read.headers
}

/**
 * Reads the unsubscribe settings of a mail to send. Returns `null` if the mail has no unsubscribe settings. @throws
 * {ApiError} 400 for invalid settings.
 */
export function readUnsubscribe(
  given: Static<typeof UnsubscribeInput> | undefined,
): Unsubscribe | null {
  if (given === undefined) return null
  const url = given.url === undefined ? null : parseUnsubscribeUrl(given.url)
  if (given.url !== undefined && url === null) {
    throw badRequest(
      `unsubscribe.url must be an https URL of at most ${UNSUBSCRIBE_URL_MAX_LENGTH} characters`,
    )
  }
  const mailto = given.mailto === undefined ? null : parseUnsubscribeMailto(given.mailto)
  if (given.mailto !== undefined && mailto === null) {
    throw badRequest('unsubscribe.mailto must be one email address, such as leave@example.com')
  }
  if (url === null && mailto === null) throw badRequest('unsubscribe must hold url or mailto')
  return { url, mailto }
}

const DAY_MS = 24 * 60 * 60 * 1000

/**
 * Reads the time at which the service must send a mail. Null means at once.
 * @throws {ApiError} 400 for an invalid time.
 */
export function readSendAt(given: string | undefined): Date | null {
  if (given === undefined) return null
  const at = given.includes('T') ? parseIsoTime(given) : null
  if (at === null) {
    throw badRequest('sendAt must be an ISO 8601 time with a zone, such as 2026-01-31T09:30:00Z')
  }
  const waitMs = at.getTime() - Date.now()
  if (waitMs <= 0 || waitMs > SEND_AT_MAX_DAYS * DAY_MS) {
    throw badRequest(`sendAt must lie in the future, at most ${SEND_AT_MAX_DAYS} days ahead`)
  }
  return at
}
