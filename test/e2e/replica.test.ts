/**
 * Tests database reads on a streaming replica that lags behind the primary. In these tests, a caller must always see
 * its own writes.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Client as McpClient } from '@modelcontextprotocol/sdk/client/index.js'
import pg from 'pg'
import { generateKey } from '../../shared/apiKey.ts'
import { startSession } from '../../sql/account/people/consoleSessions.ts'
import { FIRST_OPERATOR } from '../../sql/account/people/people.ts'
import { createPool, type Pool } from '../../sql/db.ts'
import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from '../../sql/embedded/embeddedPostgres.ts'
import { consoleClient } from '../support/console/consoleSession.ts'
import { callTool, connectMcp } from '../support/mcp.ts'
import { printed, startProcess } from '../support/process/process.ts'
import { type Client, createClient } from '../support/service.ts'
import { waitFor } from '../support/waitFor.ts'
import '../support/whole.ts'

const LAG_S = 3
const folder = mkdtempSync(join(tmpdir(), 'purser-replica-'))
const stack = new AsyncDisposableStack()
const key = generateKey('project')
let replica: EmbeddedPostgres
let pool: Pool
/**
 * The following variables hold one API client for each of the two API processes. Both clients have the same API key.
 */
let clients: Client[]
let projectId: string
let urls: string[]

beforeAll(async () => {
  stack.defer(() => rmSync(folder, { recursive: true, force: true }))
  const options = (name: string) => ({ dataDir: join(folder, name), durable: false, onLog() {} })
  const primary = await startEmbeddedPostgres(options('primary'))
  stack.defer(() => primary.stop())
  const env = { DATABASE_URL: primary.url, MAIL_DOMAIN: 'mail.test', RATE_LIMIT_REQUESTS: '0' }
  await using migrate = startProcess('sql/main.ts', { ...env, BOOTSTRAP_PROJECT_KEY: key })
  expect(await migrate.exited).toBe(0)
  await copyCluster(primary.url)
  replica = await startEmbeddedPostgres(options('replica'))
  stack.defer(() => replica.stop())
  pool = createPool({ url: primary.url, size: 2, name: 'test' })
  stack.defer(() => pool.end())
  const apis = [1, 2].map(() =>
    stack.use(
      startProcess('api/main.ts', {
        ...env,
        DATABASE_REPLICA_URL: replica.url,
        // The API processes share this folder DATA_DIR, because it contains the generated development keys.
        DATA_DIR: join(folder, 'api'),
        PORT: '0',
        LOG_LEVEL: 'info',
      }),
    ),
  )
  urls = await Promise.all(
    apis.map(async (api) => {
      const [, port] = await printed(api, /"port":(\d+)/)
      return `http://127.0.0.1:${port}`
    }),
  )
  clients = urls.map((url) => createClient(url, key))
  projectId = (await clients[0]!.get('/v0/whoami')).body.projectId
})
afterAll(() => stack.disposeAsync())

/** Copies the running database server as a standby that applies each commit late. */
async function copyCluster(url: string): Promise<void> {
  const admin = new pg.Client({ connectionString: url })
  await admin.connect()
  await admin.query(`select pg_backup_start('replica', fast => true)`)
  cpSync(join(folder, 'primary'), join(folder, 'replica'), { recursive: true })
  const { rows } = await admin.query('select labelfile from pg_backup_stop()')
  await admin.end()
  const cluster = join(folder, 'replica/postgres')
  rmSync(join(cluster, 'postmaster.pid'), { force: true })
  writeFileSync(join(cluster, 'backup_label'), rows[0].labelfile)
  writeFileSync(join(cluster, 'standby.signal'), '')
  writeFileSync(
    join(cluster, 'postgresql.auto.conf'),
    `primary_conninfo = '${url}'\nrecovery_min_apply_delay = '${LAG_S}s'\n`,
  )
}

/** Adds a thread directly to the database, so that neither API process knows of this write. */
async function addThread(): Promise<string> {
  const id = `thd_${crypto.randomUUID().replaceAll('-', '').slice(0, 24)}`
  await pool.query(
    `insert into threads (id, project_id, subject, created_at, updated_at, message_count)
     values ($1, $2, 'Foreign', clock_timestamp(), clock_timestamp(), 1)`,
    [id, projectId],
  )
  return id
}
const listThreads = async (client: Client): Promise<string[]> => {
  const { status, body } = await client.get('/v0/threads?limit=100')
  expect(status).toBe(200)
  return body.threads.map(({ threadId }: { threadId: string }) => threadId)
}
/** Waits until an API process reads from the replica, and therefore does not see a new thread of the primary. */
const waitForReplica = (client: Client) =>
  waitFor('a read on the replica', async () => {
    const id = await addThread()
    return !(await listThreads(client)).includes(id)
  })

test('the API reads from the database replica, and a caller still sees its own write at once at every API process', async () => {
  for (const client of clients) await waitForReplica(client)
  for (const [writer, reader] of [clients, clients.toReversed()]) {
    for (let n = 0; n < 5; n++) {
      const sent = await writer!.post('/v0/messages/send', {
        to: ['a@example.com'],
        subject: 'Own',
        text: 'x',
      })
      expect(sent.status).toBe(201)
      for (const client of [reader!, writer!]) {
        expect(await listThreads(client)).toContain(sent.body.threadId)
        const { body } = await client.get('/v0/messages?limit=1')
        expect(body.messages[0].messageId).toBe(sent.body.messageId)
      }
    }
  }
  // The API reads from the replica again after the replica has caught up.
  await waitForReplica(clients[0]!)
})

test('an MCP tool that only reads data uses the replica, and an agent over MCP sees its own mail at once', async () => {
  const [first, second] = await Promise.all(urls.map((url) => connectMcp(url, key)))
  await using writer = first!
  await using reader = second!
  const listed = async (client: McpClient): Promise<string[]> => {
    const { threads } = await callTool(client, 'mail.list_threads', { limit: 100 })
    return threads.map(({ threadId }: { threadId: string }) => threadId)
  }
  const isStale = (client: McpClient) => async () => {
    const id = await addThread()
    return !(await listed(client)).includes(id)
  }
  for (const client of [writer, reader]) await waitFor('a read on the replica', isStale(client))
  // Reading lists over MCP must not make later lists over REST wait for the replica.
  const id = await addThread()
  await listed(writer)
  expect(await listThreads(clients[1]!)).not.toContain(id)
  const mail = { to: ['a@example.com'], subject: 'Zugspitze', text: 'x' }
  const sent = await callTool(writer, 'mail.send', mail)
  for (const client of [reader, writer]) {
    expect(await listed(client)).toContain(sent.threadId)
    const newest = await callTool(client, 'mail.list_messages', { limit: 1 })
    expect(newest.messages[0].messageId).toBe(sent.messageId)
    const found = await callTool(client, 'mail.search', { q: 'zugspitze' })
    expect(found.count).toBe(1)
  }
})

test('a person at the console sees each change at once, even if an agent made the change', async () => {
  const session = await startSession(pool, {
    personId: FIRST_OPERATOR,
    method: 'mail',
    agent: null,
  })
  const person = consoleClient(urls[0]!, `purser_session=${session!.secret}`)
  const home = `/projects/${projectId}/v0`
  await waitForReplica(clients[0]!)
  const mail = { to: ['a@example.com'], subject: 'Own', text: 'x' }
  const sent = await person.post(`${home}/messages/send`, mail)
  const other = await clients[1]!.post('/v0/messages/send', mail)
  expect([sent.status, other.status]).toEqual([201, 201])
  const { body } = await person.get(`${home}/messages?limit=100`)
  const listed = body.messages.map(({ messageId }: { messageId: string }) => messageId)
  expect(listed).toContain(sent.body.messageId)
  expect(listed).toContain(other.body.messageId)
})

test('a request for one thread always finds the thread, even if the database replica does not have it yet', async () => {
  const foreign = await addThread()
  expect((await clients[0]!.get(`/v0/threads/${foreign}`)).status).toBe(200)
})

test('while the database replica lacks a migration that the primary has, the primary answers the list requests of the API', async () => {
  const known = await addThread()
  const rename = (from: string, to: string) =>
    pool.query(`alter table threads rename column ${from} to ${to}`)
  const replicaPool = createPool({ url: replica.url, size: 1, name: 'test' })
  try {
    // For some seconds after these two changes, the primary has the column with its old name again, and the replica
    // still lacks it.
    await rename('subject', 'former')
    await waitFor('the change on the replica', async () => {
      const { rowCount } = await replicaPool.query(
        `select from information_schema.columns where table_name = 'threads' and column_name = 'former'`,
      )
      return rowCount === 1
    })
    await rename('former', 'subject')
    expect(await listThreads(clients[0]!)).toContain(known)
  } finally {
    await replicaPool.end()
  }
})

test('the API does not read from a database replica that has become a primary', async () => {
  const admin = new pg.Client({ connectionString: replica.url })
  await admin.connect()
  // The call does not wait for the promotion. A waiting call would keep a snapshot, and the replay of a deletion could
  // then cancel it.
  await admin.query('select pg_promote(false)')
  await admin.end()
  await waitFor('reads on the primary', async () => {
    const id = await addThread()
    return (await listThreads(clients[0]!)).includes(id)
  })
})

test('while the database replica is unreachable, the API reads from the primary', async () => {
  await replica.stop()
  for (const client of clients) {
    const id = await addThread()
    expect(await listThreads(client)).toContain(id)
  }
})
