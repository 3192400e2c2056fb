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

const SUBJECT_MAX_CHARS = 60
/** Matches characters that a reader does not see. */
const UNSEEN = /[\p{C}\p{Default_Ignorable_Code_Point}]/gu
/** Matches a dot within a name such as `a.example`, which some mail programs show as a link. */
const LINKED_DOT = /(?<=[\p{L}\p{N}])[.\u3002\uff0e\uff61](?=\p{L}[\p{L}\p{N}-])/gu

/**
 * Returns the beginning of a subject, for a notice. The agent wrote the subject, so the function removes links, line
 * breaks, invisible characters and double quotes.
 */
export function shortSubject(subject: string): string {
  const words = line(line(subject).replace(UNSEEN, '')).split(' ')
  const plain = words
    .map((word) => (/:\/\/|^\W{0,9}www\./i.test(word) ? '[link]' : word.replace(LINKED_DOT, '[.]')))
    .join(' ')
    .replace(/["\u201c-\u201f\u00ab\u00bb]/g, "'")
  const signs = [...plain]
  return signs.length <= SUBJECT_MAX_CHARS
    ? plain
    : `${signs.slice(0, SUBJECT_MAX_CHARS - 1).join('')}…`
}

/** Returns the sentence that says what waits for the owner. */
const headOf = ({ kind }: AskedAct, projectName: string): string =>
  kind === 'mail'
    ? `${projectName} wants to send a mail. It waits until you decide.`
    : `${projectName} wants to pay. The payment waits until you decide.`

/**
 * Writes the lines that describe the waiting mail or payment to the owner. They stand below the approval link, because
 * the agent or the seller chose their words.
 */
const linesOf = (act: AskedAct): string[] =>
  act.kind === 'mail'
    ? [`To: ${act.recipients.join(', ')}`, `Subject: "${shortSubject(act.subject)}"`]
    : [`Amount: ${act.amountUsdc} USDC`, `Host: ${act.host}`, `Payee: ${act.payTo}`]

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
      headOf(about.act, project),
      '',
      'Read it, then approve or reject it:',
      about.link,
      '',
      `The link works once, until ${about.expiresAt.toISOString()}. Whoever has it can decide: do not forward it.`,
      '',
      ...linesOf(about.act),
    ],
  })
}
