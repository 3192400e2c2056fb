import type { MailContent } from './composeMail.ts'

/**
 * Makes the content of a mail from the service itself to one person. A mail from the service itself contains lines of
 * text. The header of the mail asks mail programs to send no automatic reply.
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
  // The field Auto-Submitted prevents automatic replies (RFC 3834).
  headers: { 'Auto-Submitted': 'auto-generated' },
})
