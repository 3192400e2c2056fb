import { createHash } from 'node:crypto'
import type { Bounce, ReturnedCopy } from './dsn.ts'
import type { ParsedMail } from './parseMail.ts'

const SUBJECT = 'Undelivered mail returned to sender'
const SENTENCE =
  'A mail host returned a message of yours. The sender of its report is not on the allow list.'

/**
 * Reduces a proven bounce to facts that its sender cannot choose: the recipient of the sent copy, the action, the
 * status and a fixed sentence. All other text comes from the recipient's mail host. The allow list of the inbox may not
 * name this host, so its text must not reach the inbox. The service keeps the raw mail of the bounce.
 * @param place holds the address of the inbox, and the domain for the Message-ID of the reduced mail.
 */
export function reduceBounce(
  mail: ParsedMail,
  { bounce, proof }: { bounce: Bounce; proof: ReturnedCopy },
  place: { inboxAddress: string; mailDomain: string },
): ParsedMail {
  const recipients = bounce.recipients.map((one) => ({ ...one, diagnostic: '' }))
  const [first] = recipients
  const text = [
    SENTENCE,
    '',
    `Recipient: ${proof.address}`,
    `Action: ${first?.action ?? 'failed'}`,
    `Status: ${first?.status ?? 'none'}`,
  ].join('\n')
  const id = createHash('sha256').update(mail.contentHash).digest('hex').slice(0, 32)
  return {
    links: {
      messageId: `<${id}@${place.mailDomain}>`,
      inReplyTo: [proof.messageId],
      references: [],
    },
    contentHash: mail.contentHash,
    from: [],
    to: [place.inboxAddress],
    cc: [],
    replyTo: [],
    subject: SUBJECT,
    text,
    html: null,
    extractedText: text,
    codes: [],
    mailLinks: [],
    attachments: [],
    labels: ['received', 'unread'],
    bounce: { ...bounce, recipients, messageIds: [] },
    complaint: null,
  }
}
