import { createHash } from 'node:crypto'
import type { MailContent } from './composeMail.ts'
import { serviceContent } from './serviceContent.ts'

/**
 * Computes a mark from an approver's address, for the Message-ID of an approval notice. The notices to several
 * approvers need different Message-IDs, because each notice has a different link.
 */
const mark = (address: string): string =>
  createHash('sha256').update(address).digest('hex').slice(0, 12)

/** Describes the mail or the payment that waits for the owner's decision. */
export type AskedAct =
  | { kind: 'mail'; subject: string; recipients: readonly string[] }
  | { kind: 'payment'; host: string; amountUsdc: string; payTo: string }

const line = (text: string) => text.replace(/\s+/g, ' ').trim()

/**
 * Writes the lines that describe the waiting mail or payment to the owner. The notice contains neither the text of the
 * waiting mail nor any words of the agent or the seller.
 */
const linesOf = (act: AskedAct, projectName: string): string[] =>
  act.kind === 'mail'
    ? [
        `${projectName} wants to send a mail. It waits until you decide.`,
        '',
        `To: ${act.recipients.join(', ')}`,
        `Subject: ${line(act.subject)}`,
      ]
    : [
        `${projectName} wants to pay. The payment waits until you decide.`,
        '',
        `Amount: ${act.amountUsdc} USDC`,
        `Host: ${act.host}`,
        `Payee: ${act.payTo}`,
      ]

/**
 * Writes the mail that notifies an owner of a waiting mail or payment. The approval notice contains the link to the
 * page on which the owner decides.
 */
export function approvalNotice(about: {
  approvalId: string
  mailDomain: string
  address: string
  projectName: string
  act: AskedAct
  link: string
  date: Date
  expiresAt: Date
}): MailContent {
  const project = line(about.projectName)
  return serviceContent({
    id: `${about.approvalId}.${mark(about.address)}`,
    mailDomain: about.mailDomain,
    address: about.address,
    date: about.date,
    subject: `A ${about.act.kind} of ${project} waits for you`,
    lines: [
      ...linesOf(about.act, project),
      '',
      'Read it, then approve or reject it:',
      about.link,
      '',
      `The link works once, until ${about.expiresAt.toISOString()}. Whoever has it can decide: do not forward it.`,
    ],
  })
}
