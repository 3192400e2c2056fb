import MailComposer from 'nodemailer/lib/mail-composer'

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
}

/**
 * Composes a message (RFC 5322, MIME): text/plain, or multipart/alternative when there is HTML. Every address must have
 * passed `parseAddress` and every identifier `isMessageId`; the subject is encoded, so nothing can add a header.
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
    newline: '\r\n',
    // Nothing named in a message may make the server read a file or a URL.
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  const message = await composer.compile().build()
  if (content.references.length === 0) return message
  // Written here, one identifier a line: the library would take the space out of a quoted identifier.
  const references = `References: ${content.references.join('\r\n ')}\r\n`
  return Buffer.concat([Buffer.from(references), message])
}

const mailbox = (address: string) => ({ name: '', address })

/** A lone CR or LF would pass through as it is, and RFC 5322 §2.3 allows neither. */
const crlf = (text: string): string => text.replace(/\r\n?|\n/g, '\r\n')
