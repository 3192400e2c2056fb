import { addressKey, parseAddress, recipientKeys } from '../../shared/mail/address.ts'
import type { Message } from '../../sql/mail/messages.ts'
import { badRequest } from '../http/errors.ts'
import { RECIPIENTS_MAX, unique } from './sendInput.ts'

/**
 * Who a reply goes to: Reply-To, else From; for a message of our own, its recipients again. Addresses that cannot be
 * written to are left out, and a reply is never addressed to its own inbox unless nobody else is there.
 */
export function replyRecipients(
  original: Message,
  replyAll: boolean,
): { to: string[]; cc: string[] } {
  const own = addressKey(original.inboxAddress)
  const usable = (texts: string[]) => unique(texts.flatMap((text) => parseAddress(text) ?? []))
  // No inbox has a name with a tag: whatever comes to one of ours comes here.
  const others = (texts: string[]) =>
    usable(texts).filter((address) => !recipientKeys(address).includes(own))
  const sender = original.replyTo.length > 0 ? original.replyTo : original.from
  const wanted = original.direction === 'sent' ? original.to : sender
  const to = others(wanted).length > 0 ? others(wanted) : usable(wanted)
  if (to.length === 0) throw badRequest('The message has no sender that can be replied to')
  if (!replyAll) return { to: to.slice(0, RECIPIENTS_MAX), cc: [] }
  const addressed = new Set(to.map(addressKey))
  const cc = others([...original.to, ...original.cc]).filter(
    (address) => !addressed.has(addressKey(address)),
  )
  if (to.length + cc.length > RECIPIENTS_MAX) {
    throw badRequest(`replyAll must reach at most ${RECIPIENTS_MAX} recipients`)
  }
  return { to, cc }
}
