import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { generateKey } from '../../shared/apiKey.ts'
import { newEndpointId } from '../../shared/ids.ts'
import { PROJECT_SCOPES } from '../../shared/scopes.ts'
import { createProject } from '../../sql/account/projects/projects.ts'
import { transaction } from '../../sql/db.ts'
import { createDelivery } from '../../sql/events/deliveries.ts'
import { devnetClient } from '../../workers/devnet/contracts.ts'
import { startDevnet } from '../../workers/devnet/devnet.ts'
import { changeProject } from '../support/changeProject.ts'
import { startReceiver } from '../support/events/receiver.ts'
import { startSink } from '../support/mail/sink.ts'
import { talkSmtp } from '../support/mail/smtpTalk.ts'
import { printed, startProcess } from '../support/process/process.ts'
import { redeemMany } from '../support/till/redeemers.ts'
import { PRICE, pay, payTo, RESOURCE, registerEndpoint } from '../support/till/till.ts'
import { waitFor } from '../support/waitFor.ts'
import { beginCost, type Cost, costText } from './cost.ts'
import { byTurns, type Row, rowOf } from './measure.ts'
import { pageRows } from './pages.ts'
import type { Setting } from './setting.ts'

const PROCESSES = [1, 2, 4] as const
const INBOXES = 200
const DEADLINE_MS = 180_000

export type Work = {
  name: string
  pool: 'inbound' | 'outbound' | 'webhooks' | 'payments'
  count: number
  env?: Record<string, string>
  /** Stores work that needs `count` jobs, while no worker runs. */
  fill(): Promise<void>
  /** Holds the SQL statement that returns the number of unfinished jobs or rows as `n`. */
  open: string
  /**
   * Tells whether a job may stay in the queue for a while although its work is done. For example, if another process
   * settles a payment, the payment's own job is retried only after three seconds.
   */
  jobsStay?: true
}

/**
 * Measures each worker pool with 1, 2 and 4 processes: how fast it works off waiting jobs, and the CPU time of the
 * workers and the database.
 */
export async function* scaleRows(setting: Setting): AsyncGenerator<Row> {
  yield* workRows(setting, rowsOf)
  yield* pageRows(setting)
}

/** Measures the work of a worker pool. */
type MeasureWork = (setting: Setting, work: Work) => AsyncGenerator<Row>

/** Prepares the work of one worker pool after the other, and measures each with `measure`. */
export async function* workRows(setting: Setting, measure: MeasureWork): AsyncGenerator<Row> {
  const inboxes = await addInboxes(setting)
  yield* measure(setting, inbound(setting, `${INBOXES} inboxes`, inboxes))
  yield* measure(setting, inbound(setting, 'one inbox', ['bench@mail.test']))
  yield* outboundRows(setting, measure)
  yield* webhookScaleRows(setting, measure)
  yield* paymentScaleRows(setting, measure)
}

async function* rowsOf(setting: Setting, work: Work): AsyncGenerator<Row> {
  const answers = await byTurns(PROCESSES.map((count) => () => drain(setting, work, count)))
  const rates = answers.map((rounds) => rounds.map(({ perSecond }) => perSecond))
  for (const [n, count] of PROCESSES.entries()) {
    const detail = `one process; ${costText(answers[n]!)}`
    const name = `${work.name}, ${count} ${count === 1 ? 'process' : 'processes'}`
    yield rowOf({ name, unit: '/s', detail }, rates[n]!, rates[0]!)
  }
}

/**
 * Fills the queue, starts the workers, and measures the time from the moment when a tenth of the work is done until no
 * work is left.
 */
export async function drain(setting: Setting, work: Work, processes: number): Promise<Cost> {
  await work.fill()
  const open = async () => (await setting.pool.query(work.open)).rows[0].n as number
  const filled = await open()
  if (filled < work.count) throw new Error(`${work.name}: only ${filled} of ${work.count} wait`)
  const env = { ...setting.env, ...work.env, LOG_LEVEL: 'info' }
  await using stack = new AsyncDisposableStack()
  const workers = Array.from({ length: processes }, () =>
    stack.use(startProcess('workers/main.ts', env, ['--pool', work.pool])),
  )
  await Promise.all(workers.map((worker) => printed(worker, /"msg":"ready"/)))
  await waitFor('the first jobs', async () => (await open()) <= work.count * 0.9, DEADLINE_MS)
  const [first, measure] = [await open(), await beginCost(setting)]
  // The query that counts the unfinished work reads whole tables, so it runs only rarely. Otherwise it would cause most
  // of the database’s work.
  const isIdle = async () => {
    if (work.jobsStay) return (await open()) === 0
    const { rowCount } = await setting.pool.query(
      // Only the worker of the inbound pool builds segments of the search index, so those jobs stay in the queue while
      // the benchmark measures another worker pool. Therefore they do not count as remaining work.
      `select from graphile_worker._private_jobs where key is null or key not like 'index_search:%' limit 1`,
    )
    return rowCount === 0 && (await open()) === 0
  }
  await waitFor('the last job', isIdle, DEADLINE_MS)
  return await measure(first)
}

export async function addInboxes({ pool }: Setting): Promise<string[]> {
  const addresses = Array.from({ length: INBOXES }, (_, n) => `scale${n}@mail.test`)
  for (const emailAddress of addresses) {
    await createProject(pool, {
      name: emailAddress,
      purpose: 'SELLER',
      emailAddress,
      scopes: PROJECT_SCOPES,
      key: generateKey('project'),
    })
  }
  return addresses
}

export function inbound(setting: Setting, name: string, inboxes: string[]): Work {
  const count = 2_000
  const waiting = `select count(*)::int as n from inbound_mails where state = 'accepted'`
  return {
    name: `inbound mail, ${name}`,
    pool: 'inbound',
    count,
    open: waiting,
    async fill() {
      await using smtp = startProcess('api/smtp/main.ts', {
        ...setting.env,
        SMTP_PORT: '0',
        LOG_LEVEL: 'info',
      })
      const port = Number((await printed(smtp, /"port":(\d+)/))[1])
      await deliver(port, inboxes, count)
      await waitFor('the spool to be empty', async () => {
        const { rows } = await setting.pool.query(waiting)
        return rows[0].n === count
      })
    },
  }
}

/**
 * Holds words without digits, because the service takes a word with a digit for a possible one-time code. Real mail
 * contains few words with digits.
 */
const WORDS = Array.from({ length: 5_000 }, (_, n) =>
  `word${n.toString(26)}`.replace(/\d/g, (digit) => 'qrstuvwxyz'[Number(digit)]!),
)
const SMTP_CONNECTIONS = 20

/** Delivers mails of 4 KB, each with different words. */
async function deliver(port: number, inboxes: string[], count: number): Promise<void> {
  let next = 0
  await Promise.all(
    Array.from({ length: SMTP_CONNECTIONS }, async () => {
      await using talk = await talkSmtp(port)
      for (let n = next++; n < count; n = next++) {
        const line = (at: number) =>
          Array.from({ length: 8 }, (_, m) => WORDS[(n * 31 + at * 8 + m) % WORDS.length]).join(' ')
        const body = Array.from({ length: 65 }, (_, at) => line(at)).join('\r\n')
        await talk.say('MAIL FROM:<a@example.com>')
        await talk.say(`RCPT TO:<${inboxes[n % inboxes.length]}>`)
        await talk.say('DATA')
        const id = `Message-ID: <${crypto.randomUUID()}@example.com>`
        const reply = await talk.send(`${id}\r\nSubject: Scale\r\n\r\n${body}\r\n.\r\n`)
        if (!reply.startsWith('250')) throw new Error(reply)
      }
    }),
  )
}

async function* outboundRows(setting: Setting, measure: MeasureWork): AsyncGenerator<Row> {
  await using sink = await startSink()
  const count = 1_000
  yield* measure(setting, {
    name: 'outbound mail',
    pool: 'outbound',
    count,
    env: { SMTP_RELAY_URL: sink.url },
    open: `select count(*)::int as n from messages where delivery_status = 'queued'`,
    async fill() {
      await withApi(setting, {}, async (url) => {
        let next = 0
        await Promise.all(
          Array.from({ length: 32 }, async () => {
            for (let n = next++; n < count; n = next++) {
              const response = await fetch(`${url}/v0/messages/send`, {
                method: 'POST',
                headers: {
                  authorization: `Bearer ${setting.key}`,
                  'content-type': 'application/json',
                },
                body: JSON.stringify({ to: [`a${n}@example.com`], subject: 'Scale', text: 'x' }),
              })
              if (response.status !== 201) throw new Error(await response.text())
            }
          }),
        )
      })
    },
  })
}

async function* webhookScaleRows(setting: Setting, measure: MeasureWork): AsyncGenerator<Row> {
  await using receiver = await startReceiver()
  const { pool, project } = setting
  const count = 2_000
  const endpoints = Array.from({ length: 20 }, newEndpointId)
  for (const [n, id] of endpoints.entries()) {
    await pool.query(
      `insert into seller_endpoints
         (id, project_id, url_pattern, match_key, price_atomic, network, webhook_url, webhook_secret)
       values ($1, $2, $3, $3, 1, 'base-sepolia', $4, 'whsec_scale_scale_scale')`,
      [id, project.id, `scale.example/${n}`, receiver.url],
    )
  }
  yield* measure(setting, {
    name: 'webhooks',
    pool: 'webhooks',
    count,
    env: { ALLOW_PRIVATE_NETWORKS: 'true' },
    open: `select count(*)::int as n from webhook_deliveries where status = 'pending'`,
    async fill() {
      receiver.requests.length = 0
      await transaction(pool, async (db) => {
        for (let n = 0; n < count; n++) {
          await createDelivery(db, {
            projectId: project.id,
            to: { endpointId: endpoints[n % endpoints.length]! },
            subjectId: null,
            event: 'payment.received',
            url: receiver.url,
            body: Buffer.from(JSON.stringify({ body: 'x'.repeat(1_000) })),
          })
        }
      })
    },
  })
}

async function* paymentScaleRows(setting: Setting, measure: MeasureWork): AsyncGenerator<Row> {
  const directory = mkdtempSync(join(tmpdir(), 'purser-bench-scale-'))
  const log = { info() {}, warn() {} }
  const devnet = await startDevnet({ port: 0, stateFile: join(directory, 'state'), log })
  try {
    const keys = PROCESSES.map(() => generatePrivateKey())
    for (const key of keys) {
      const { address } = privateKeyToAccount(key)
      await devnetClient(devnet.rpcUrl).setBalance({ address, value: 10n ** 20n })
    }
    await changeProject(setting.pool, setting.project.id, { payTo, paymentsEnabled: true })
    await registerEndpoint(setting.pool, { projectId: setting.project.id, resource: RESOURCE })
    const env = { RPC_URL: devnet.rpcUrl, SETTLEMENT_KEYS: keys.join(',') }
    await knowChain(setting, env)
    const count = 500
    yield* measure(setting, {
      name: `payments, ${keys.length} gas wallets, automine`,
      pool: 'payments',
      jobsStay: true,
      count,
      env,
      open: `select count(*)::int as n from payments where state = 'verified'`,
      async fill() {
        const payments = await Promise.all(
          Array.from({ length: count }, () =>
            pay({ validBefore: BigInt(Math.floor(Date.now() / 1000)) + 900n }),
          ),
        )
        const bodies = payments.map(({ header }) => ({
          paymentHeader: header,
          resource: RESOURCE,
          amount: PRICE,
        }))
        await withApi(setting, { ...env, SETTLEMENT_WAIT_MS: '1000' }, async (url) => {
          await redeemMany({ url, seller: { key: setting.key } }, bodies)
        })
      },
    })
  } finally {
    await devnet.stop()
    rmSync(directory, { recursive: true, force: true })
  }
}

/** Runs a payment worker until it has read the chain, because the API accepts no payment before. */
async function knowChain({ pool, env }: Setting, chain: Record<string, string>): Promise<void> {
  await using _worker = startProcess('workers/main.ts', { ...env, ...chain }, [
    '--pool',
    'payments',
  ])
  await waitFor('the chain to be known', async () => {
    const { rowCount } = await pool.query('select from chain_status')
    return rowCount === 1
  })
}

async function withApi(
  setting: Setting,
  env: Record<string, string>,
  work: (url: string) => Promise<void>,
): Promise<void> {
  await using api = startProcess('api/main.ts', {
    ...setting.env,
    ...env,
    PORT: '0',
    LOG_LEVEL: 'info',
  })
  const [, port] = await printed(api, /"port":(\d+)/)
  await work(`http://127.0.0.1:${port}`)
}
