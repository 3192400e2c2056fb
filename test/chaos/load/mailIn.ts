import nodemailer from 'nodemailer'
import type { MailIn, Told } from '../audit/ledger.ts'
import type { Random } from '../random.ts'
import { type Load, type Project, rounds, untilDecided } from './load.ts'

export const SENDER = 'ada@example.com'
const SMTP_TIMEOUT_MS = 8_000
/**
 * Lists the sizes of message texts, in characters. Few texts exceed a megabyte, because the workers process such large
 * mails one at a time.
 */
const SIZES = [200, 200, 200, 200, 200, 200, 5_000, 5_000, 60_000, 400_000, 1_500_000]

/** Runs a client that delivers one message after another by SMTP. */
export function write(load: Load, random: Random, name: string): Promise<void> {
  return rounds(load, random, [100, 700], async (n) => {
    await handOverTo(load, random, random.pick([load.seller, load.peer]), `in${name}n${n}`)
  })
}

/** Delivers a message until the listener has replied. Sometimes delivers the same message once more. */
export async function handOverTo(
  load: Load,
  random: Random,
  project: Project,
  token: string,
): Promise<MailIn> {
  const mail = newMail(project, token)
  load.ledger.mailsIn.push(mail)
  const raw = compose(mail, random)
  mail.told = await untilDecided(load, random, () => handOver(load, mail, raw))
  // A sender that has lost the reply of the listener delivers the message again, so the load sometimes repeats a
  // delivery.
  if (mail.told === 'accepted' && random.chance(0.1)) await handOver(load, mail, raw)
  return mail
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

/** Composes the bytes of a message, which are the same for every attempt. */
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
