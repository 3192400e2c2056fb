/** Runs every part of the service behind the connection pooler PgBouncer in session mode. */
import { expect, test } from 'bun:test'
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, printed, type ServiceProcess, startCommand } from '../support/process/process.ts'
import { waitForMessages } from '../support/service.ts'
import { pay, RESOURCE, redeem, startTestTill } from '../support/till/till.ts'
import { waitFor } from '../support/waitFor.ts'
import '../support/long.ts'

const program = Bun.which('pgbouncer', { PATH: `${process.env.PATH}:/usr/sbin` })
if (program === null) {
  process.stderr.write('SKIPPED: the test behind PgBouncer, because there is no pgbouncer\n')
}
/** Runs PgBouncer as another user, because PgBouncer refuses to run as root. */
const NOBODY = 65_534

async function startPgBouncer(databaseUrl: string): Promise<AsyncDisposable & { url: string }> {
  const url = new URL(databaseUrl)
  const port = await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'purser-pgbouncer-'))
  const isRoot = process.getuid?.() === 0
  writeFileSync(
    join(folder, 'pgbouncer.ini'),
    `[databases]
* = host=${url.hostname} port=${url.port} user=${url.username} password=${decodeURIComponent(url.password)}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = session
default_pool_size = 200
max_client_conn = 500
ignore_startup_parameters = options,extra_float_digits
`,
  )
  if (isRoot) chownSync(folder, NOBODY, NOBODY)
  const bouncer: ServiceProcess = startCommand(
    [program!, ...(isRoot ? ['-u', 'nobody'] : []), join(folder, 'pgbouncer.ini')],
    {},
  )
  await printed(bouncer, /process up/)
  url.hostname = '127.0.0.1'
  url.port = String(port)
  return {
    url: url.href,
    async [Symbol.asyncDispose]() {
      await bouncer[Symbol.asyncDispose]()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

test.skipIf(program === null)(
  'the service receives mail, uses the vault and settles payments behind the connection pooler PgBouncer',
  async () => {
    await using parts = new AsyncDisposableStack()
    let bouncer: { url: string } | undefined
    const through = async (url: string) => {
      bouncer ??= parts.use(await startPgBouncer(url))
      return bouncer.url
    }
    const till = parts.use(
      await startTestTill({
        worker: false,
        parts: {
          smtp: true,
          pools: ['inbound', 'outbound', 'webhooks'],
          through: { api: through, smtp: through, workers: through },
        },
      }),
    )
    await till.startWorker({ databaseUrl: bouncer!.url })
    const seller = await till.newSeller()
    await seller.put('/v0/sellers/endpoints', { urlPattern: RESOURCE, priceUsdc: '0.01' })
    const other = await till.service.newAgent()
    const sent = await seller.post('/v0/messages/send', {
      to: [other.address],
      subject: 'Offer',
      text: 'Shall I order?',
    })
    expect(sent.status).toBe(201)
    const waiting = other.get('/v0/messages/wait?timeout=30&after=2026-01-01')
    expect((await waiting).body.subject).toBe('Offer')
    await till.service.deliver({ from: 'ada@x.test', to: other.address, subject: 'In', text: 'x' })
    await waitForMessages(other, 2)
    await other.put('/v0/vault/key', { type: 'API_KEY', data: { key: 'secret' } })
    expect((await other.get('/v0/vault/key')).body.data).toEqual({ key: 'secret' })
    const { header } = await pay()
    expect((await redeem(seller, header)).body).toMatchObject({ ok: true })
    await waitFor('the jobs to end', async () => {
      const { rows } = await till.service.database.pool.query(
        `select from graphile_worker.jobs where locked_at is not null or attempts > 1`,
      )
      return rows.length === 0
    })
  },
)
