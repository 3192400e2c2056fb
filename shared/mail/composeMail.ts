import MailComposer from 'nodemailer/lib/mail-composer'
import type { SentAttachment } from './sentAttachment.ts'
import { type Unsubscribe, unsubscribeFields } from './unsubscribe.ts'

/** What goes into a message; Bcc is not among it, for it must not appear in what is sent (RFC 5322 §3.6.3). */
export type MailContent = {
  messageId: string
  date: Date
  fromName: string
  fromAddress: string
  to: string[]
  cc: string[]
  subject: string
  text: string
  html: string | null
  inReplyTo: string[]
  references: string[]
  attachments: readonly SentAttachment[]
  unsubscribe: Unsubscribe | null
}

/**
 * Composes a message (RFC 5322, MIME): text/plain, or multipart/alternative when there is HTML; with attachments
 * multipart/mixed, and those with a Content-ID in multipart/related beside the HTML that shows them. Every address must
 * have passed `parseAddress`, every identifier `isMessageId` and every type `isAttachmentType`; subject and file names
 * are encoded, so nothing can add a header.
 */
export async function composeMail(content: MailContent): Promise<Buffer> {
  const composer = new MailComposer({
    messageId: content.messageId,
    date: content.date,
    from: { name: content.fromName, address: content.fromAddress },
    to: content.to.map(mailbox),
    cc: content.cc.map(mailbox),
    subject: content.subject,
    text: crlf(content.text),
    ...(content.html === null ? {} : { html: crlf(content.html) }),
    ...(content.inReplyTo.length === 0 ? {} : { inReplyTo: content.inReplyTo.join(' ') }),
    attachments: content.attachments.map(part),
    newline: '\r\n',
    // Nothing named in a message may make the server read a file or a URL.
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  const message = await composer.compile().build()
  // Written here, one identifier a line: the library would take the space out of a quoted identifier.
  const { references, unsubscribe } = content
  const fields = [
    ...(references.length === 0 ? [] : [`References: ${references.join('\r\n ')}\r\n`]),
    ...(unsubscribe === null ? [] : [unsubscribeFields(unsubscribe)]),
  ]
  return fields.length === 0 ? message : Buffer.concat([Buffer.from(fields.join('')), message])
}

const BYTES = 'application/octet-stream'

function part({ filename, contentType, contentId, content }: SentAttachment) {
  // RFC 2046 §5.2.1 forbids base64 for a message; one that is not plain ASCII lines travels as bytes, unharmed.
  const asItIs = /^message\//i.test(contentType)
  const encodable = !asItIs || isPlainLines(content)
  return {
    filename,
    content,
    contentType: encodable ? contentType : BYTES,
    contentTransferEncoding: asItIs && encodable ? ('7bit' as const) : ('base64' as const),
    contentDisposition: contentId === null ? ('attachment' as const) : ('inline' as const),
    ...(contentId === null ? {} : { cid: contentId }),
  }
}

/** RFC 2045 §2.7: lines of at most 998 ASCII characters, each ended by CRLF. */
function isPlainLines(bytes: Buffer): boolean {
  const text = bytes.toString('latin1')
  if (!/^\p{ASCII}*$/u.test(text) || text.includes('\0')) return false
  return text.split('\r\n').every((line) => line.length <= 998 && !/[\r\n]/.test(line))
}

const mailbox = (address: string) => ({ name: '', address })

/** A lone CR or LF would pass through as it is, and RFC 5322 §2.3 allows neither. */
const crlf = (text: string): string => text.replace(/\r\n?|\n/g, '\r\n')
