import type { MailOut, Told } from '../audit/ledger.ts'
import type { Random } from '../random.ts'
import { type Load, type Project, rounds, untilDecided } from './load.ts'

/** Runs a client that sends mail to outside addresses, to an inbox of the service, or to both. */
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

/** Sends a mail or a reply until the service has responded. Sometimes repeats the request. */
export async function post(
  load: Load,
  random: Random,
  project: Project,
  { mail, path, body }: { mail: MailOut; path: string; body: object },
): Promise<void> {
  const attempt = async (): Promise<Told> => {
    const answer = await project.call({
      kind: mail.inReplyTo === null ? 'send' : 'reply',
      method: 'POST',
      path,
      body,
      idempotencyKey: mail.key,
    })
    if (answer === null) return 'unknown'
    if (answer.status === 201) mail.messageIds.push(answer.body.messageId)
    else mail.refusal = `${answer.status} ${answer.body?.message}`
    return answer.status === 201 ? 'accepted' : 'refused'
  }
  mail.told = await untilDecided(load, random, attempt)
  if (mail.told === 'accepted' && random.chance(0.1)) await attempt()
}
