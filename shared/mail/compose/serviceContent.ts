import type { MailContent } from './composeMail.ts'

/**
 * Makes the content of a mail that the service itself sends to one person. The content consists of lines of text. The
 * header asks mail programs to send no automatic reply.
 */
export const serviceContent = ({
  id,
  mailDomain,
  address,
  subject,
  lines,
  date,
}: {
  /** Holds the part of the Message-ID before the @. */
  id: string
  mailDomain: string
  address: string
  subject: string
  lines: readonly string[]
  date: Date
}): MailContent => ({
  messageId: `<${id}@${mailDomain}>`,
  date,
  fromName: 'Purser',
  fromAddress: `no-reply@${mailDomain}`,
  to: [address],
  cc: [],
  names: {},
  subject,
  text: `${lines.join('\n')}\n`,
  html: null,
  inReplyTo: [],
  references: [],
  attachments: [],
  unsubscribe: null,
  // The field Auto-Submitted asks other mail programs to send no automatic reply (RFC 3834).
  headers: { 'Auto-Submitted': 'auto-generated' },
})
