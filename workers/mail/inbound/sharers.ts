import { networkSubject } from '../../../shared/http/networkSubject.ts'
import type { InboundMail } from '../../../sql/mail/inbound/inboundMails.ts'

/** The inbox and the network of a mail. They share the slots, and are charged for its cost. */
export const sharersOf = (mail: Pick<InboundMail, 'projectId' | 'remoteIp'>): string[] => [
  mail.projectId,
  networkOf(mail),
]

/** The network that sent a mail; for mail of an inbox of this service, the inbox that receives it. */
export const networkOf = ({
  projectId,
  remoteIp,
}: Pick<InboundMail, 'projectId' | 'remoteIp'>): string =>
  remoteIp === null ? `internal ${projectId}` : networkSubject(remoteIp)
