import type { AddressInfo } from 'node:net'
import PostalMime from 'postal-mime'
import { SMTPServer } from 'smtp-server'
import { talkSmtp } from '../../support/mail/smtpTalk.ts'
import { printed, type ServiceProcess, startProcess } from '../../support/process/process.ts'
import { waitFor } from '../../support/waitFor.ts'
import { compare, type Row } from '../measure.ts'
import type { Setting } from '../setting.ts'

const CONNECTIONS = 20
const MESSAGES = 1_000
const BODY = `${'Lorem ipsum dolor sit amet, consectetur adipisici elit.\r\n'.repeat(70)}`

/**
 * Compares this service, which first writes accepted mail to disk, with an SMTP server that discards mail. Also
 * compares how the service parses and stores mail with plain parsing and a single insert.
 */
export async function mailRows(setting: Setting): Promise<Row[]> {
  await using smtp = startListener(setting)
  const smtpPort = await portOf(smtp)
  const discarding = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    disableReverseLookup: true,
    onData(stream, _session, callback) {
      stream.resume()
      stream.on('end', () => callback())
    },
  })
  await new Promise<void>((resolve) => discarding.listen(0, '127.0.0.1', () => resolve()))
  const discardPort = (discarding.server.address() as AddressInfo).port
  const arrived = async () => {
    const { rows } = await setting.pool.query('select count(*)::int as n from inbound_mails')
    return rows[0].n as number
  }
  const accepted = await compare({
    name: 'SMTP accepted, 4 KB',
    unit: 'messages/s',
    detail: `smtp-server that discards in the client's process, ${CONNECTIONS} connections`,
    ours: async () => {
      const before = await arrived()
      const rate = await deliver(smtpPort)
      // The benchmark waits until no mail is left in the spool (disk queue), because a backlog would slow down the
      // measurement of the baseline.
      await waitFor(
        'the spool to be empty',
        async () => (await arrived()) === before + MESSAGES,
        60_000,
      )
      return rate
    },
    baseline: () => deliver(discardPort),
  })
  await new Promise<void>((resolve) => discarding.close(() => resolve()))
  return [accepted, await parsedRow(setting)]
}

async function parsedRow(setting: Setting): Promise<Row> {
  await using _workers = startProcess('workers/main.ts', setting.env, ['--pool', 'mail'])
  await using smtp = startListener(setting)
  const port = await portOf(smtp)
  const count = async (condition: string) => {
    const { rows } = await setting.pool.query(
      `select count(*)::int as n from inbound_mails where ${condition}`,
    )
    return rows[0].n as number
  }
  const lastId = async () => {
    const { rows } = await setting.pool.query(
      'select coalesce(max(id), 0) as id from inbound_mails',
    )
    return rows[0].id as string
  }
  await waitFor('the backlog', async () => (await count(`state = 'accepted'`)) === 0, 180_000)
  const raw = Buffer.from(`From: a@example.com\r\nTo: b@example.com\r\nSubject: x\r\n\r\n${BODY}`)
  return await compare({
    name: 'mail in, end to end',
    unit: 'messages/s',
    detail: 'postal-mime and one insert a message, in 8 lanes, no SMTP, no jobs, no threads',
    ours: async () => {
      // A repeated count of the whole table would slow the measurement down, so the benchmark counts only the mails of
      // the current benchmark round.
      const before = await lastId()
      const startMs = performance.now()
      await deliver(port)
      const stored = () => count(`id > ${before} and state = 'stored'`)
      await waitFor('the inbox', async () => (await stored()) === MESSAGES, 120_000)
      return (MESSAGES * 1000) / (performance.now() - startMs)
    },
    baseline: async () => {
      const startMs = performance.now()
      let next = 0
      await Promise.all(
        Array.from({ length: 8 }, async () => {
          while (next++ < MESSAGES) {
            const email = await PostalMime.parse(raw)
            await setting.pool.query('insert into bench_intents (body) values ($1)', [email.text])
          }
        }),
      )
      return (MESSAGES * 1000) / (performance.now() - startMs)
    },
  })
}

/**
 * Delivers MESSAGES mails over CONNECTIONS SMTP connections that stay open. @returns the number of messages per second
 */
async function deliver(port: number): Promise<number> {
  const startMs = performance.now()
  let next = 0
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      await using talk = await talkSmtp(port)
      while (next++ < MESSAGES) {
        await talk.say('MAIL FROM:<a@example.com>')
        await talk.say('RCPT TO:<bench@mail.test>')
        await talk.say('DATA')
        const id = `Message-ID: <${crypto.randomUUID()}@example.com>`
        const reply = await talk.send(`${id}\r\nSubject: Bench\r\n\r\n${BODY}.\r\n`)
        if (!reply.startsWith('250')) throw new Error(reply)
      }
    }),
  )
  return (MESSAGES * 1000) / (performance.now() - startMs)
}

const startListener = (setting: Setting) =>
  startProcess('api/smtp/main.ts', { ...setting.env, SMTP_PORT: '0', LOG_LEVEL: 'info' })

const portOf = async (smtp: ServiceProcess): Promise<number> =>
  Number((await printed(smtp, /"port":(\d+)/))[1])
