import nodemailer from 'nodemailer'
import { messagePath } from '../../support/service.ts'
import type { MailIn, MailOut, Told } from '../ledger.ts'
import type { Random } from '../random.ts'
import { type Load, type Project, rounds, untilDecided } from './load.ts'

const SENDER = 'ada@example.com'
const SMTP_TIMEOUT_MS = 8_000
const WAIT_S = 5
/** The sizes of a text, in characters. Few are above a megabyte, where the workers take turns. */
const SIZES = [200, 200, 200, 200, 200, 200, 5_000, 5_000, 60_000, 400_000, 1_500_000]

/** A correspondent: writes to an inbox, waits for the message as its agent, then labels, answers or deletes it. */
export function correspond(load: Load, random: Random, name: string): Promise<void> {
  return rounds(load, random, [50, 600], async (n) => {
    const project = random.chance(0.8) ? load.seller : load.peer
    const mail = newMail(project, `in${name}n${n}`)
    load.ledger.mailsIn.push(mail)
    const raw = compose(mail, random)
    mail.told = await untilDecided(load, random, () => handOver(load, mail, raw))
    // As a sender does whose answer was lost.
    if (mail.told === 'accepted' && random.chance(0.1)) await handOver(load, mail, raw)
    if (mail.told !== 'accepted') return
    const deed = random.pick(['none', 'none', 'wait', 'label', 'reply', 'delete'] as const)
    if (deed === 'none') return
    await waitFor(load, random, project, mail)
    if (mail.waited?.messageId !== mail.messageId) return
    if (deed === 'label') await label(load, random, project, mail)
    if (deed === 'reply') await reply(load, random, project, mail)
    if (deed === 'delete') await remove(load, random, project, mail)
  })
}

const newMail = ({ inbox }: Project, token: string): MailIn => ({
  messageId: `<${token}@example.com>`,
  inbox,
  subject: token,
  told: 'unknown',
  refusal: null,
  attempts: 0,
  labels: [],
  deleted: null,
  waited: null,
})

/** The same bytes for every attempt. */
function compose({ messageId, inbox, subject }: MailIn, random: Random): Buffer {
  const line = `${subject} ${'text '.repeat(12)}\r\n`
  const text = line.repeat(Math.ceil(random.pick(SIZES) / line.length))
  const head = [
    `From: Ada <${SENDER}>`,
    `To: ${inbox}`,
    `Subject: ${subject}`,
    `Message-ID: ${messageId}`,
    `Date: ${new Date().toUTCString()}`,
  ]
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${text}`)
}

async function handOver(load: Load, mail: MailIn, raw: Buffer): Promise<Told> {
  mail.attempts++
  const transport = nodemailer.createTransport({
    host: '127.0.0.1',
    port: load.smtpPort,
    ignoreTLS: true,
    connectionTimeout: SMTP_TIMEOUT_MS,
    greetingTimeout: SMTP_TIMEOUT_MS,
    socketTimeout: SMTP_TIMEOUT_MS,
  })
  try {
    await transport.sendMail({ envelope: { from: SENDER, to: [mail.inbox] }, raw })
    load.pulses.beat('smtp')
    load.tally.count('mail in', 'accepted')
    return 'accepted'
  } catch (error) {
    const { responseCode = 0, response } = error as { responseCode?: number; response?: string }
    const refused = responseCode >= 500
    load.tally.count('mail in', refused ? 'refused' : 'lost')
    if (refused) mail.refusal = response ?? String(responseCode)
    return refused ? 'refused' : 'unknown'
  } finally {
    transport.close()
  }
}

/** Waits for the message over the API. */
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

/** Sends or replies until the service has answered, and now and then once more. */
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
    // An attempt whose answer was lost may have deleted it.
    return answer.status === 204 || (answer.status === 404 && lostBefore) ? 'accepted' : 'refused'
  })
}
