import { networkSubject } from '../../../shared/http/networkSubject.ts'
import type { InboundMail } from '../../../sql/mail/inbound/inboundMails.ts'

/**
 * Returns the two parties that share the parser for a mail: the inbox and the sending network. The service adds the
 * cost of the mail both to the inbox and to the sending network.
 */
export const sharersOf = (mail: Sender): string[] => [mail.projectId, networkOf(mail)]

type Sender = Pick<InboundMail, 'projectId' | 'remoteIp' | 'provider'>

/**
 * Returns the name of the network that sent a mail from outside. If the sender of a mail is an inbox of this service,
 * returns the receiving inbox in place of a network. A mail provider that delivers mail over HTTP delivers everybody's
 * mail from one address. For such mail, the receiving inbox replaces the network, because a stranger's mail would
 * otherwise delay the mail of all inboxes.
 */
function networkOf({ projectId, remoteIp, provider }: Sender): string {
  if (remoteIp === null) return `internal ${projectId}`
  return provider === null ? networkSubject(remoteIp) : `provider ${projectId}`
}
