import type { MailContent } from './composeMail.ts'

/** A mail of the service itself to one person: lines of text, and no automatic answer to it. */
export const serviceContent = ({
  id,
  mailDomain,
  address,
  subject,
  lines,
  date,
}: {
  /** The part of the Message-ID before the @. */
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
  // RFC 3834: no automatic answers.
  headers: { 'Auto-Submitted': 'auto-generated' },
})
