import { createHash } from 'node:crypto'
import type { MailContent } from './composeMail.ts'

/** Tells the mails of one request apart: each approver's has a link of its own. */
const mark = (address: string): string =>
  createHash('sha256').update(address).digest('hex').slice(0, 12)

/** The mail that tells an owner of a held letter. It holds the link, and no word of the letter's text. */
export function approvalNotice(about: {
  approvalId: string
  mailDomain: string
  address: string
  projectName: string
  subject: string
  recipients: readonly string[]
  link: string
  date: Date
  expiresAt: Date
}): MailContent {
  const line = (text: string) => text.replace(/\s+/g, ' ').trim()
  return {
    messageId: `<${about.approvalId}.${mark(about.address)}@${about.mailDomain}>`,
    date: about.date,
    fromName: 'Purser',
    fromAddress: `no-reply@${about.mailDomain}`,
    to: [about.address],
    cc: [],
    names: {},
    subject: `A mail of ${line(about.projectName)} waits for you`,
    text: [
      `${line(about.projectName)} wants to send a mail. It waits until you decide.`,
      '',
      `To: ${about.recipients.join(', ')}`,
      `Subject: ${line(about.subject)}`,
      '',
      'Read it, then approve or reject it:',
      about.link,
      '',
      `The link works once, until ${about.expiresAt.toISOString()}. Whoever has it can decide: do not forward it.`,
      '',
    ].join('\n'),
    html: null,
    inReplyTo: [],
    references: [],
    attachments: [],
    unsubscribe: null,
    // RFC 3834: no automatic answers.
    headers: { 'Auto-Submitted': 'auto-generated' },
  }
}
