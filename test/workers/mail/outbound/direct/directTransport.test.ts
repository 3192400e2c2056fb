import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { connect, createServer, type Socket } from 'node:net'
import { createDirectTransport } from '../../../../../workers/mail/outbound/direct/directTransport.ts'
import { fakeDns, type Zone } from '../../../../support/mail/fakeDns.ts'
import {
  copiesAt,
  hurry,
  sendMail,
  sunkAt,
  untilStatus,
} from '../../../../support/mail/outbound.ts'
import { type Sink, startSink } from '../../../../support/mail/sink.ts'
import {
  type Agent,
  messagePath,
  startTestService,
  type TestService,
  waitForMessages,
} from '../../../../support/service.ts'
import { waitFor } from '../../../../support/waitFor.ts'
import '../../../../support/long.ts'

let first: Sink
let second: Sink
let plainOnly: Sink
let service: TestService
let agent: Agent
const zone: Required<Zone> = { mx: {}, a: {}, txt: {}, failing: [] }

beforeAll(async () => {
  first = await startSink({ host: '127.0.0.2', tls: true })
  const { port } = first
  second = await startSink({ host: '127.0.0.3', port, tls: true })
  plainOnly = await startSink({ host: '127.0.0.4', port })
  Object.assign(zone.a, {
    'mx1.test': ['127.0.0.2'],
    'mx2.test': ['127.0.0.3'],
    'plain.test': ['127.0.0.4'],
    'away.test': ['127.0.0.9'],
  })
  service = await startTestService({
    smtp: false,
    env: { SMTP_RELAY_URL: 'direct', MAIL_HOSTNAME: 'mx.own.test' },
    dns: fakeDns(zone),
    directPort: port,
  })
  agent = await service.newAgent()
})
beforeEach(() => {
  for (const sink of [first, second, plainOnly]) {
    sink.refuseRecipient = () => null
    sink.refuseData = () => null
  }
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  for (const sink of [first, second, plainOnly]) await sink[Symbol.asyncDispose]()
})

const countAt = (sink: Sink, messageId: string) =>
  sink.mails.filter((mail) => mail.email.messageId === messageId).length

test('each recipient gets a separate SMTP transaction, each domain gets one connection, and TLS is used if the mail host offers TLS', async () => {
  zone.mx['one.test'] = [[10, 'mx1.test']]
  zone.mx['two.test'] = [[10, 'plain.test.']]
  const before = first.connections
  const { messageId } = await sendMail(agent, {
    to: ['a@one.test', 'b@two.test'],
    cc: ['c@one.test'],
    bcc: ['d@one.test'],
  })
  await untilStatus(agent, messageId, 'sent')
  const [one, two] = [await sunkAt(first, messageId), await sunkAt(plainOnly, messageId)]
  const copies = await copiesAt(first, messageId, ['a@one.test', 'c@one.test', 'd@one.test'])
  expect([...copies.values()].map(({ to }) => to.length)).toEqual([1, 1, 1])
  expect(new Set([...copies.values()].map(({ raw }) => raw)).size).toBe(1)
  expect(new Set([...copies.values()].map(({ from }) => from)).size).toBe(3)
  expect(first.connections - before).toBe(1)
  expect([one.secure, one.helo]).toEqual([true, 'mx.own.test'])
  expect(one.from).toStartWith(`${agent.address.split('@')[0]}+b`)
  // A mail host that serves many domains chooses its certificate by the server name in SNI, so the service must send
  // the name.
  expect(one.servername).toBe('mx1.test')
  expect([two.to, two.secure]).toEqual([['b@two.test'], false])
  expect(two.raw).toBe(one.raw)
  expect(one.raw).not.toContain('d@one.test')
})

test('mail goes to the preferred mail exchanger, or to the next mail exchanger if the preferred one cannot be reached', async () => {
  zone.mx['order.test'] = [
    [20, 'mx2.test'],
    [10, 'mx1.test'],
  ]
  const preferred = await sendMail(agent, { to: ['a@order.test'] })
  await sunkAt(first, preferred.messageId)
  zone.mx['away-first.test'] = [
    [10, 'away.test'],
    [20, 'nameless.test'],
    [30, 'mx2.test'],
  ]
  const { messageId } = await sendMail(agent, { to: ['a@away-first.test'] })
  await sunkAt(second, messageId)
  await untilStatus(agent, messageId, 'sent')
  expect(countAt(first, messageId)).toBe(0)
})

test('a domain without an MX record is its own mail host, and mail to a domain with a null MX or to a nonexistent domain fails', async () => {
  zone.a['implicit.test'] = ['127.0.0.2']
  const { messageId } = await sendMail(agent, { to: ['a@implicit.test'] })
  await sunkAt(first, messageId)
  zone.mx['null.test'] = [[0, '']]
  zone.a['null.test'] = ['127.0.0.2']
  zone.mx['lost.test'] = [[10, 'nameless.test']]
  zone.mx['own.test'] = [
    [10, 'MX.own.test.'],
    [20, 'mx1.test'],
  ]
  for (const [domain, error] of [
    ['null.test', '556 5.1.10 The domain accepts no mail (null MX)'],
    ['none.test', '550 5.1.2 The domain does not exist, or has no host that takes mail'],
    ['lost.test', '550 5.4.4 The mail exchangers of the domain have no address'],
    ['own.test', '550 5.4.6 The mail exchangers of the domain lead back here'],
  ] as const) {
    const sent = await sendMail(agent, { to: [`a@${domain}`] })
    const { deliveryError } = await untilStatus(agent, sent.messageId, 'failed')
    expect(deliveryError).toBe(`a@${domain}: ${error}`)
  }
})

test('outbound mail is deferred if a name server fails', async () => {
  zone.failing.push('flaky.test')
  const { messageId } = await sendMail(agent, { to: ['a@flaky.test'] })
  const { deliveryError } = await untilStatus(agent, messageId, 'deferred')
  expect(deliveryError).toContain('450 4.4.3')
  zone.failing.pop()
  zone.mx['flaky.test'] = [[10, 'mx1.test']]
  await hurry(service, messageId)
  await untilStatus(agent, messageId, 'sent')
})

test('a mail exchanger whose address lookup fails is skipped, and the mail is deferred if no mail exchanger is left', async () => {
  zone.failing.push('unsaid.test')
  zone.mx['spare.test'] = [
    [10, 'unsaid.test'],
    [20, 'mx1.test'],
  ]
  const { messageId } = await sendMail(agent, { to: ['a@spare.test'] })
  await sunkAt(first, messageId)
  await untilStatus(agent, messageId, 'sent')
  for (const other of ['nameless.test', 'unsaid2.test']) {
    zone.failing.push('unsaid2.test')
    zone.mx['unsaid.example'] = [
      [10, 'unsaid.test'],
      [20, other],
    ]
    const lost = await sendMail(agent, { to: ['a@unsaid.example'] })
    const { deliveryError } = await untilStatus(agent, lost.messageId, 'deferred')
    expect(deliveryError).toContain('450 4.4.3')
  }
  zone.failing.length = 0
})

test('if a mail host refuses a command of the SMTP transaction, the attempt ends, and no other mail host is tried', async () => {
  zone.mx['strict.test'] = [
    [10, 'mx1.test'],
    [20, 'mx2.test'],
  ]
  first.refuseRecipient = (address) =>
    address.startsWith('never')
      ? { code: 550, message: '5.1.1 unknown' }
      : { code: 450, message: '4.2.1 later' }
  const { messageId } = await sendMail(agent, { to: ['never@strict.test', 'later@strict.test'] })
  await untilStatus(agent, messageId, 'failed')
  const { rows } = await service.database.pool.query(
    `select address, state, error, attempts, next_attempt_at - updated_at as wait from outbound_recipients r
     join messages m on m.row = r.message_row where m.message_id = $1 order by address`,
    [messageId],
  )
  expect(rows).toMatchObject([
    { address: 'later@strict.test', state: 'deferred', error: '450 4.2.1 later', attempts: 1 },
    { address: 'never@strict.test', state: 'failed', error: '550 5.1.1 unknown', attempts: 1 },
  ])
  expect(rows[0].wait.minutes).toBeGreaterThanOrEqual(4)
  first.refuseRecipient = () => null
  await hurry(service, messageId)
  expect((await sunkAt(first, messageId)).to).toEqual(['later@strict.test'])
  expect(countAt(second, messageId)).toBe(0)
})

test('if a mail host closes the connection while receiving a message, no other mail host gets the message in this attempt', async () => {
  zone.mx['broken.test'] = [
    [10, 'cut.test'],
    [20, 'mx2.test'],
  ]
  const { startTcpProxy } = await import('../../../../support/process/tcpProxy.ts')
  await using proxy = await startTcpProxy(plainOnly.port, first.port, {
    host: '127.0.0.5',
    targetHost: '127.0.0.4',
  })
  zone.a['cut.test'] = ['127.0.0.5']
  let got = 0
  plainOnly.refuseData = async () => {
    if (got++ === 0) await proxy.cut()
    return null
  }
  const { messageId } = await sendMail(agent, { to: ['a@broken.test'] })
  await untilStatus(agent, messageId, 'deferred')
  expect([got, countAt(second, messageId)]).toEqual([1, 0])
})

/** Starts a mail host on the SMTP port of the tests. `connections` counts its clients. */
async function startHost(host: string, onClient: (client: Socket) => void) {
  let connections = 0
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    connections++
    sockets.add(client.on('error', () => {}))
    onClient(client)
  })
  await new Promise<void>((resolve) => server.listen(first.port, host, resolve))
  return {
    connections: () => connections,
    [Symbol.dispose]() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

/**
 * Forwards the bytes of a client to a mail host. If `answer` returns a reply for some bytes, the client gets this reply
 * and the bytes are not forwarded.
 */
const forwardTo = (host: string, answer: (chunk: Buffer) => string | null) => (client: Socket) => {
  const outer = connect(first.port, host)
  outer.on('error', () => {}).pipe(client)
  client
    .on('data', (chunk: Buffer) => {
      const answered = answer(chunk)
      if (answered === null) outer.write(chunk)
      else client.write(answered)
    })
    .on('close', () => outer.destroy())
}

test('a mail host that sends no SMTP greeting is tried once and named in the error, and then the next mail host is tried', async () => {
  using busy = await startHost('127.0.0.6', (client) => client.end('421 4.3.2 busy\r\n'))
  using shut = await startHost('127.0.0.7', (client) => client.destroy())
  Object.assign(zone.a, { 'busy.test': ['127.0.0.6'], 'shut.test': ['127.0.0.7'] })
  const said = {
    busy: '421 4.3.2 busy',
    shut: '421 4.4.1 the connection failed',
    away: '421 4.4.1 the connection failed',
  }
  for (const [name, error] of Object.entries(said)) {
    const alone = await sendMail(agent, { to: [`a@${name}.test`] })
    const { deliveryError } = await untilStatus(agent, alone.messageId, 'deferred')
    expect(deliveryError).toBe(`a@${name}.test: ${name}.test: ${error}`)
  }
  expect([busy.connections(), shut.connections()]).toEqual([1, 1])
  zone.mx['closing.test'] = [
    [10, 'busy.test'],
    [20, 'shut.test'],
    [30, 'mx1.test'],
  ]
  const { messageId } = await sendMail(agent, { to: ['a@closing.test'] })
  await sunkAt(first, messageId)
  await untilStatus(agent, messageId, 'sent')
})

test('a mail host that offers TLS and then refuses TLS gets the mail in plain text', async () => {
  using refusing = await startHost(
    '127.0.0.6',
    forwardTo('127.0.0.2', (chunk) =>
      /^STARTTLS/i.test(chunk.toString('latin1')) ? '454 4.7.0 not now\r\n' : null,
    ),
  )
  zone.a['refusing.test'] = ['127.0.0.6']
  const { messageId } = await sendMail(agent, { to: ['a@refusing.test'] })
  expect((await sunkAt(first, messageId)).secure).toBe(false)
  expect(refusing.connections()).toBe(1)
})

test('if a mail host accepts only some recipients, only the accepted recipients get the message', async () => {
  zone.mx['some.test'] = [[10, 'mx1.test']]
  first.refuseRecipient = (address) =>
    address.startsWith('never') ? { code: 550, message: '5.1.1 unknown' } : null
  const { messageId } = await sendMail(agent, { to: ['now@some.test', 'never@some.test'] })
  expect((await sunkAt(first, messageId)).to).toEqual(['now@some.test'])
  const { deliveryError } = await untilStatus(agent, messageId, 'failed')
  expect(deliveryError).toBe('never@some.test: 550 5.1.1 unknown')
})

test('if a mail host ends each connection after two messages, the other messages are sent over new connections', async () => {
  using counting = await startHost('127.0.0.6', (client) => {
    let messages = 0
    const isTooMany = (chunk: Buffer) =>
      /^MAIL FROM/im.test(chunk.toString('latin1')) && ++messages > 2
    forwardTo('127.0.0.4', (chunk) => (isTooMany(chunk) ? '421 4.7.0 too many\r\n' : null))(client)
  })
  zone.a['counting.test'] = ['127.0.0.6']
  const to = ['a', 'b', 'c', 'd', 'e'].map((name) => `${name}@counting.test`)
  const { messageId } = await sendMail(agent, { to })
  await untilStatus(agent, messageId, 'deferred')
  await hurry(service, messageId)
  await untilStatus(agent, messageId, 'sent')
  const got = plainOnly.mails.filter(({ email }) => email.messageId === messageId)
  expect(got.flatMap((mail) => mail.to).toSorted()).toEqual(to)
  expect(counting.connections()).toBe(3)
})

test('if a mail host refuses one recipient and closes the connection, the other recipients get their copies over a new connection', async () => {
  using closing = await startHost('127.0.0.6', (client) => {
    forwardTo('127.0.0.4', (chunk) => {
      if (/^RSET/im.test(chunk.toString('latin1'))) client.destroy()
      return null
    })(client)
  })
  plainOnly.refuseRecipient = (address) =>
    address.startsWith('never') ? { code: 550, message: '5.1.1 unknown' } : null
  zone.a['leaving.test'] = ['127.0.0.6']
  const to = ['never@leaving.test', 'now@leaving.test']
  const { messageId } = await sendMail(agent, { to })
  const { deliveryError } = await untilStatus(agent, messageId, 'failed')
  expect(deliveryError).toBe('never@leaving.test: 550 5.1.1 unknown')
  expect((await sunkAt(plainOnly, messageId)).to).toEqual(['now@leaving.test'])
  expect(closing.connections()).toBe(2)
  const { suppressions } = (await agent.get('/v0/suppressions')).body
  expect(suppressions.map((one: any) => one.address)).not.toContain('now@leaving.test')
})

test('a message that is larger than the size limit of a mail host fails at once', async () => {
  await using small = await startSink({ host: '127.0.0.8', port: first.port, bytesMax: 1_000 })
  zone.a['small.test'] = ['127.0.0.8']
  const { messageId } = await sendMail(agent, { to: ['a@small.test'], text: 'x'.repeat(2_000) })
  const { deliveryError } = await waitFor('the outcome', async () => {
    const { body } = await agent.get(messagePath(messageId))
    return body.deliveryStatus === 'queued' ? null : body
  })
  expect(deliveryError).toBe('a@small.test: 552 5.3.4 Message size larger than allowed 1000')
  await untilStatus(agent, messageId, 'failed')
  expect(small.mails).toEqual([])
})

test('mail is sent in plain text after a failed TLS handshake', async () => {
  const before = first.connections
  using breaker = await startHost('127.0.0.6', (inner) => {
    const outer = connect(first.port, '127.0.0.2')
    outer.on('error', () => {}).pipe(inner)
    inner.on('data', (chunk) => {
      // The byte 0x16 is the first byte of a TLS handshake, so the proxy breaks the connection when TLS begins.
      if (chunk[0] === 0x16) outer.destroy()
      else outer.write(chunk)
    })
    outer.on('close', () => inner.destroy())
    inner.on('close', () => outer.destroy())
  })
  zone.a['old.test'] = ['127.0.0.6']
  const { messageId } = await sendMail(agent, { to: ['a@old.test'] })
  expect((await sunkAt(first, messageId)).secure).toBe(false)
  expect([breaker.connections(), first.connections - before]).toEqual([2, 2])
})

const DEMANDS_TLS = '530 5.7.0 Must issue a STARTTLS command first'
/** Returns one refusal for each command, because a client may send several commands at once (RFC 2920). */
const refuseAll = (commands: string, refusal: string): string =>
  `${refusal}\r\n`.repeat(commands.trim().split('\r\n').length)

test('if a mail host demands TLS and its TLS fails for a moment, the mail is deferred and sent later', async () => {
  let isBroken = true
  const dropTls = (inner: Socket) => {
    const outer = connect(first.port, '127.0.0.2')
    outer.on('error', () => {}).pipe(inner)
    let isEncrypted = false
    inner.on('data', (chunk) => {
      // The byte 0x16 is the first byte of a TLS handshake, so the proxy breaks the connection when TLS begins.
      if (chunk[0] === 0x16 && isBroken) return outer.destroy()
      isEncrypted ||= chunk[0] === 0x16
      const said = chunk.toString('latin1')
      const demands = !isEncrypted && /^(MAIL|RCPT|DATA)/i.test(said)
      if (demands) inner.write(refuseAll(said, '500 5.7.10 Encryption needed'))
      else outer.write(chunk)
    })
    outer.on('close', () => inner.destroy())
    inner.on('close', () => outer.destroy())
  }
  using dropping = await startHost('127.0.0.6', dropTls)
  using refusing = await startHost(
    '127.0.0.7',
    forwardTo('127.0.0.2', (chunk) => {
      const said = chunk.toString('latin1')
      if (/^STARTTLS/i.test(said)) return '454 4.7.0 not now\r\n'
      return /^(MAIL|RCPT|DATA)/i.test(said) ? refuseAll(said, DEMANDS_TLS) : null
    }),
  )
  Object.assign(zone.a, { 'dropping.test': ['127.0.0.6'], 'demanding.test': ['127.0.0.7'] })
  for (const [name, error] of [
    ['dropping', '500 5.7.10 Encryption needed'],
    ['demanding', DEMANDS_TLS],
  ] as const) {
    const { messageId } = await sendMail(agent, { to: [`a@${name}.test`] })
    const { deliveryError } = await untilStatus(agent, messageId, 'deferred')
    expect(deliveryError).toContain(error)
    if (name === 'demanding') continue
    isBroken = false
    await hurry(service, messageId)
    expect((await sunkAt(first, messageId)).secure).toBe(true)
  }
  expect([dropping.connections() > 1, refusing.connections()]).toEqual([true, 1])
})

test('a mail host may send its greeting later than the time limit for opening the connection', async () => {
  const timeouts = { connectMs: 150, greetingMs: 2_000 }
  using late = await startHost('127.0.0.6', (inner) => {
    const outer = connect(first.port, '127.0.0.2')
    outer.on('error', () => {})
    inner.pipe(outer)
    setTimeout(() => outer.pipe(inner), 2 * timeouts.connectMs)
    outer.on('close', () => inner.destroy())
    inner.on('close', () => outer.destroy())
  })
  zone.a['patient.test'] = ['127.0.0.6']
  const transport = createDirectTransport({
    ...{ dns: fakeDns(zone), ownName: 'mx.own.test', allowPrivate: true },
    ...{ port: first.port, timeouts },
  })
  const outcomes: unknown[] = []
  await transport.send(
    {
      envelopes: [{ from: 'agent@own.test', to: 'a@patient.test' }],
      raw: Buffer.from('Subject: x\r\n\r\nx\r\n'),
    },
    async (some) => {
      outcomes.push(...some)
    },
  )
  expect(outcomes).toEqual([{ address: 'a@patient.test', state: 'sent', error: null }])
  expect(late.connections()).toBe(1)
})

test('if the time for the mail hosts of one domain is over, the remaining copies are deferred without a connection', async () => {
  const before = first.connections
  zone.a['slowly.test'] = ['127.0.0.2']
  const transport = createDirectTransport({
    ...{ dns: fakeDns(zone), ownName: 'mx.own.test', allowPrivate: true, port: first.port },
    timeouts: { connectMs: 5_000, greetingMs: 5_000, consignmentMs: 0 },
  })
  const outcomes: { address: string; state: string }[] = []
  await transport.send(
    {
      envelopes: ['a', 'b'].map((name) => ({ from: 'agent@own.test', to: `${name}@slowly.test` })),
      raw: Buffer.from('Subject: x\r\n\r\nx\r\n'),
    },
    async (some) => {
      outcomes.push(...some)
    },
  )
  expect(outcomes.map(({ address, state }) => [address, state])).toEqual([
    ['a@slowly.test', 'deferred'],
    ['b@slowly.test', 'deferred'],
  ])
  expect(first.connections).toBe(before)
})

test('mail to a failed mail domain of the service still arrives in its inboxes if its MX records lead to the service', async () => {
  const { pool } = service.database
  const inbox = await service.newAgent()
  await pool.query(
    `insert into mail_domains (domain, token, dkim_selector, dkim_record, status, verified_at)
     values ('former.test', '', '', '', 'failed', now()), ('gone.test', '', '', '', 'failed', now()),
       ('claimed.test', '', '', '', 'failed', null)`,
  )
  zone.mx['former.test'] = [[10, 'mx.own.test']]
  zone.mx['claimed.test'] = [[10, 'mx.own.test']]
  zone.mx['gone.test'] = [[10, 'mx1.test']]
  await pool.query(
    `update projects set email_address = 'agent@former.test' where email_address = $1`,
    [inbox.address],
  )
  const here = await sendMail(agent, { to: ['agent@former.test'] })
  await untilStatus(agent, here.messageId, 'sent')
  const [message] = await waitForMessages(inbox, 1)
  expect(message.messageId).toBe(here.messageId)
  const away = await sendMail(agent, { to: ['agent@gone.test'] })
  await sunkAt(first, away.messageId)
  const claimed = await sendMail(agent, { to: ['agent@claimed.test'] })
  const { deliveryError } = await untilStatus(agent, claimed.messageId, 'failed')
  expect(deliveryError).toContain('lead back here')
})

test('a domain whose mail host hangs delays neither mail to other recipients nor the recording of their outcomes', async () => {
  zone.mx['slow.test'] = [[10, 'mx2.test']]
  zone.mx['quick.test'] = [[10, 'mx1.test']]
  const { promise, resolve: release } = Promise.withResolvers<void>()
  let most = 0
  let open = 0
  second.refuseData = async () => {
    most = Math.max(most, ++open)
    await promise
    open--
    return null
  }
  try {
    const mixed = await sendMail(agent, { to: ['a@slow.test', 'b@quick.test'] })
    const slow = await Promise.all(
      Array.from({ length: 20 }, (_, n) => sendMail(agent, { to: [`a${n}@slow.test`] })),
    )
    const quick = await Promise.all(
      Array.from({ length: 20 }, (_, n) => sendMail(agent, { to: [`a${n}@quick.test`] })),
    )
    for (const { messageId } of quick) await untilStatus(agent, messageId, 'sent')
    await waitFor('the quick half of the mixed message', async () => {
      const { rows } = await service.database.pool.query(
        `select r.state from outbound_recipients r join messages m on m.row = r.message_row
         where m.message_id = $1 and r.address = 'b@quick.test'`,
        [mixed.messageId],
      )
      return rows[0].state === 'sent'
    })
    expect(most).toBeLessThanOrEqual(2)
    expect(countAt(second, mixed.messageId)).toBe(0)
    release()
    for (const { messageId } of slow) await untilStatus(agent, messageId, 'sent')
    await untilStatus(agent, mixed.messageId, 'sent')
    for (const { messageId } of slow) expect(countAt(second, messageId)).toBe(1)
    expect(countAt(first, mixed.messageId)).toBe(1)
    // The sending attempt must continue for the domain whose mail host hangs, although the result of the fast domain
    // has arrived.
    const { rows } = await service.database.pool.query(
      `select o.attempt from outbound_mails o join messages m on m.row = o.message_row
       where m.message_id = $1`,
      [mixed.messageId],
    )
    expect(rows[0].attempt).toBe(1)
  } finally {
    release()
  }
})

test('while a mail host hangs, a deferred recipient of another domain is tried as soon as the next attempt is due', async () => {
  zone.mx['slow.test'] = [[10, 'mx2.test']]
  zone.mx['quick.test'] = [[10, 'mx1.test']]
  const { promise, resolve: release } = Promise.withResolvers<void>()
  for (const sink of [first, second])
    sink.refuseRecipient = () => ({ code: 450, message: '4.2.0 later' })
  try {
    const { messageId } = await sendMail(agent, { to: ['a@slow.test', 'b@quick.test'] })
    await waitFor('both refusals', async () => {
      const { rows } = await service.database.pool.query(
        `select from outbound_recipients r join messages m on m.row = r.message_row
         where m.message_id = $1 and r.state = 'deferred'`,
        [messageId],
      )
      return rows.length === 2
    })
    for (const sink of [first, second]) sink.refuseRecipient = () => null
    second.refuseData = async () => {
      await promise
      return null
    }
    await hurry(service, messageId, 'b@quick.test')
    await sunkAt(first, messageId)
    expect(countAt(second, messageId)).toBe(0)
    release()
    await untilStatus(agent, messageId, 'sent')
  } finally {
    release()
  }
})

test('without ALLOW_PRIVATE_NETWORKS mail goes only to public addresses, and no error names a private address', async () => {
  await using guarded = await startTestService({
    smtp: false,
    env: { SMTP_RELAY_URL: 'direct', ALLOW_PRIVATE_NETWORKS: 'false' },
    dns: fakeDns({
      mx: {
        'loop.test': [[10, 'mx1.test']],
        'literal.test': [[10, '127.0.0.2']],
        'six.test': [[10, '::ffff:127.0.0.2']],
        'mixed.test': [[10, 'both.test']],
      },
      a: {
        'mx1.test': ['127.0.0.2'],
        'meta.test': ['169.254.169.254'],
        'both.test': ['10.0.0.1', '127.0.0.2', '::1'],
      },
    }),
    directPort: first.port,
  })
  const sender = await guarded.newAgent()
  const before = first.connections
  for (const domain of ['loop', 'literal', 'six', 'meta', 'mixed']) {
    const { messageId } = await sendMail(sender, { to: [`a@${domain}.test`] })
    const { deliveryError } = await untilStatus(sender, messageId, 'failed')
    expect(deliveryError).toBe(
      `a@${domain}.test: 550 5.4.4 The mail exchangers of the domain have no public address`,
    )
  }
  expect(first.connections).toBe(before)
})
