/** Tests that `bun run migrate` to this version keeps the data of an earlier version. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateKey } from '../../../shared/apiKey.ts'
import { createTestDatabase } from '../../support/database/database.ts'
import { startReceiver } from '../../support/events/receiver.ts'
import { type Sink, startSink } from '../../support/mail/sink.ts'
import { printed, startProcess } from '../../support/process/process.ts'
import { hasCommit, unpackRelease } from '../../support/process/release.ts'
import { type Client, createClient, deliverMail } from '../../support/service.ts'
import {
  pay,
  payTo,
  RESOURCE,
  redeem,
  redeemToEnd,
  registerEndpoint,
  startTestTill,
} from '../../support/till/till.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/whole.ts'

/** Holds the last commit before secrets had placement rules and database tables had comments. */
const COMMIT = 'b8e99c7'
const isKnown = hasCommit(COMMIT)
if (!isKnown) {
  process.stderr.write(`SKIPPED: the test of an upgrade, because git has no commit ${COMMIT}\n`)
}

describe.skipIf(!isKnown)(`an upgrade from ${COMMIT} keeps its data`, () => {
  const stack = new AsyncDisposableStack()
  const platformKey = generateKey('platform')
  let client: Client
  let platform: Client
  let projectId: string
  let header: string
  let settled: { paymentId: string; txHash: string; receipt: unknown }
  let sink: Sink

  beforeAll(async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'purser-upgrade-'))
    stack.defer(() => rmSync(dataDir, { recursive: true, force: true }))
    const database = stack.use(await createTestDatabase('template0'))
    const { devnet } = stack.use(await startTestTill({ worker: false }))
    sink = stack.use(await startSink())
    const receiver = stack.use(await startReceiver())
    const env = {
      DATABASE_URL: database.url,
      DATA_DIR: dataDir,
      MAIL_DOMAIN: 'mail.test',
      PORT: '0',
      SMTP_PORT: '0',
      RPC_URL: devnet.rpcUrl,
      ALLOW_PRIVATE_NETWORKS: 'true',
      SMTP_RELAY_URL: sink.url,
      BOOTSTRAP_PLATFORM_KEY: platformKey,
      LOG_LEVEL: 'info',
    }
    const old = stack.use(unpackRelease(COMMIT))
    expect(await old.run('sql/main.ts', env)).toBe(0)
    const oldPort = await old.start('api/main.ts', env)
    const oldSmtp = await old.start('api/smtp/main.ts', env)
    await old.start('workers/main.ts', env)
    const oldUrl = `http://127.0.0.1:${oldPort}`
    const oldPlatform = createClient(oldUrl, platformKey, { isOtherRelease: true })
    const { body: project } = await oldPlatform.post('/v0/platform/projects', {
      name: 'Shop',
      purpose: 'SELLER',
      emailName: 'shop',
    })
    projectId = project.projectId
    const before = createClient(oldUrl, project.rawKey, { isOtherRelease: true })
    await oldPlatform.patch(`/v0/platform/projects/${projectId}`, { payTo, paymentsEnabled: true })
    await registerEndpoint(database.pool, {
      projectId,
      resource: RESOURCE,
      webhookUrl: receiver.url,
    })
    const to = project.emailAddress
    await deliverMail(oldSmtp, { from: 'a@x.test', to, subject: 'Before', text: 'An old word' })
    await waitFor('the mail', async () => (await before.get('/v0/messages')).body.count === 1)
    await before.post('/v0/messages/send', { to: ['bob@x.test'], subject: 'Out', text: 'x' })
    await waitFor('the sent mail', () => sink.mails.length === 1)
    await before.put('/v0/vault/token', { type: 'API_KEY', data: { key: 'kept' } })
    ;({ header } = await pay())
    settled = (await redeemToEnd(before, header)).body
    await waitFor('the webhook', () => receiver.requests.length > 0)
    await old.stop()

    const migrated = startProcess('sql/main.ts', env)
    expect(await migrated.exited).toBe(0)
    const api = stack.use(startProcess('api/main.ts', env))
    await printed(api, /"msg":"ready"/)
    const workers = stack.use(startProcess('workers/main.ts', env))
    await printed(workers, /"msg":"ready"/)
    const url = `http://127.0.0.1:${/"port":(\d+)/.exec(api.stdout())![1]}`
    client = createClient(url, project.rawKey)
    platform = createClient(url, platformKey)
  }, 180_000)
  afterAll(() => stack.disposeAsync())

  test('after an upgrade of the service, old mail can still be found, shown and answered', async () => {
    const { body } = await client.get('/v0/messages?q=old')
    expect(body.messages).toHaveLength(1)
    const path = `/v0/messages/${encodeURIComponent(body.messages[0].messageId)}`
    expect((await client.get(path)).body.text).toContain('An old word')
    const reply = await client.post(`${path}/reply`, { text: 'A new word' })
    expect(reply.status).toBe(201)
    await waitFor('the reply', () => sink.mails.length === 2)
  })

  test('after an upgrade of the service, old secrets can be read, and have the new default placement (where a request may use them)', async () => {
    const { body } = await client.get('/v0/vault/token')
    expect(body.data).toEqual({ key: 'kept' })
    expect(body.placement).toEqual(['header:authorization'])
  })

  test('after an upgrade, a settled payment stays settled and cannot be redeemed again, and the next payment settles', async () => {
    const { body } = await client.get(`/v0/payments/${settled.paymentId}`)
    expect(body).toMatchObject({ status: 'settled', txHash: settled.txHash })
    expect((await redeem(client, header)).body).toMatchObject({
      ok: false,
      reason: 'duplicate_settlement',
    })
    expect((await redeemToEnd(client, (await pay()).header)).body.ok).toBe(true)
  })

  test('after an upgrade of the service, the project still exists and has the same name as before', async () => {
    const { body } = await platform.get(`/v0/platform/projects/${projectId}`)
    expect(body.name).toBe('Shop')
  })
})
