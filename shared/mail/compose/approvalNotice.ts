import { createHash } from 'node:crypto'
import type { MailContent } from './composeMail.ts'
import { serviceContent } from './serviceContent.ts'

/** Tells the mails of one request apart: each approver's has a link of its own. */
const mark = (address: string): string =>
  createHash('sha256').update(address).digest('hex').slice(0, 12)

/** The mail that tells an owner of a held mail. It holds the link, and no word of the held mail's text. */
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
  return serviceContent({
    id: `${about.approvalId}.${mark(about.address)}`,
    mailDomain: about.mailDomain,
    address: about.address,
    date: about.date,
    subject: `A mail of ${line(about.projectName)} waits for you`,
    lines: [
      `${line(about.projectName)} wants to send a mail. It waits until you decide.`,
      '',
      `To: ${about.recipients.join(', ')}`,
      `Subject: ${line(about.subject)}`,
      '',
      'Read it, then approve or reject it:',
      about.link,
      '',
      `The link works once, until ${about.expiresAt.toISOString()}. Whoever has it can decide: do not forward it.`,
    ],
  })
}
