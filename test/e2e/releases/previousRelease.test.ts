/**
 * Runs the processes of the previous release on the database schema of this release, because a service is in this state
 * right after `bun run migrate`.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import nodemailer from 'nodemailer'
import { startReceiver } from '../../support/events/receiver.ts'
import { type Sink, startSink } from '../../support/mail/sink.ts'
import { changesOf, hasCommit, unpackRelease } from '../../support/process/release.ts'
import { type Agent, type Client, createClient } from '../../support/service.ts'
import { pay, redeemToEnd, startTestTill, type TestTill } from '../../support/till/till.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/whole.ts'

const ROOT = join(import.meta.dir, '../../..')
const changelog = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8')
const [heading = '', version = ''] = /^## (\d+\.\d+\.\d+) \(.*\)$/m.exec(changelog) ?? []
/**
 * Holds the commit that dated the latest release in the changelog. The tag is not used, because a clone may not have
 * it.
 */
const commit = changesOf(heading, 'CHANGELOG.md').at(-1) ?? ''

test('the test finds the version and the git commit of the previous release', () => {
  expect(version).not.toBe('')
  expect(commit).not.toBe('')
})

const isKnown = hasCommit(commit)
if (!isKnown) {
  process.stderr.write(
    `SKIPPED: the tests of the previous release, because git has no commit ${commit}\n`,
  )
}

describe.skipIf(!isKnown)('the previous release works on the new database schema', () => {
  const stack = new AsyncDisposableStack()
  let till: TestTill
  let sink: Sink
  let agent: Agent
  let client: Client
  let smtpPort: number

  beforeAll(async () => {
    const release = stack.use(unpackRelease(commit))
    till = stack.use(await startTestTill({ worker: false }))
    sink = stack.use(await startSink())
    const env = {
      DATABASE_URL: till.service.database.url,
      MAIL_DOMAIN: 'mail.test',
      PORT: '0',
      SMTP_PORT: '0',
      RPC_URL: till.devnet.rpcUrl,
      ALLOW_PRIVATE_NETWORKS: 'true',
      SMTP_RELAY_URL: sink.url,
      LOG_LEVEL: 'info',
    }
    const port = await release.start('api/main.ts', env)
    smtpPort = await release.start('api/smtp/main.ts', env)
    await release.start('workers/main.ts', env)
    agent = await till.newSeller()
    client = createClient(`http://127.0.0.1:${port}`, agent.key, { isOtherRelease: true })
  })
  afterAll(() => stack.disposeAsync())

  test('the previous release receives and shows mail on the database schema of this release', async () => {
    const transport = nodemailer.createTransport({
      host: '127.0.0.1',
      port: smtpPort,
      ignoreTLS: true,
    })
    await transport.sendMail({ from: 'a@x.test', to: agent.address, subject: 'In', text: 'Hello' })
    const [item] = await waitFor('the mail', async () => {
      const { body } = await client.get('/v0/messages')
      return body.count > 0 ? body.messages : null
    })
    expect(item.subject).toBe('In')
    const { body } = await client.get(`/v0/messages/${encodeURIComponent(item.messageId)}`)
    expect(body.text).toInclude('Hello')
    expect((await client.get('/v0/messages?q=hello')).body.count).toBe(1)
  })

  test('the previous release sends mail on the database schema of this release', async () => {
    const answer = await client.post('/v0/messages/send', {
      to: ['bob@example.com'],
      subject: 'Out',
      text: 'x',
    })
    expect(answer.status).toBe(201)
    await waitFor('the mail', () => sink.mails.length > 0)
    expect(sink.mails[0]?.email.subject).toBe('Out')
  })

  test('the previous release stores and reads vault secrets on the database schema of this release', async () => {
    await client.put('/v0/vault/key', { type: 'API_KEY', data: { key: 'secret' } })
    expect((await client.get('/v0/vault/key')).body.data).toEqual({ key: 'secret' })
  })

  test('the previous release settles a payment and delivers its webhook on the database schema of this release', async () => {
    await using receiver = await startReceiver()
    await till.service.database.pool.query(
      'update seller_endpoints set webhook_url = $2 where project_id = $1',
      [agent.project.id, receiver.url],
    )
    const { body } = await redeemToEnd(client, (await pay()).header)
    expect(body).toMatchObject({ ok: true })
    await waitFor('the webhook', () => receiver.requests.length > 0)
    expect((await client.get(`/v0/payments/${body.paymentId}`)).body.status).toBe('settled')
  })
})
