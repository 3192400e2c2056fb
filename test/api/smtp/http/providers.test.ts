import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { InboundKeys } from '../../../../api/smtp/http/inboundKeys.ts'
import { createPostmark } from '../../../../api/smtp/http/postmark.ts'
import { slices } from '../../../../api/smtp/http/readBody.ts'
import type { HandedMail } from '../../../../api/smtp/http/takeMail.ts'
import { IncomingMails } from '../../../../api/smtp/incomingMail.ts'
import { networkSharers } from '../../../../api/smtp/sharers.ts'
// @ts-expect-error: the Cloudflare worker is plain JavaScript without types
import emailWorker from '../../../../deploy/cloudflare/emailWorker.js'
import { Pace } from '../../../../shared/fair/pace.ts'
import { handOver, INBOUND_ENV, signedRequest } from '../../../support/mail/signedMail.ts'
import {
  messagePath,
  startTestService,
  type TestService,
  waitForMessages,
} from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

let service: TestService
let port: number
beforeAll(async () => {
  service = await startTestService({ env: INBOUND_ENV })
  port = service.smtp!.httpPort!
})
afterAll(() => service[Symbol.asyncDispose]())

const INBOUND = '/v0/platform/domains/mail.test/inbound'
const newSecret = async (of = service) => {
  const { status, body } = await of.platform.post(INBOUND)
  expect(status).toBe(201)
  return body
}
const mailOf = (id: string) =>
  `Message-ID: <${id}@example.com>\r\nFrom: ada@example.com\r\nSubject: ${id}\r\n\r\nHi.\r\n`

/** Creates a secret for Postmark's webhook, and the webhook's request bodies for mails to one recipient. */
async function postmarkHook(recipient: string, of = service) {
  const { postmarkUrl } = await newSecret(of)
  const url = new URL(postmarkUrl)
  const headers = { authorization: `Basic ${btoa(`${url.username}:${url.password}`)}` }
  const textOf = (name: string, more = '') =>
    JSON.stringify({
      FromFull: { Email: 'ada@example.com' },
      OriginalRecipient: recipient,
      Headers: [{ Name: 'Return-Path', Value: '<bounces@example.com>' }],
      RawEmail: `${mailOf(name)}${more}`,
    })
  return { url, headers, textOf }
}

test('an inbound secret (for mail over HTTP) of a domain delivers mail to this domain only, and is shown once', async () => {
  const agent = await service.newAgent()
  const { keyId, secret } = await newSecret()
  const send = (to: string[]) =>
    handOver(port, signedRequest({ to, key: keyId, secret: Buffer.from(secret, 'base64') }))
  expect(await send([agent.address, 'x@elsewhere.test'])).toMatchObject({
    status: 200,
    body: {
      accepted: [agent.address],
      refused: [
        { address: 'x@elsewhere.test', reason: '5.7.1 This key delivers only to mail.test' },
      ],
    },
  })
  expect((await send(['x@elsewhere.test'])).status).toBe(404)
  const { body } = await service.platform.get(INBOUND)
  expect(body.secrets[0]).toEqual({
    keyId,
    createdAt: expect.any(String),
    expiresAt: null,
  })
})

test('after a domain gets a new inbound secret, the previous secret is valid for a day, and a revoked secret is refused at once', async () => {
  await using own = await startTestService({ env: INBOUND_ENV })
  const agent = await own.newAgent()
  const at = own.smtp!.httpPort!
  const { body: first } = await own.platform.post(INBOUND)
  const { body: second } = await own.platform.post(INBOUND)
  const send = ({ keyId, secret }: { keyId: string; secret: string }) =>
    handOver(
      at,
      signedRequest({
        to: [agent.address],
        key: keyId,
        secret: Buffer.from(secret, 'base64'),
      }),
    )
  const { body } = await own.platform.get(INBOUND)
  const [newest, former] = body.secrets
  expect([newest.keyId, newest.expiresAt, former.keyId]).toEqual([second.keyId, null, first.keyId])
  const leftH = (Date.parse(former.expiresAt) - Date.now()) / 3_600_000
  expect(leftH).toBeWithin(23.9, 24.1)
  await own.platform.delete(INBOUND)
  // The listener has never received the two revoked secrets before, so its cache does not contain them.
  expect((await send(first)).status).toBe(401)
  expect((await send(second)).status).toBe(401)
  const { body: third } = await own.platform.post(INBOUND)
  expect(third.keyId).toBe('mail.test#3')
})

test('an unknown domain gets no inbound secret, and without INBOUND_SECRETS no domain gets an inbound secret', async () => {
  expect((await service.platform.post('/v0/platform/domains/other.test/inbound')).status).toBe(404)
  await using closed = await startTestService({ workers: false, smtp: false })
  expect((await closed.platform.post(INBOUND)).status).toBe(409)
})

test('the Cloudflare worker delivers mail to the service, rejects mail that the service refuses permanently, and fails on other errors', async () => {
  const agent = await service.newAgent()
  const { keyId, secret } = await newSecret()
  const env = {
    PURSER_URL: `http://127.0.0.1:${port}/v0/inbound/raw`,
    PURSER_KEY: keyId,
    PURSER_SECRET: secret,
  }
  /**
   * Runs the Cloudflare worker with a message in the form that the Cloudflare runtime passes: envelope, bytes and
   * `setReject`.
   */
  const run = async (to: string, mail: string | Uint8Array<ArrayBuffer>, vars = env) => {
    const rejections: string[] = []
    const setReject = (reason: string) => rejections.push(reason)
    const raw = new Blob([mail]).stream()
    await emailWorker.email({ from: 'ada@example.com', to, raw, setReject }, vars)
    return rejections.join()
  }
  expect(await run(agent.address, mailOf('cloud'))).toBe('')
  await waitForMessages(agent, 1)
  expect(await run('nobody@mail.test', mailOf('none'))).toBe('5.1.1 No such inbox')
  expect(await run(agent.address, new Uint8Array(36 * 1024 * 1024))).toBe('5.3.4 Message too large')
  const wrong = { ...env, PURSER_SECRET: Buffer.alloc(32).toString('base64') }
  await expect(run(agent.address, mailOf('wrong'), wrong)).rejects.toThrow('Purser answered 401')
})

/** Sends the beginning of a webhook of Postmark, and leaves the connection open. */
function begin(
  at: number,
  { url, headers }: Pick<Awaited<ReturnType<typeof postmarkHook>>, 'url' | 'headers'>,
  text: string,
) {
  const socket = connect(at, '127.0.0.1').on('error', () => {})
  socket.write(
    `POST ${url.pathname} HTTP/1.1\r\nHost: x\r\nAuthorization: ${headers.authorization}\r\n` +
      `Content-Length: 3000000\r\n\r\n${text}`,
  )
  return socket
}

test('slow webhooks of Postmark with one inbound secret leave connections free for webhooks with another secret', async () => {
  await using narrow = await startTestService({
    env: { ...INBOUND_ENV, SMTP_MAX_CONNECTIONS_PER_IP: '2' },
  })
  const { address } = await narrow.newAgent()
  const [slow, other] = [await postmarkHook(address, narrow), await postmarkHook(address, narrow)]
  const at = narrow.smtp!.httpPort!
  const post = ({ url, headers, textOf }: typeof slow) =>
    handOver(at, { method: 'POST', body: textOf('late'), headers }, url.pathname)
  const folder = join(narrow.config.dataDir, `incoming-${process.pid}`)
  const open = [1, 2].map(() => begin(at, slow, 'x'.repeat(2_000_000)))
  await waitFor('two unfinished bodies', async () => readdirSync(folder).length === 2)
  const refused = await post(slow)
  expect([refused.status, refused.body.message.slice(0, 4)]).toEqual([503, '4.7.'])
  expect((await post(other)).status).toBe(200)
  for (const socket of open) socket.destroy()
  await waitFor('room for the secret', async () => (await post(slow)).status === 200)
})

test('a large webhook of Postmark that arrives slowly delays no other large webhook', async () => {
  const agent = await service.newAgent()
  const { url, headers, textOf } = await postmarkHook(agent.address)
  const post = (body: string) => handOver(port, { method: 'POST', body, headers }, url.pathname)
  const filling = 'x'.repeat(2_000_000)
  const folder = join(service.config.dataDir, `incoming-${process.pid}`)
  const held = begin(port, { url, headers }, filling)
  await waitFor('the unfinished body', async () => readdirSync(folder).length === 1)
  expect((await post(textOf('large', `\r\n${filling}`))).status).toBe(200)
  held.destroy()
  await waitForMessages(agent, 1)
  await waitFor('the end of the unfinished body', async () => readdirSync(folder).length === 0)
})

test('a webhook of Postmark is refused if its body or its mail is too large, or if no disk space is left for the mail', async () => {
  const { url, headers, textOf } = await postmarkHook((await service.newAgent()).address)
  const keys = new InboundKeys(service.database.pool, service.config.smtp.http!.secrets)
  let written = 0
  const held = (hasRoom: boolean) => ({
    async write(chunk: Buffer) {
      written += chunk.length
      return hasRoom
    },
    bytes: async () => Buffer.alloc(0),
    async discard() {},
  })
  const read = (megabytes: number, hasRoom: boolean) => {
    const body = (async function* () {
      for (let n = 0; n < megabytes; n++) yield Buffer.alloc(1024 * 1024)
    })()
    const request = { url: url.href, headers: new Headers(headers), body, countAs() {} }
    return createPostmark()({ ...request, hold: () => held(hasRoom) }, url.pathname, keys)
  }
  await expect(read(100, true)).rejects.toMatchObject({ responseCode: 552 })
  expect(written).toBe(70 * 1024 * 1024)
  await expect(read(2, false)).rejects.toMatchObject({ responseCode: 452 })
  expect(written).toBe(71 * 1024 * 1024)
  const body = textOf('huge', 'x'.repeat(35 * 1024 * 1024))
  expect((await handOver(port, { method: 'POST', body, headers }, url.pathname)).status).toBe(413)
})

test('large webhooks of Postmark are read one at a time, and a small webhook does not wait for them', async () => {
  const adapter = createPostmark()
  const { url, headers, textOf } = await postmarkHook('someone@mail.test')
  const keys = new InboundKeys(service.database.pool, service.config.smtp.http!.secrets)
  const folder = mkdtempSync(join(tmpdir(), 'purser-postmark-'))
  const incoming = new IncomingMails(folder, new Pace({ bytesPerS: 0, burstS: 0 }))
  const read = (bytes: number) => {
    const connection = { sharers: networkSharers('192.0.2.1'), activeMs: 0, hangUp() {} }
    const body = slices(Buffer.from(textOf('mail', 'x'.repeat(bytes))))
    const hold = () => incoming.begin([], connection)
    const request = { url: url.href, headers: new Headers(headers), body, countAs() {}, hold }
    return adapter(request, url.pathname, keys) as Promise<HandedMail>
  }
  const first = await read(2_000_000)
  let isRead = false
  const second = read(2_000_000).then((mail) => {
    isRead = true
    return mail
  })
  const small = await read(1_000)
  expect(isRead).toBe(false)
  small.release!()
  expect(isRead).toBe(false)
  first.release!()
  ;(await second).release!()
  rmSync(folder, { recursive: true })
})

test('the service stores a mail from Postmark’s secret webhook URL once, even if it is delivered twice, and keeps its SPF result separately', async () => {
  const agent = await service.newAgent()
  const { postmarkUrl } = await newSecret()
  const url = new URL(postmarkUrl)
  const authorization = `Basic ${btoa(`${url.username}:${url.password}`)}`
  const json = {
    FromFull: { Email: 'ada@example.com' },
    OriginalRecipient: agent.address,
    Headers: [
      { Name: 'Return-Path', Value: '<bounces@example.com>' },
      { Name: 'Received-SPF', Value: 'Pass (sender SPF authorized) identity=mailfrom' },
    ],
    RawEmail: mailOf('postmark'),
  }
  const post = (body: unknown, path = url.pathname, headers: Record<string, string> = {}) =>
    handOver(
      port,
      { method: 'POST', body: JSON.stringify(body), headers: { authorization, ...headers } },
      path,
    )
  expect((await post(json)).status).toBe(200)
  expect((await post(json)).status).toBe(200)
  expect((await post({ ...json, RawEmail: mailOf('second') })).status).toBe(200)
  expect(await waitForMessages(agent, 2)).toHaveLength(2)
  const { body: message } = await agent.get(messagePath('<postmark@example.com>'))
  expect(message.authentication).toMatchObject({ spf: 'none', providerSpf: 'pass' })

  expect((await post(json, url.pathname, { authorization: 'Basic eA==' })).status).toBe(401)
  const otherPath = `${url.pathname.slice(0, -1)}${url.pathname.endsWith('0') ? '1' : '0'}`
  expect((await post(json, otherPath)).status).toBe(401)
  expect((await post({ ...json, OriginalRecipient: 'nobody@mail.test' })).status).toBe(404)
  const faults: [body: unknown, message: RegExp][] = [
    [{ ...json, RawEmail: undefined }, /^RawEmail: must be set/],
    [{ ...json, OriginalRecipient: 5 }, /^OriginalRecipient: must be an address/],
    ['text', /^RawEmail: /],
    [null, /^RawEmail: /],
  ]
  for (const [body, message] of faults) {
    const answer = await post(body)
    expect(answer.status).toBe(400)
    expect(answer.body.message).toMatch(message)
  }
})
