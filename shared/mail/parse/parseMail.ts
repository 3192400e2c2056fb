import { createHash } from 'node:crypto'
import {
  type Address,
  addressParser,
  type Email,
  type Attachment as ParsedAttachment,
} from 'postal-mime'
import { restoreQuotes } from '../address.ts'
import { codeParts } from '../codes/codeParts.ts'
import { type Code, findCodes } from '../codes/codes.ts'
import { findLinks, type MailLink } from '../codes/links/mailLinks.ts'
import { firstWithin } from '../firstWithin.ts'
import { replyText, replyTextFromHtml } from '../replyText/replyText.ts'
import { isMessageId, parseReferences, type ThreadLinks } from '../threading.ts'
import { htmlToText, MAX_HTML_LENGTH } from '../visibleText/htmlToText.ts'
import { holdsTags, readableText as readable, saysElse } from '../visibleText/readableText.ts'
import { visibleHtml } from '../visibleText/visibleHtml.ts'
import { automaticLabels } from './automaticMail.ts'
import { type Bounce, readBounce } from './dsn.ts'
import { type Complaint, readComplaint } from './feedbackReport.ts'
import { parseBounded } from './mimeBounds.ts'
import { contentHash, rawBody, rawHeader, rawHeaders } from './rawMail.ts'

/** Describes an attachment in the form of the API (docs/contract.md §4). */
export type Attachment = {
  attachmentId: string
  filename: string
  contentType: string
  /** Counts the bytes of the attachment after decoding. */
  size: number
  contentId: string | null
  disposition: string
  /**
   * Holds the result of reading the attachment. The field `text` is absent if no worker process will read the
   * attachment's text.
   */
  text?: AttachmentText
}

/**
 * Names the state of reading an attachment. The state `pending` means that the attachment has not been read yet. The
 * state `none` means that the attachment contains no text.
 */
export type AttachmentState = 'pending' | 'ready' | 'none' | 'failed'

/**
 * Holds the result of reading an attachment. The field `omitted` lists the kinds of words that the extracted text
 * leaves out (documents/document.ts).
 */
export type AttachmentText = {
  state: AttachmentState
  chars: number
  reason?: string
  omitted: string[]
}

/** Holds an attachment with its content. */
type ReceivedAttachment = Attachment & { content: Uint8Array }

/**
 * Holds the content of a received message. No text in the parsed mail contains U+0000, because PostgreSQL refuses this
 * character.
 */
export type ParsedMail = {
  links: ThreadLinks
  contentHash: Buffer
  from: string[]
  to: string[]
  cc: string[]
  replyTo: string[]
  subject: string
  text: string
  html: string | null
  extractedText: string
  codes: Code[]
  mailLinks: MailLink[]
  attachments: ReceivedAttachment[]
  labels: string[]
  /** Holds the bounce in the message. Null means that the message is no bounce. */
  bounce: Bounce | null
  /** Holds the complaint in the message. Null means that the message is no complaint. */
  complaint: Complaint | null
}

/**
 * Sets the maximum number of characters of `text` and of `extractedText`, because a page of the API holds several
 * messages in memory. A single text of 35 MB took 500 MB for each request.
 */
const MAX_TEXT_LENGTH = 1_000_000
const MAX_ADDRESSES = 1_000
/** Sets the maximum number of characters of the addresses in the fields From, To, Cc or Reply-To. */
const MAX_ADDRESSES_LENGTH = 16_000
/** Sets the maximum number of described attachments of a message. The raw mail still contains further attachments. */
const MAX_ATTACHMENTS = 1_000
const MAX_ADDRESS_LENGTH = 320
const MAX_SUBJECT_LENGTH = 4_000
const MAX_FILENAME_LENGTH = 255
const MAX_CONTENT_TYPE_LENGTH = 255
const MAX_CONTENT_ID_LENGTH = 998
/**
 * Sets how many bytes of an unparseable message the service shows as text. The service keeps the whole raw mail in any
 * case.
 */
const UNPARSEABLE_TEXT_BYTES = 256 * 1024

/**
 * Reads a received message (RFC 5322, MIME).
 * @param raw holds the bytes as received.
 * @param domain is the domain for a new Message-ID, which the service makes if the message has no valid Message-ID.
 * @throws the errors of the MIME parser. After such an error, the caller stores the message with `unparseableMail`.
 */
export async function parseMail(raw: Uint8Array, domain: string): Promise<ParsedMail> {
  const { email, isWhole, parts } = await parseBounded(raw)
  const html = email.html === undefined ? null : clean(email.html)
  const shown = html === null ? null : visibleHtml(html, MAX_HTML_LENGTH)
  const plainText = clean(email.text ?? '', MAX_TEXT_LENGTH)
  const parsed = readable(normaliseLines(plainText))
  const isFound = parsed.trim() !== '' || html !== null || email.attachments.length > 0 || parts > 0
  // If the parser finds no MIME part, the text of the mail is the raw body. This happens if the MIME boundary or the
  // whole header is missing.
  const unfound = isFound
    ? ''
    : readable(normaliseLines(clean(rawBody(raw, UNPARSEABLE_TEXT_BYTES)))).trim()
  const plain = unfound === '' ? parsed : unfound
  const fromHtml = plain.trim() === '' && shown !== null
  const seen = shown === null ? '' : readable(htmlToText(shown.html))
  const hidesText =
    (shown?.hidesText ?? false) ||
    [email.subject, email.text, html].some((part) => holdsTags(part ?? ''))
  const bounce = readBounce(email)
  const subject = oneLine(email.subject ?? '')
  const text = clean(fromHtml ? seen : plain, MAX_TEXT_LENGTH)
  const fields = {
    from: authors(email.headers.flatMap(({ key, value }) => (key === 'from' ? value : []))),
    to: addresses(email.to),
    cc: addresses(email.cc),
    replyTo: addresses(email.replyTo),
  }
  const isCut =
    !isWhole ||
    (email.text?.length ?? 0) > MAX_TEXT_LENGTH ||
    (fromHtml && seen.length > MAX_TEXT_LENGTH) ||
    Object.values(fields).some(({ isCut: isFieldCut }) => isFieldCut)
  const coded = codeParts({ subject, text, shown: shown?.html ?? null, seen })
  // The code does not search for links in a text that was made from the HTML, because the HTML has the same links.
  const linked = { subject, text: fromHtml ? '' : plain, html: shown?.html ?? null }
  return {
    links: readLinks(email, raw, domain),
    contentHash: contentHash(raw),
    from: fields.from.kept,
    to: fields.to.kept,
    cc: fields.cc.kept,
    replyTo: fields.replyTo.kept,
    subject,
    text,
    html,
    extractedText: clean(
      fromHtml ? readable(replyTextFromHtml(shown.html)) : replyText(plain),
      MAX_TEXT_LENGTH,
    ),
    // The code does not search a bounce for one-time codes, because the numbers in a bounce come from mail hosts.
    codes: bounce === null ? findCodes(coded) : [],
    mailLinks: findLinks(linked),
    attachments: email.attachments.slice(0, MAX_ATTACHMENTS).map(describeAttachment),
    // A bounce gets no label `auto-reply`. It is no automatic reply, although it has the header field Auto-Submitted.
    labels: [
      'received',
      'unread',
      ...(isCut ? [TRUNCATED_LABEL] : []),
      ...(unfound === '' ? [] : [UNPARSEABLE_LABEL]),
      ...(hidesText ? [HIDDEN_TEXT_LABEL] : []),
      ...(shown !== null && !fromHtml && saysElse(plain, seen) ? [TEXT_DIFFERS_LABEL] : []),
      ...(bounce === null ? automaticLabels(email.headers) : []),
    ],
    bounce,
    complaint: readComplaint(email),
  }
}

/**
 * Holds the label of a message of which the service shows only a part. The raw mail contains more text, addresses or
 * attachments.
 */
const TRUNCATED_LABEL = 'truncated'
/** Holds the label of an unparseable message, which the service shows as raw text. */
const UNPARSEABLE_LABEL = 'unparseable'

/**
 * Holds the label of a message that contains text which a person does not see. The field `text` leaves out this hidden
 * text.
 */
export const HIDDEN_TEXT_LABEL = 'hidden-text'
/** Holds the label of a message whose plain text differs from its HTML. */
const TEXT_DIFFERS_LABEL = 'text-differs'

/**
 * Makes the substitute for a message that cannot be parsed. The substitute has the label `unparseable`, and its text is
 * the raw bytes of the message.
 */
export function unparseableMail(raw: Uint8Array, domain: string): ParsedMail {
  const text = readable(
    clean(new TextDecoder('utf-8').decode(raw.subarray(0, UNPARSEABLE_TEXT_BYTES))),
  )
  const messageId = rawHeader(raw, 'Message-ID')
  return {
    links: {
      messageId: isMessageId(messageId ?? '') ? messageId! : derivedMessageId(raw, domain),
      inReplyTo: [],
      references: [],
    },
    contentHash: contentHash(raw),
    from: authors(rawHeaders(raw, 'From')).kept,
    to: [],
    cc: [],
    replyTo: [],
    subject: oneLine(rawHeader(raw, 'Subject') ?? ''),
    text,
    html: null,
    extractedText: text,
    codes: [],
    mailLinks: [],
    attachments: [],
    labels: ['received', 'unread', UNPARSEABLE_LABEL],
    bounce: null,
    complaint: null,
  }
}

/**
 * Computes a Message-ID from the content of a message. The same bytes give the same Message-ID, so that the service
 * recognises a repeated transmission.
 */
function derivedMessageId(raw: Uint8Array, domain: string): string {
  return `<${createHash('sha256').update(contentHash(raw)).digest('hex').slice(0, 32)}@${domain}>`
}

function readLinks(email: Email, raw: Uint8Array, domain: string): ThreadLinks {
  const messageId = clean(email.messageId ?? '').trim()
  return {
    messageId: isMessageId(messageId) ? messageId : derivedMessageId(raw, domain),
    inReplyTo: parseReferences(clean(email.inReplyTo ?? '')),
    references: parseReferences(clean(email.references ?? '')),
  }
}

/**
 * Replaces U+0000 and lone surrogates by U+FFFD, because PostgreSQL refuses U+0000 in text and lone surrogates in JSON.
 * The function cuts the text before the replacement, because the cut can split a surrogate pair.
 */
const clean = (text: string, maxLength = Number.POSITIVE_INFINITY): string =>
  text.slice(0, maxLength).replaceAll('\u0000', '\ufffd').toWellFormed()

/** Writes a subject in one line, even if an encoded word (RFC 2047) contains line breaks. */
const oneLine = (subject: string): string =>
  readable(clean(subject, MAX_SUBJECT_LENGTH))
    .replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .trim()

const normaliseLines = (text: string): string => text.replace(/\r\n?/g, '\n')

/** Holds the kept addresses of a header field, and tells whether the field has more addresses. */
type Addresses = { kept: string[]; isCut: boolean }

/**
 * Returns the distinct bare addresses of a header field in their order. The members of an address group stand in the
 * place of the group.
 */
function addresses(parsed: Address[] | undefined): Addresses {
  const mailboxes = (parsed ?? []).flatMap((entry) => entry.group ?? [entry])
  const texts = mailboxes.flatMap(({ address }) =>
    address === undefined ? [] : restoreQuotes(clean(address).trim()),
  )
  const usable = texts.filter((text) => text !== '' && text.length <= MAX_ADDRESS_LENGTH)
  const all = [...new Set(usable)]
  const kept = firstWithin(all.slice(0, MAX_ADDRESSES), MAX_ADDRESSES_LENGTH)
  return { kept, isCut: kept.length < all.length }
}

/** Returns the addresses of all From fields, because postal-mime returns only the first From field. */
const authors = (fields: string[]): Addresses =>
  addresses(fields.slice(0, MAX_ADDRESSES).flatMap((field) => addressParser(field)))

function describeAttachment(part: ParsedAttachment, index: number): ReceivedAttachment {
  const content = bytesOf(part.content)
  return {
    attachmentId: `att_${index + 1}`,
    filename: readable(clean(part.filename ?? `attachment-${index + 1}`, MAX_FILENAME_LENGTH)),
    contentType: clean(part.mimeType, MAX_CONTENT_TYPE_LENGTH),
    size: content.byteLength,
    contentId: part.contentId === undefined ? null : clean(part.contentId, MAX_CONTENT_ID_LENGTH),
    disposition: part.disposition === 'inline' ? 'inline' : 'attachment',
    content,
  }
}

function bytesOf(content: ParsedAttachment['content']): Uint8Array {
  if (typeof content === 'string') return Buffer.from(content)
  return content instanceof Uint8Array ? content : new Uint8Array(content)
}
