/**
 * Runs two processes of every part of the service on one database, to show that no work is lost, done twice or counted
 * twice.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import nodemailer from 'nodemailer'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { RUNNER_NAMES } from '../../shared/tasks.ts'
import { transaction } from '../../sql/db.ts'
import { createDelivery } from '../../sql/events/deliveries.ts'
import { type Receiver, startReceiver } from '../support/events/receiver.ts'
import { type Sink, startSink } from '../support/mail/sink.ts'
import { printed, startProcess } from '../support/process/process.ts'
import { type Agent, createClient } from '../support/service.ts'
import { type Redeemed, redeemMany } from '../support/till/redeemers.ts'
import { PRICE, pay, RESOURCE, startTestTill, type TestTill } from '../support/till/till.ts'
import { waitFor } from '../support/waitFor.ts'
import '../support/whole.ts'

const REQUEST_LIMIT = 400
const WINDOW_MS = 60_000

const folder = mkdtempSync(join(tmpdir(), 'purser-two-'))
const stack = new AsyncDisposableStack()
const gasKeys = [generatePrivateKey(), generatePrivateKey()]
const seed = (id: string) => `${id}:${Buffer.alloc(32, id).toString('base64')}`
let till: TestTill
let sink: Sink
let receiver: Receiver
/** Receives the webhooks of the test. One of them is a webhook delivery whose job is lost. */
let forgotten: Receiver
let apis: string[]
let smtpPorts: number[]

beforeAll(async () => {
  stack.defer(() => rmSync(folder, { recursive: true, force: true }))
  till = stack.use(await startTestTill({ worker: false }))
  sink = stack.use(await startSink())
  receiver = stack.use(await startReceiver())
  forgotten = stack.use(await startReceiver())
  for (const key of gasKeys) {
    const { address } = privateKeyToAccount(key)
    await till.client.setBalance({ address, value: 10n ** 19n })
  }
  const start = async (file: string, n: number, ...args: string[]) => {
    const env = {
      DATABASE_URL: till.service.database.url,
      DATA_DIR: join(folder, `${n}`),
      MAIL_DOMAIN: 'mail.test',
      PORT: '0',
      SMTP_PORT: '0',
      RPC_URL: till.devnet.rpcUrl,
      ALLOW_PRIVATE_NETWORKS: 'true',
      SMTP_RELAY_URL: sink.url,
      SMTP_MESSAGES_PER_IP: '0',
      MASTER_KEYS: seed('one'),
      RECEIPT_SIGNING_KEYS: seed('receipts'),
      SETTLEMENT_KEYS: gasKeys.join(','),
      RATE_LIMIT_REQUESTS: String(REQUEST_LIMIT),
      LOG_LEVEL: 'info',
    }
    const part = stack.use(startProcess(file, env, args))
    await printed(part, /"msg":"ready"/)
    return Number(/"port":(\d+)/.exec(part.stdout())?.[1] ?? 0)
  }
  const two = (file: string, ...args: string[]) =>
    Promise.all([1, 2].map((n) => start(file, n, ...args)))
  apis = (await two('api/main.ts')).map((port) => `http://127.0.0.1:${port}`)
  smtpPorts = await two('api/smtp/main.ts')
  for (const runner of RUNNER_NAMES) await two('workers/main.ts', '--pool', runner)
  await loseDelivery()
})
afterAll(() => stack.disposeAsync())

/** Returns two clients of the same agent, one for each of the two API processes. */
const atBoth = (agent: Agent) => apis.map((url) => createClient(url, agent.key))
const waitForNoJobs = () =>
  waitFor('the end of the jobs', async () => {
    const { rows } = await till.service.database.pool.query(
      'select from graphile_worker.jobs limit 1',
    )
    return rows.length === 0
  })

test('two API processes count requests together against one rate limit, without an error', async () => {
  const clients = atBoth(await till.service.newAgent())
  await waitFor('a minute with room', () => Date.now() % WINDOW_MS < WINDOW_MS - 20_000)
  const answers = await Promise.all(
    Array.from({ length: REQUEST_LIMIT + 50 }, (_, n) => clients[n % 2]!.get('/v0/whoami')),
  )
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(REQUEST_LIMIT)
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(50)
})

test('if two SMTP listeners run, each mail that they accept arrives once', async () => {
  const agent = await till.service.newAgent()
  await Promise.all(
    smtpPorts.map(async (port, listener) => {
      const transport = nodemailer.createTransport({
        host: '127.0.0.1',
        port,
        pool: true,
        ignoreTLS: true,
      })
      const send = (n: number) =>
        transport.sendMail({
          from: 'ada@x.test',
          to: agent.address,
          subject: `${listener}-${n}`,
          messageId: `<${listener}-${n}@x.test>`,
          text: 'x',
        })
      await Promise.all(Array.from({ length: 40 }, (_, n) => send(n)))
      transport.close()
    }),
  )
  const [first] = atBoth(agent)
  const messages = await waitFor('80 mails', async () => {
    const { body } = await first!.get('/v0/messages?limit=100')
    return body.messages.length >= 80 ? body.messages : null
  })
  expect(new Set(messages.map((message: any) => message.subject)).size).toBe(80)
  expect(messages).toHaveLength(80)
})

test('if a client sends a mail to both API processes with the same Idempotency-Key, the mail is sent once', async () => {
  const agent = await till.service.newAgent()
  const clients = atBoth(agent)
  const before = sink.mails.length
  const send = (n: number, key: string) =>
    clients[n % 2]!.post(
      '/v0/messages/send',
      { to: ['bob@example.com'], subject: key, text: 'x' },
      { 'idempotency-key': key },
    )
  const answers = await Promise.all(Array.from({ length: 60 }, (_, n) => send(n, `two-${n >> 1}`)))
  expect(answers.every(({ status }) => status === 201 || status === 409)).toBe(true)
  await waitFor('30 mails', () => sink.mails.length - before >= 30)
  await waitForNoJobs()
  const subjects = sink.mails.slice(before).map(({ email }) => email.subject)
  expect(subjects.toSorted()).toEqual(Array.from({ length: 30 }, (_, n) => `two-${n}`).toSorted())
})

test('with two processes of each kind, each payment is taken once, each nonce is mined once, and each webhook has one Idempotency-Key', async () => {
  const seller = await till.newSeller({ webhookUrl: receiver.url })
  const payments = await Promise.all(Array.from({ length: 80 }, () => pay()))
  const bodies = payments.map(({ header }) => ({
    paymentHeader: header,
    resource: RESOURCE,
    amount: PRICE,
  }))
  // The test redeems each payment at both API processes at the same time, so that both processes compete for the
  // payment.
  const both = await Promise.all(
    apis.map((url) => redeemMany({ url, seller }, bodies, { inFlight: 40 })),
  )
  const granted = (answer: Redeemed) => answer.body.ok === true
  for (const n of bodies.keys()) {
    const [one, other] = both.map((answers) => answers[n]!)
    expect([n, granted(one!) !== granted(other!)]).toEqual([n, true])
  }
  const { rows: used } = await till.service.database.pool.query(
    `select wallet, nonce, count(*) filter (where state = 'mined')::int as mined
     from chain_transactions group by 1, 2`,
  )
  expect(used.map(({ mined }) => mined)).toEqual(used.map(() => 1))
  let sent = 0
  for (const key of gasKeys) {
    sent += await till.client.getTransactionCount({ address: privateKeyToAccount(key).address })
  }
  expect(used).toHaveLength(sent)
  const delivered = await waitFor('80 webhooks', () =>
    receiver.requests.length >= 80 ? receiver.requests : null,
  )
  const keys = new Set(delivered.map(({ headers }) => headers['x-service-idempotency-key']))
  expect(keys.size).toBe(80)
})

test('if several worker processes run housekeeping, a delivery whose job was lost is queued again exactly once', async () => {
  await waitFor('the delivery', () => forgotten.requests.length > 0)
  await waitForNoJobs()
  expect(forgotten.requests).toHaveLength(1)
})

/**
 * Stores a webhook delivery that was due an hour ago and has no job. The housekeeping job looks for lost deliveries
 * every 30 s.
 */
async function loseDelivery(): Promise<void> {
  const { pool } = till.service.database
  const seller = await till.newSeller({ webhookUrl: forgotten.url })
  const { rows } = await pool.query('select id from seller_endpoints where project_id = $1', [
    seller.project.id,
  ])
  await transaction(pool, async (db) => {
    const { id } = await createDelivery(db, {
      projectId: seller.project.id,
      to: { endpointId: rows[0].id },
      subjectId: null,
      event: 'payment.received',
      url: forgotten.url,
      body: Buffer.from('{}'),
    })
    await db.query('delete from graphile_worker._private_jobs where key = $1', [
      `deliver_webhook:${id}`,
    ])
    await db.query(
      `update webhook_deliveries set next_attempt_at = now() - interval '1 hour' where id = $1`,
      [id],
    )
  })
}
