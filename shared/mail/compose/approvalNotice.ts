import { createHash } from 'node:crypto'
import type { MailContent } from './composeMail.ts'
import { serviceContent } from './serviceContent.ts'

/**
 * Computes from an approver's address a mark that is put into the Message-ID of the approval notice. The mark in the
 * Message-ID distinguishes the mails to several approvers of one approval request, because each mail has its own link.
 */
const mark = (address: string): string =>
  createHash('sha256').update(address).digest('hex').slice(0, 12)

/** Describes the action that waits for the owner's decision: a mail, or a payment. */
export type AskedAct =
  | { kind: 'mail'; subject: string; recipients: readonly string[] }
  | { kind: 'payment'; host: string; amountUsdc: string; payTo: string }

const line = (text: string) => text.replace(/\s+/g, ' ').trim()

/**
 * Writes the lines that describe the waiting mail or payment to the owner. The notice to the owner contains neither the
 * text of the waiting mail, nor any words of the agent or of the seller.
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
 * Writes the mail that notifies an owner of a waiting mail or payment. The notice to the owner holds the link to the
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
