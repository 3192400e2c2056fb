import type { MailContent } from './composeMail.ts'

/** Makes a mail of the service itself to one person. It has lines of text, and asks for no automatic reply. */
export const serviceContent = ({
  id,
  mailDomain,
  address,
  subject,
  lines,
  date,
}: {
  /** Is the part of the Message-ID before the @. */
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
  // RFC 3834: this field prevents automatic replies.
  headers: { 'Auto-Submitted': 'auto-generated' },
})
