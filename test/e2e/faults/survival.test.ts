import { expect } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import nodemailer from 'nodemailer'
import { generateKey } from '../../../shared/apiKey.ts'
import { PROJECT_SCOPES } from '../../../shared/scopes.ts'
import { createProject } from '../../../sql/account/projects/projects.ts'
import { createPool } from '../../../sql/db.ts'
import { startEmbeddedPostgres } from '../../../sql/embedded/embeddedPostgres.ts'
import { migrate } from '../../../sql/migrate.ts'
import { testWhole } from '../../support/database/extent.ts'
import { freePort, printed, startProcess } from '../../support/process/process.ts'
import { startTcpProxy } from '../../support/process/tcpProxy.ts'
import { createClient } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'

/**
 * The full demonstration sends 5,000 messages (SURVIVAL_MESSAGES), and the test suite sends fewer to save time.
 */
const MESSAGES = Number(process.env.SURVIVAL_MESSAGES ?? 300)
const CONNECTIONS = 20

testWhole(
  `each of ${MESSAGES} messages arrives exactly once, although workers are killed twice and PostgreSQL restarts`,
  async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'purser-survival-'))
    const options = { dataDir, onLog: () => {} }
    let postgres = await startEmbeddedPostgres(options)
    // The restarted database server gets a different port, but the proxy in front of it keeps its port.
    let proxy = await startTcpProxy(Number(new URL(postgres.url).port))
    const proxyPort = proxy.port
    const url = postgres.url.replace(/:\d+\//, `:${proxyPort}/`)
    await migrate(url)
    const pool = createPool({ url, size: 4, name: 'test' })
    const projectKey = generateKey('project')
    await createProject(pool, {
      name: 'Survivor',
      purpose: 'SELLER',
      emailAddress: 'survivor@mail.test',
      scopes: PROJECT_SCOPES,
      key: projectKey,
    })
    const [port, smtpPort] = [await freePort(), await freePort()]
    const env = {
      DATABASE_URL: url,
      PORT: String(port),
      SMTP_PORT: String(smtpPort),
      DATA_DIR: dataDir,
      MAIL_DOMAIN: 'mail.test',
      RATE_LIMIT_REQUESTS: '0',
      SMTP_MESSAGES_PER_IP: '0',
      SMTP_MESSAGES_PER_INBOX: '0',
      SMTP_LARGE_KB_PER_S: '0',
      LOG_LEVEL: 'info',
    }
    await using api = startProcess('api/main.ts', env)
    await using smtp = startProcess('api/smtp/main.ts', env)
    let workers = startProcess('workers/main.ts', env, ['--pool', 'mail'])
    await Promise.all([api, smtp, workers].map((part) => printed(part, /"msg":"ready"/)))

    const transport = nodemailer.createTransport({
      pool: true,
      maxConnections: CONNECTIONS,
      maxMessages: Number.POSITIVE_INFINITY,
      host: '127.0.0.1',
      port: smtpPort,
      ignoreTLS: true,
    })
    let accepted = 0
    const sending = Promise.all(
      Array.from({ length: MESSAGES }, async (_, n) => {
        await transport.sendMail({
          from: 'ada@example.com',
          to: 'survivor@mail.test',
          subject: `Message ${n}`,
          text: `Body ${n}`,
          messageId: `<m${n}@example.com>`,
        })
        accepted++
      }),
    )
    const killWorkers = async () => {
      workers.child.kill('SIGKILL')
      await workers.exited
      workers = startProcess('workers/main.ts', env, ['--pool', 'mail'])
    }
    await waitFor('a third of the messages', () => accepted >= MESSAGES / 3, 60_000)
    await killWorkers()
    await waitFor('half of the messages', () => accepted >= MESSAGES / 2, 60_000)
    await proxy.cut()
    await postgres.stop()
    postgres = await startEmbeddedPostgres(options)
    proxy = await startTcpProxy(Number(new URL(postgres.url).port), proxyPort)
    await waitFor('most of the messages', () => accepted >= (MESSAGES * 9) / 10, 60_000)
    await killWorkers()
    await sending
    transport.close()

    const agent = createClient(`http://127.0.0.1:${port}`, projectKey)
    const all = async () => {
      const ids: string[] = []
      let token: string | undefined
      do {
        const { body, status } = await agent.get(
          `/v0/messages?limit=100${token === undefined ? '' : `&pageToken=${token}`}`,
        )
        if (status !== 200) return []
        ids.push(...body.messages.map((message: any) => message.messageId))
        token = body.nextPageToken
      } while (token !== undefined)
      return ids
    }
    const ids = await waitFor(
      'every message in the inbox',
      async () => {
        const found = await all()
        return found.length >= MESSAGES ? found : null
      },
      120_000,
    )
    expect(ids).toHaveLength(MESSAGES)
    expect(new Set(ids).size).toBe(MESSAGES)
    await waitFor(
      'the last job to be done',
      async () => {
        const { rows } = await pool.query('select count(*)::int as n from graphile_worker.jobs')
        return rows[0].n === 0
      },
      60_000,
    )

    workers.child.kill('SIGTERM')
    smtp.child.kill('SIGTERM')
    api.child.kill('SIGTERM')
    expect(await Promise.all([workers.exited, smtp.exited, api.exited])).toEqual([0, 0, 0])
    await pool.end()
    await proxy[Symbol.asyncDispose]()
    await postgres.stop()
    rmSync(dataDir, { recursive: true, force: true })
  },
  300_000,
)
