import { networkSubject } from '../../../shared/http/networkSubject.ts'
import type { InboundMail } from '../../../sql/mail/inbound/inboundMails.ts'

/**
 * Returns the two parties that share the parser for a mail: the inbox and the sending network. The service adds the
 * cost of the mail both to the inbox and to the sending network.
 */
export const sharersOf = (mail: Pick<InboundMail, 'projectId' | 'remoteIp'>): string[] => [
  mail.projectId,
  networkOf(mail),
]

/**
 * Returns the name of the network that sent a mail from outside. If the sender of a mail is an inbox of this service,
 * returns the receiving inbox in place of a network.
 */
export const networkOf = ({
  projectId,
  remoteIp,
}: Pick<InboundMail, 'projectId' | 'remoteIp'>): string =>
  remoteIp === null ? `internal ${projectId}` : networkSubject(remoteIp)
