import { addressKey, parseAddress, recipientKeys } from '../../../shared/mail/address.ts'
import type { Message } from '../../../sql/mail/messages/messages.ts'
import { badRequest } from '../../http/errors.ts'
import { RECIPIENTS_MAX, unique } from './sendInput.ts'

/**
 * Returns the recipients of a reply: the addresses in Reply-To or, if it has no valid address, in From. If this inbox
 * sent the original mail, its recipients are the recipients of the reply. Invalid addresses are left out. The inbox
 * that replies is a recipient only if no other recipient is left.
 */
export function replyRecipients(
  original: Message,
  replyAll: boolean,
): { to: string[]; cc: string[] } {
  const own = addressKey(original.inboxAddress)
  const usable = (texts: string[]) => unique(texts.flatMap((text) => parseAddress(text) ?? []))
  // The address of an inbox never contains a `+tag`. Therefore the function compares an address with a tag after it has
  // removed the tag.
  const others = (texts: string[]) =>
    usable(texts).filter((address) => !recipientKeys(address).includes(own))
  const sender = usable(original.replyTo).length > 0 ? original.replyTo : original.from
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
