import { afterAll, beforeAll, expect, spyOn, test } from 'bun:test'
import { readdirSync, statSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { AddressBook } from '../../../../api/smtp/addressBook.ts'
import {
  handOver,
  INBOUND_ENV,
  type RawMail,
  signedRequest,
} from '../../../support/mail/signedMail.ts'
import { deliverRaw } from '../../../support/mail/smtpTalk.ts'
import {
  type Agent,
  messagePath,
  startTestService,
  type TestService,
  waitForMessages,
} from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

let service: TestService
let agent: Agent
let port: number
beforeAll(async () => {
  service = await startTestService({ env: INBOUND_ENV })
  agent = await service.newAgent()
  port = service.smtp!.httpPort!
})
afterAll(() => service[Symbol.asyncDispose]())

const send = (raw: RawMail) => handOver(port, signedRequest(raw))
const mailOf = (id: string, text = 'Hi.') =>
  `Message-ID: <${id}@example.com>\r\nFrom: ada@example.com\r\nSubject: ${id}\r\n\r\n${text}\r\n`

/** Sends all but the last 20 KB of a mail over HTTP, and leaves the connection open. */
function begin(at: number, to: string, bytes = 100_000) {
  const mail = 'x'.repeat(bytes)
  const { headers } = signedRequest({ to: [to], mail })
  const lines = Object.entries({ ...headers, host: 'x', 'content-length': String(mail.length) })
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  const socket = connect(at, '127.0.0.1').on('error', () => {})
  socket.write(`POST /v0/inbound/raw HTTP/1.1\r\n${head}\r\n${mail.slice(20_000)}`)
  return socket
}

test('a mail over HTTP is stored byte for byte, and the provider’s SPF result is shown apart from the service’s own check', async () => {
  const mail = Buffer.from(mailOf('first', 'Gr\xfc\xdfe\0'), 'latin1')
  const { status, body } = await send({ to: [agent.address], mail, spf: 'pass' })
  expect({ status, body }).toEqual({
    status: 200,
    body: { accepted: [agent.address], refused: [] },
  })
  await waitForMessages(agent, 1)
  const { body: message } = await agent.get(messagePath('<first@example.com>'))
  expect(message.authentication).toMatchObject({ spf: 'none', providerSpf: 'pass', dmarc: 'none' })
  const raw = await fetch(`${service.url}${messagePath('<first@example.com>')}/raw`, {
    headers: { authorization: `Bearer ${agent.key}` },
  })
  expect(Buffer.from(await raw.arrayBuffer()).equals(mail)).toBe(true)
})

test('an allow rule uses only the service’s own checks, and ignores the SPF result that the mail provider reports', async () => {
  const own = await service.newAgent()
  await own.post('/v0/email-rules', {
    type: 'ALLOW',
    scope: 'RECEIVE',
    value: 'ada@example.com',
  })
  await send({ to: [own.address], mail: mailOf('claimed'), spf: 'pass' })
  await waitFor('its refusal', async () => {
    const { rows } = await service.database.pool.query(
      'select 1 from inbound_mails where project_id = $1 and state <> $2',
      [own.project.id, 'accepted'],
    )
    return rows.length === 1
  })
  expect((await own.get('/v0/messages')).body.count).toBe(0)
})

test('a repeated HTTP delivery of a mail creates no second message', async () => {
  const own = await service.newAgent()
  const request = signedRequest({ to: [own.address], mail: mailOf('twice') })
  expect((await handOver(port, request)).status).toBe(200)
  expect((await handOver(port, request)).status).toBe(200)
  // Mails are processed in order, so when a later mail is in the inbox, the worker has also processed the earlier
  // mails.
  await send({ to: [own.address], mail: mailOf('later') })
  const messages = await waitForMessages(own, 2)
  expect(messages.map(({ subject }) => subject)).toEqual(['later', 'twice'])
})

test('an HTTP delivery without a valid secret is refused', async () => {
  const to = [agent.address]
  const nowS = Math.floor(Date.now() / 1000)
  const signed = signedRequest({ to })
  const changed = (headers: Record<string, string>) => ({
    ...signed,
    headers: { ...signed.headers, ...headers },
  })
  const elsewhere = signedRequest({ to: ['x@mail.test'] }).headers['purser-envelope']!
  const other = signedRequest({ to, mail: mailOf('other') })
  const attempts: [what: string, request: RequestInit, status: number][] = [
    ['a wrong secret', signedRequest({ to, secret: Buffer.alloc(32, 8) }), 401],
    ['an unknown key', signedRequest({ to, key: 'stranger' }), 401],
    ['a key of a domain without secrets', signedRequest({ to, key: 'mail.test#1' }), 401],
    ['an old request', signedRequest({ to, atS: nowS - 301 }), 401],
    ['a request of the future', signedRequest({ to, atS: nowS + 310 }), 401],
    ['no signature', changed({ 'purser-signature': '' }), 401],
    ['the envelope of another request', changed({ 'purser-envelope': elsewhere }), 401],
    [
      'the digest of another body',
      changed({ 'purser-digest': other.headers['purser-digest']! }),
      401,
    ],
    ['the body of another request', { ...signed, body: other.body! }, 400],
  ]
  const long = (chars: number) => changed({ 'purser-signature': 'a'.repeat(chars) })
  attempts.push(
    ['a wrong signature of 300 characters', long(300), 401],
    ['a signature of 301 characters', long(301), 400],
  )
  for (const [what, request, status] of attempts) {
    const answer = await handOver(port, request)
    expect([what, answer.status]).toEqual([what, status])
    expect(answer.body.message).toMatch(/^Purser-[A-Z]\w+: /)
  }
})

test('an HTTP delivery with an invalid envelope gets status 400 and a message that names the error', async () => {
  const faults: [envelope: string, message: string][] = [
    ['{}', 'Purser-Envelope: "from" must be an address, or empty'],
    ['{"from":"","to":[]}', 'Purser-Envelope: "to" must be a list of 1 to 100 addresses'],
    ['{"from":"","to":["x"]}', 'Purser-Envelope: "to" must hold addresses alone'],
    ['[', 'Purser-Envelope: must be base64url of a JSON object'],
  ]
  for (const [envelope, message] of faults) {
    const encoded = Buffer.from(envelope).toString('base64url')
    const answer = await send({ to: [agent.address], envelope: encoded })
    expect([answer.status, answer.body.message]).toEqual([400, message])
  }
})

test('mail over HTTP may have any envelope sender that SMTP accepts, such as a forwarder’s long address', async () => {
  const own = await service.newAgent()
  const senders = [
    `ada+caf_=${own.address.replace('@', '=')}=${'x'.repeat(60)}@gmail.com`,
    'root@[192.0.2.1]',
  ]
  for (const [n, from] of senders.entries()) {
    expect(
      await deliverRaw(service.smtp!.port, own.address, mailOf(`smtp-${n}`), { sender: from }),
    ).toStartWith('250')
    const { status, body } = await send({ to: [own.address], mail: mailOf(`http-${n}`), from })
    expect([status, body.accepted]).toEqual([200, [own.address]])
  }
  await waitForMessages(own, 2 * senders.length)
  const { rows } = await service.database.pool.query(
    'select envelope_from from inbound_mails where project_id = $1 order by id',
    [own.project.id],
  )
  expect(rows.map((row) => row.envelope_from)).toEqual(senders.flatMap((from) => [from, from]))
})

test('if the lookup of a recipient fails, the HTTP delivery gets status 503, so that the mail service sends the mail again', async () => {
  const find = spyOn(AddressBook.prototype, 'find').mockRejectedValue(new Error('broken'))
  const { status } = await send({ to: [agent.address] }).finally(() => find.mockRestore())
  expect(status).toBe(503)
})

test('an HTTP delivery without a body is a mail without content', async () => {
  const own = await service.newAgent()
  const { body: _, ...request } = signedRequest({ to: [own.address], mail: '' })
  const { status, body } = await handOver(port, request)
  expect([status, body.accepted]).toEqual([200, [own.address]])
  await waitForMessages(own, 1)
})

test('the response to an HTTP delivery lists accepted and unknown recipients, and has status 404 if no recipient is known', async () => {
  const own = await service.newAgent()
  const some = await send({ to: ['nobody@mail.test', own.address], mail: mailOf('some') })
  expect(some).toMatchObject({
    status: 200,
    body: {
      accepted: [own.address],
      refused: [{ address: 'nobody@mail.test', reason: '5.1.1 No such inbox' }],
    },
  })
  await waitForMessages(own, 1)
  const none = await send({ to: ['nobody@mail.test', 'x@elsewhere.test'] })
  expect(none).toMatchObject({
    status: 404,
    body: { error: 'not_found', message: '5.1.1 No such inbox', status: 404 },
  })
})

test('an HTTP delivery may name a hundred recipients of the longest addresses', async () => {
  const domain = `${`${'d'.repeat(60)}.`.repeat(3)}example`
  const longest = Array.from({ length: 99 }, (_, n) => `${String(n).padStart(63, 'x')}@${domain}`)
  const { status, body } = await send({ to: [agent.address, ...longest], mail: mailOf('hundred') })
  expect([status, body.accepted, body.refused?.length]).toEqual([200, [agent.address], 99])
})

test('an HTTP delivery above the size limit gets status 413, with and without a Content-Length', async () => {
  const mail = Buffer.alloc(35 * 1024 * 1024 + 1, 'x')
  const request = signedRequest({ to: [agent.address], mail })
  expect((await handOver(port, request)).status).toBe(413)
  const chunked = { ...request, body: new Blob([mail]).stream() }
  expect((await handOver(port, chunked)).status).toBe(413)
  const largest = { to: ['nobody@mail.test'], mail: mail.subarray(1) }
  expect((await handOver(port, signedRequest(largest))).status).toBe(404)
})

test('if the connection of an HTTP delivery breaks, no mail is stored', async () => {
  const folder = join(service.config.dataDir, `incoming-${process.pid}`)
  const socket = begin(port, agent.address)
  await waitFor('an unfinished message', async () => readdirSync(folder).length === 1)
  socket.destroy()
  await waitFor('its end', async () => readdirSync(folder).length === 0)
})

test('too many HTTP deliveries get status 503, and the refused mails are not stored', async () => {
  await using narrow = await startTestService({
    env: { ...INBOUND_ENV, SMTP_MESSAGES_PER_IP: '1', SMTP_MESSAGES_PER_INBOX: '1' },
  })
  const own = await narrow.newAgent()
  const other = await narrow.newAgent()
  const at = narrow.smtp!.httpPort!
  const hand = (id: string, { address } = own) =>
    handOver(at, signedRequest({ to: [address], mail: mailOf(id) }))
  expect((await hand('one')).status).toBe(200)
  const refused = await hand('two')
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '30'])
  expect(refused.body.message).toStartWith('4.2.1 ')
  // A mail provider delivers everybody's mail from one address, so the limit SMTP_MESSAGES_PER_IP does not apply here.
  expect((await hand('three', other)).status).toBe(200)
  const messages = await waitForMessages(own, 1)
  expect(messages).toHaveLength(1)
})

test('connections that deliver mail over HTTP count against the limit of the receiving inbox, so that a flooded inbox delays no other inbox', async () => {
  await using narrow = await startTestService({
    env: { ...INBOUND_ENV, SMTP_MAX_CONNECTIONS_PER_IP: '2' },
  })
  const flooded = await narrow.newAgent()
  const other = await narrow.newAgent()
  const at = narrow.smtp!.httpPort!
  const folder = join(narrow.config.dataDir, `incoming-${process.pid}`)
  const open = ['first', 'second'].map(() => begin(at, flooded.address))
  await waitFor('two unfinished messages', async () => readdirSync(folder).length === 2)
  const hand = ({ address }: Agent) =>
    handOver(at, signedRequest({ to: [address], mail: mailOf('late') }))
  const refused = await hand(flooded)
  expect([refused.status, refused.body.message.slice(0, 6)]).toEqual([503, '4.2.1 '])
  expect((await hand(other)).status).toBe(200)
  const both = await handOver(
    at,
    signedRequest({ to: [flooded.address, other.address], mail: mailOf('for both') }),
  )
  expect(both.status).toBe(503)
  const [forBoth] = await waitForMessages(other, 2)
  expect(forBoth.subject).toBe('for both')
  for (const socket of open) socket.destroy()
  await waitFor('room for the inbox', async () => (await hand(flooded)).status === 200)
})

test('incomplete mails over HTTP for one inbox leave enough space for the mails of other inboxes', async () => {
  await using own = await startTestService({
    env: { ...INBOUND_ENV, SMTP_LARGE_KB_PER_S: '1000000' },
    workers: false,
  })
  const flooded = await own.newAgent()
  const other = await own.newAgent()
  const at = own.smtp!.httpPort!
  const folder = join(own.config.dataDir, `incoming-${process.pid}`)
  const arrived = () =>
    readdirSync(folder).reduce((sum, file) => sum + statSync(join(folder, file)).size, 0)
  const MB = 1024 * 1024
  const sizes = [35, 35, 35, 35, 35, 35, 35, 11].map((megabytes) => megabytes * MB)
  const open = sizes.map((bytes) => begin(at, flooded.address, bytes))
  await waitFor('its share to be used up', () => arrived() === 256 * MB - 8 * 20_000)
  const hand = ({ address }: Agent) => {
    const mail = mailOf('late', 'x'.repeat(200_000))
    return handOver(at, signedRequest({ to: [address], mail }))
  }
  const refused = await hand(flooded)
  expect([refused.status, refused.body.message.slice(0, 6)]).toEqual([503, '4.3.1 '])
  expect((await hand(other)).status).toBe(200)
  for (const socket of open) socket.destroy()
  await waitFor('its share to be free', async () => (await hand(flooded)).status === 200)
})

test('the HTTP port for mail is closed without INBOUND_SECRETS, and otherwise refuses unknown paths and methods', async () => {
  await using closed = await startTestService({ workers: false })
  expect(closed.smtp!.httpPort).toBeNull()
  expect((await handOver(port, { method: 'POST', body: 'x' }, '/v0/other')).status).toBe(404)
  expect((await handOver(port, { method: 'GET' })).status).toBe(405)
})

test('an HTTP delivery with an invalid Host header gets status 400, so that the mail provider does not repeat it', async () => {
  const answerTo = (head: string) =>
    new Promise<string>((resolve) => {
      let answer = ''
      const socket = connect(port, '127.0.0.1', () => socket.write(`${head}\r\n\r\n`))
      socket.on('data', (bytes) => {
        answer += bytes
        socket.end()
      })
      socket.on('close', () => resolve(answer))
    })
  const rest = 'HTTP/1.1\r\nContent-Length: 0\r\nHost:'
  for (const host of ['a?b', 'a/b', 'a b', 'a:port']) {
    const answer = await answerTo(`POST /v0/inbound/raw ${rest} ${host}`)
    expect([host, answer.split('\r\n')[0]]).toEqual([host, 'HTTP/1.1 400 Bad Request'])
    expect(answer).toContain('Host must be a host name or an IP address')
  }
  const answer = await answerTo(`POST /v0/inbound/raw ${rest} mail.example:80`)
  expect(answer).toStartWith('HTTP/1.1 401')
})

test('while the database is unreachable, mail with a secret that the process already knows is accepted over HTTP and arrives later', async () => {
  await using away = await startTestService({ env: INBOUND_ENV, proxied: true })
  const own = await away.newAgent()
  const at = away.smtp!.httpPort!
  const hand = (id: string, key = 'relay') =>
    handOver(at, signedRequest({ to: [own.address], mail: mailOf(id), key }))
  expect((await hand('before')).status).toBe(200)
  await waitForMessages(own, 1)
  await away.proxy!.cut()
  expect((await hand('during')).status).toBe(200)
  expect((await hand('unknown', 'mail.test#1')).status).toBe(503)
  await away.proxy!.mend()
  const messages = await waitForMessages(own, 2)
  expect(messages[0].subject).toBe('during')
})
