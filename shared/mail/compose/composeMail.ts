import MailComposer from 'nodemailer/lib/mail-composer'
import { encodeWord } from 'nodemailer/lib/mime-funcs'
import { ENCODED_WORD } from '../address.ts'
import { type CustomHeaders, customFields } from './customHeaders.ts'
import { calendarMethod, literalName, type SentAttachment } from './sentAttachment.ts'
import { type Unsubscribe, unsubscribeFields } from './unsubscribe.ts'

/**
 * Describes the content of a message for the composition. The content has no Bcc, because the sent message must not
 * show its Bcc recipients (RFC 5322 §3.6.3).
 */
export type MailContent = {
  messageId: string
  date: Date
  fromName: string
  fromAddress: string
  to: string[]
  cc: string[]
  /** Holds the display names for To and Cc. The key is the email address. */
  names: Readonly<Record<string, string>>
  subject: string
  text: string
  html: string | null
  inReplyTo: string[]
  references: string[]
  attachments: readonly SentAttachment[]
  unsubscribe: Unsubscribe | null
  /**
   * Holds the caller's header fields that `readCustomHeaders` has accepted. Null means that the caller adds no header
   * fields.
   */
  headers: CustomHeaders | null
}

/**
 * Composes a message (RFC 5322, MIME) as text/plain, or as multipart/alternative with HTML. A message with attachments
 * is multipart/mixed. Attachments with a Content-ID are in multipart/related beside the HTML. The caller has checked
 * every address with `parseAddress`, every identifier with `isMessageId`, and every media type with `isAttachmentType`.
 * The function encodes subject, display names and file names, so that no value can add a header field.
 */
export async function composeMail(content: MailContent): Promise<Buffer> {
  const invitation = content.attachments.find((file) => calendarMethod(file) !== null)
  const composer = new MailComposer({
    messageId: content.messageId,
    date: content.date,
    from: { name: literalName(content.fromName), address: content.fromAddress },
    to: content.to.map(mailbox(content)),
    cc: content.cc.map(mailbox(content)),
    subject: literalSubject(content.subject),
    text: crlf(content.text),
    ...(content.html === null ? {} : { html: crlf(content.html) }),
    ...(content.inReplyTo.length === 0 ? {} : { inReplyTo: content.inReplyTo.join(' ') }),
    ...(invitation === undefined ? {} : { icalEvent: icalEventOf(invitation) }),
    attachments: content.attachments.filter((file) => file !== invitation).map(part),
    newline: '\r\n',
    // The two `disable` options forbid nodemailer to read a file or a URL. A caller of the API writes the content of
    // the message, and could name a file of this machine.
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  const message = await composer.compile().build()
  // Each identifier in the header field References has its own line. On a shared line, nodemailer would remove the
  // space in a quoted identifier.
  const { references, unsubscribe, headers } = content
  const fields = [
    ...(references.length === 0 ? [] : [`References: ${references.join('\r\n ')}\r\n`]),
    ...(unsubscribe === null ? [] : [unsubscribeFields(unsubscribe)]),
    ...(headers === null ? [] : [customFields(headers)]),
  ]
  return fields.length === 0 ? message : Buffer.concat([Buffer.from(fields.join('')), message])
}

/**
 * Returns an invitation as a MIME part beside the text, so that mail programs show buttons for an answer (RFC 6047
 * §2.4). The message also contains a copy of the invitation as an attached file.
 */
const icalEventOf = (file: SentAttachment) => ({
  method: calendarMethod(file) ?? 'PUBLISH',
  filename: literalName(file.filename),
  content: file.content.toString(),
})

const BYTES = 'application/octet-stream'

function part({ filename, contentType, contentId, content }: SentAttachment) {
  // RFC 2046 §5.2.1 forbids base64 for message/rfc822. Therefore a forwarded message whose lines are not plain ASCII
  // gets the type application/octet-stream.
  const isMessage = /^message\//i.test(contentType)
  const encodable = !isMessage || isPlainLines(content)
  return {
    filename: literalName(filename),
    content,
    contentType: encodable ? contentType : BYTES,
    contentTransferEncoding: isMessage && encodable ? ('7bit' as const) : ('base64' as const),
    contentDisposition: contentId === null ? ('attachment' as const) : ('inline' as const),
    ...(contentId === null ? {} : { cid: contentId }),
  }
}

/** Tells whether all lines of a message have at most 998 ASCII characters and end with CRLF (RFC 2045 §2.7). */
function isPlainLines(bytes: Buffer): boolean {
  const text = bytes.toString('latin1')
  if (!/^\p{ASCII}*$/u.test(text) || text.includes('\0')) return false
  return text.split('\r\n').every((line) => line.length <= 998 && !/[\r\n]/.test(line))
}

const mailbox =
  ({ names }: MailContent) =>
  (address: string) => ({ name: literalName(names[address] ?? ''), address })

/**
 * Encodes a subject that contains an encoded word (RFC 2047 §2). Otherwise nodemailer would keep the encoded word, and
 * the recipient's mail program would decode it. The recipient would then read other words than the owner has approved.
 */
const literalSubject = (subject: string): string =>
  subject.includes(ENCODED_WORD) ? encodeWord(subject, 'B', 52) : subject

/** Ends every line with CRLF. RFC 5322 §2.3 forbids a lone CR or LF, which nodemailer would keep. */
const crlf = (text: string): string => text.replace(/\r\n?|\n/g, '\r\n')
