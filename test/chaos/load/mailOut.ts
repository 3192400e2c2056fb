import type { MailOut } from '../ledger.ts'
import type { Random } from '../random.ts'
import { type Load, rounds } from './load.ts'
import { post } from './mailIn.ts'

/** A sender: writes to addresses elsewhere, to the other inbox, or to both. */
export function send(load: Load, random: Random, name: string): Promise<void> {
  return rounds(load, random, [100, 800], async (n) => {
    const token = `out${name}n${n}`
    const toLocal = random.chance(0.4)
    const mail: MailOut = {
      token,
      key: `send-${token}`,
      sender: load.seller.inbox,
      remote: !toLocal || random.chance(0.5) ? [`${token}@example.net`] : [],
      local: toLocal ? [load.peer.inbox] : [],
      inReplyTo: null,
      told: 'unknown',
      refusal: null,
      messageIds: [],
    }
    load.ledger.mailsOut.push(mail)
    const body = { to: [...mail.remote, ...mail.local], subject: token, text: `Text of ${token}` }
    await post(load, random, load.seller, { mail, path: '/v0/messages/send', body })
  })
}
