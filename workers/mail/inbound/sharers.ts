import { networkSubject } from '../../../shared/http/networkSubject.ts'
import type { InboundMail } from '../../../sql/mail/inbound/inboundMails.ts'

/**
 * Returns the two parties to which the parsing cost of a mail is charged: the inbox and the sending network.
 */
export const sharersOf = (mail: Sender): string[] => [mail.projectId, networkOf(mail)]

type Sender = Pick<InboundMail, 'projectId' | 'remoteIp' | 'provider'>

/**
 * Returns the name of the network that sent a mail from outside. Returns the receiving inbox instead if the sender is
 * an inbox of this service, or if a mail provider delivered the mail over HTTP. Such a provider delivers everybody's
 * mail from one address, so a stranger's mail would otherwise delay the mail of all inboxes.
 */
function networkOf({ projectId, remoteIp, provider }: Sender): string {
  if (remoteIp === null) return `internal ${projectId}`
  return provider === null ? networkSubject(remoteIp) : `provider ${projectId}`
}
