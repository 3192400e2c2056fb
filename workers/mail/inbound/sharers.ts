import { networkSubject } from '../../../shared/http/networkSubject.ts'
import type { InboundMail } from '../../../sql/mail/inbound/inboundMails.ts'

/**
 * Returns the two parties that share the parser for a mail: the inbox and the sending network. The inbox and the
 * sending network are each charged for the cost of the mail.
 */
export const sharersOf = (mail: Pick<InboundMail, 'projectId' | 'remoteIp'>): string[] => [
  mail.projectId,
  networkOf(mail),
]

/**
 * Returns the network that sent a mail. For mail from an inbox of this service, returns the inbox that receives the
 * mail.
 */
export const networkOf = ({
  projectId,
  remoteIp,
}: Pick<InboundMail, 'projectId' | 'remoteIp'>): string =>
  remoteIp === null ? `internal ${projectId}` : networkSubject(remoteIp)
