import { messagePath } from '../../support/service.ts'
import type { MailIn, MailOut } from '../audit/ledger.ts'
import type { Random } from '../random.ts'
import { type Load, type Project, rounds, untilDecided } from './load.ts'
import { handOverTo, SENDER } from './mailIn.ts'
import { post } from './mailOut.ts'

const WAIT_S = 5

/**
 * Runs a client that sends mail to an inbox, and then waits for the message like the agent who owns the inbox. When the
 * message has arrived, the client labels, answers or deletes it.
 */
export function correspond(load: Load, random: Random, name: string): Promise<void> {
  return rounds(load, random, [50, 600], async (n) => {
    const project = random.chance(0.8) ? load.seller : load.peer
    const mail = await handOverTo(load, random, project, `in${name}n${n}`)
    if (mail.told !== 'accepted') return
    const deed = random.pick(['none', 'wait', 'label', 'reply', 'delete'] as const)
    if (deed === 'none') return
    await waitFor(load, random, project, mail)
    if (mail.waited?.messageId !== mail.messageId) return
    if (deed === 'label') await label(load, random, project, mail)
    if (deed === 'reply') await reply(load, random, project, mail)
    if (deed === 'delete') await remove(load, random, project, mail)
  })
}

/** Waits over the API until the message arrives. */
async function waitFor(load: Load, random: Random, project: Project, mail: MailIn): Promise<void> {
  const waited: NonNullable<MailIn['waited']> = { told: 'unknown', messageId: null }
  mail.waited = waited
  const query = new URLSearchParams({
    subject: mail.subject,
    after: load.beganAt,
    timeout: String(WAIT_S),
  })
  waited.told = await untilDecided(load, random, async () => {
    const answer = await project.call({
      kind: 'wait',
      method: 'GET',
      path: `/v0/messages/wait?${query}`,
    })
    if (answer === null || answer.status === 204) return 'unknown'
    if (answer.status !== 200) return 'refused'
    waited.messageId = answer.body.messageId
    return 'accepted'
  })
}

async function label(load: Load, random: Random, project: Project, mail: MailIn): Promise<void> {
  const added: MailIn['labels'][number] = { label: `label-${mail.subject}`, told: 'unknown' }
  mail.labels.push(added)
  added.told = await untilDecided(load, random, async () => {
    const answer = await project.call({
      kind: 'label',
      method: 'PATCH',
      path: messagePath(mail.messageId),
      body: { addLabels: [added.label, 'read'], removeLabels: ['unread'] },
    })
    return answer === null ? 'unknown' : answer.status === 200 ? 'accepted' : 'refused'
  })
}

async function reply(load: Load, random: Random, project: Project, mail: MailIn): Promise<void> {
  const answered: MailOut = {
    token: mail.subject,
    key: `reply-${mail.subject}`,
    sender: mail.inbox,
    remote: [SENDER],
    local: [],
    inReplyTo: mail.messageId,
    told: 'unknown',
    refusal: null,
    messageIds: [],
  }
  load.ledger.mailsOut.push(answered)
  const path = `${messagePath(mail.messageId)}/reply`
  await post(load, random, project, { mail: answered, path, body: { text: 'Thank you.' } })
}

async function remove(load: Load, random: Random, project: Project, mail: MailIn): Promise<void> {
  mail.deleted = 'unknown'
  let asked = false
  mail.deleted = await untilDecided(load, random, async () => {
    const answer = await project.call({
      kind: 'delete',
      method: 'DELETE',
      path: messagePath(mail.messageId),
    })
    const lostBefore = asked
    asked = true
    if (answer === null) return 'unknown'
    // An earlier attempt to delete the message may have succeeded although its response was lost. Therefore the status
    // 404 after an earlier attempt counts as success.
    return answer.status === 204 || (answer.status === 404 && lostBefore) ? 'accepted' : 'refused'
  })
}
