import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import {
  type BounceOf,
  exchangeBounce,
  eximBounce,
  gmailBounce,
  qmailBounce,
  standardBounce,
} from '../../../support/mail/bounceMails.ts'
import { copiesAt, hurry, sendMail, sunkAt, untilStatus } from '../../../support/mail/outbound.ts'
import { type Sink, startSink } from '../../../support/mail/sink.ts'
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

let sink: Sink
let service: TestService
beforeAll(async () => {
  sink = await startSink()
  service = await startTestService({ env: { SMTP_RELAY_URL: sink.url } })
})
afterEach(() => {
  sink.refuseRecipient = () => null
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await sink[Symbol.asyncDispose]()
})

/** Sends a message, and waits until the smarthost (the mail relay) has a copy for each recipient. */
async function sent(agent: Agent, to: string[], more: object = {}) {
  const message = await sendMail(agent, { to, ...more })
  const copies = await copiesAt(sink, message.messageId, to)
  await untilStatus(agent, message.messageId, 'sent')
  /** Holds the envelope sender of each copy of the message, in the order of the recipients in `to`. */
  return { ...message, returnPaths: to.map((one) => copies.get(one)!.from) }
}

/** Delivers a bounce report as a mail host does, from the null reverse path to the envelope sender. */
async function returnTo(agent: Agent, raw: string, address = agent.address): Promise<void> {
  const before = (await agent.get('/v0/messages?limit=100&labels=received')).body.count
  expect(await deliverRaw(service.smtp!.port, address, raw, { sender: '' })).toStartWith('250')
  await waitForMessages(agent, before + 1, '&labels=received')
}

const suppressed = async (agent: Agent) =>
  (await agent.get('/v0/suppressions')).body.suppressions.map((one: any) => one.address)

test('a bounce changes status, label and thread of the bounced message, suppresses the recipient, and sends an event', async () => {
  const agent = await service.newAgent()
  const { messageId, threadId, returnPaths } = await sent(agent, ['Ada@example.com'])
  const of: BounceOf = { messageId, recipient: 'ada@EXAMPLE.com', to: agent.address }
  await returnTo(agent, standardBounce(of), returnPaths[0])
  const message = (await agent.get(messagePath(messageId))).body
  expect(message).toMatchObject({
    deliveryStatus: 'bounced',
    deliveryError: 'Ada@example.com: 550 5.1.1 <ada@EXAMPLE.com>: Recipient address rejected',
    labels: ['sent', 'bounced'],
  })
  const { messages } = (await agent.get(`/v0/threads/${threadId}`)).body
  expect(messages.map((one: any) => one.labels)).toEqual([
    ['sent', 'bounced'],
    // The mail with the bounce report is not authenticated. The service trusts the report only because it was sent to
    // the secret bounce address.
    ['received', 'unread', 'unauthenticated'],
  ])
  const { suppressions, count } = (await agent.get('/v0/suppressions')).body
  expect([suppressions, count]).toEqual([
    [
      {
        address: 'ada@example.com',
        reason: 'bounce',
        detail: '550 5.1.1 <ada@EXAMPLE.com>: Recipient address rejected',
        messageId,
        createdAt: expect.stringMatching(/\.\d{3}Z$/),
      },
    ],
    1,
  ])
  const { rows } = await service.database.pool.query(
    `select type, data from events where project_id = $1 order by seq`,
    [agent.project.id],
  )
  expect(rows.map((row) => row.type)).toEqual([
    'message.sent',
    'message.received',
    'message.bounced',
  ])
  expect(rows[2].data).toMatchObject({ messageId, threadId, labels: ['sent', 'bounced'] })
})

test('a bounce in the format of qmail, Exim, Exchange or Gmail marks the message as bounced, and the recipient gets no more mail', async () => {
  const agent = await service.newAgent()
  for (const form of [qmailBounce, eximBounce, exchangeBounce, gmailBounce]) {
    const recipient = `${form.name.toLowerCase()}@example.com`
    const { messageId, returnPaths } = await sent(agent, [recipient])
    await returnTo(agent, form({ messageId, recipient, to: agent.address }), returnPaths[0])
    const { deliveryStatus } = (await agent.get(messagePath(messageId))).body
    expect([form.name, deliveryStatus]).toEqual([form.name, 'bounced'])
  }
  expect(await suppressed(agent)).toHaveLength(4)
})

test('a temporary bounce, or a bounce because of a policy, does not suppress the recipient address', async () => {
  const agent = await service.newAgent()
  const cases: [Partial<BounceOf>, string][] = [
    [{ status: '4.4.7', said: '421 4.4.7 expired' }, 'bounced'],
    [{ status: '5.7.1', said: '550 5.7.1 rejected by policy' }, 'bounced'],
    [{ status: '5.3.4', said: '552 5.3.4 too big' }, 'bounced'],
    [{ status: '4.4.1', action: 'delayed' }, 'sent'],
  ]
  for (const [n, [more, status]] of cases.entries()) {
    const recipient = `a${n}@example.com`
    const { messageId, returnPaths } = await sent(agent, [recipient])
    const raw = standardBounce({ messageId, recipient, to: agent.address, ...more })
    await returnTo(agent, raw, returnPaths[0])
    const message = (await agent.get(messagePath(messageId))).body
    expect([more, message.deliveryStatus]).toEqual([more, status])
  }
  expect(await suppressed(agent)).toEqual([])
})

test('a bounce changes nothing if the project has not sent the bounced message to the named recipient', async () => {
  const [agent, other] = [await service.newAgent(), await service.newAgent()]
  const own = await sent(agent, ['one@example.com', 'two@example.com'])
  const theirs = await sent(other, ['victim@example.com'])
  const to = agent.address
  for (const forged of [
    { messageId: '<never@mail.test>', recipient: 'one@example.com', to },
    { messageId: theirs.messageId, recipient: 'victim@example.com', to },
    { messageId: own.messageId, recipient: 'victim@example.com', to },
  ]) {
    await returnTo(agent, standardBounce(forged))
  }
  expect([await suppressed(agent), await suppressed(other)]).toEqual([[], []])
  for (const [who, { messageId }] of [
    [agent, own],
    [other, theirs],
  ] as const) {
    const { deliveryStatus, labels } = (await who.get(messagePath(messageId))).body
    expect([deliveryStatus, labels]).toEqual(['sent', ['sent']])
  }
})

test('a bounce suppresses only the failed recipient, and a bounce from the target of a forwarding address suppresses no address', async () => {
  const agent = await service.newAgent()
  const to = agent.address
  const pair = await sent(agent, ['one@example.com', 'two@example.com'])
  await returnTo(
    agent,
    standardBounce({ messageId: pair.messageId, recipient: 'two@example.com', to }),
    pair.returnPaths[1],
  )
  expect((await agent.get(messagePath(pair.messageId))).body.deliveryError).toStartWith('two@')
  expect(await suppressed(agent)).toEqual(['two@example.com'])
  const { messageId, returnPaths } = await sent(agent, ['alias@example.com'])
  const forwarded = standardBounce({ messageId, recipient: 'elsewhere@home.test', to })
  await returnTo(agent, forwarded, returnPaths[0])
  expect((await agent.get(messagePath(messageId))).body.deliveryStatus).toBe('bounced')
  expect(await suppressed(agent)).toEqual(['two@example.com'])
})

test('if a bounce arrives before the sending attempt is recorded, the message keeps the status bounced', async () => {
  const agent = await service.newAgent()
  const arrived = Promise.withResolvers<void>()
  sink.refuseData = async () => {
    await arrived.promise
    return null
  }
  const { messageId } = await sendMail(agent, { to: ['quick@example.com'] })
  await returnTo(
    agent,
    standardBounce({ messageId, recipient: 'quick@example.com', to: agent.address }),
  )
  arrived.resolve()
  sink.refuseData = () => null
  await sunkAt(sink, messageId)
  await waitFor('the end of the attempt', async () => {
    const { rows } = await service.database.pool.query(
      `select o.state from outbound_mails o join messages m on m.row = o.message_row where m.message_id = $1`,
      [messageId],
    )
    return rows[0].state === 'done'
  })
  expect((await agent.get(messagePath(messageId))).body.deliveryStatus).toBe('bounced')
})

test('suppressed recipients get no mail, a mail that has only suppressed recipients gets 422, and a suppression can be deleted', async () => {
  const agent = await service.newAgent()
  const { messageId, returnPaths } = await sent(agent, ['gone@example.com'])
  await returnTo(
    agent,
    standardBounce({ messageId, recipient: 'gone@example.com', to: agent.address }),
    returnPaths[0],
  )
  const mixed = await sendMail(agent, { to: ['GONE@example.com', 'here@example.com'] })
  expect(mixed.refused).toEqual([{ address: 'GONE@example.com', reason: 'suppressed' }])
  expect((await sunkAt(sink, mixed.messageId)).to).toEqual(['here@example.com'])
  const shown = await untilStatus(agent, mixed.messageId, 'failed')
  expect(shown.deliveryError).toBe(
    'GONE@example.com: suppressed: an earlier mail to this address came back',
  )
  const mail = { to: ['gone@example.com'], subject: 's', text: 't' }
  for (const answer of [
    await agent.post('/v0/messages/send', mail),
    await agent.post(`${messagePath(messageId)}/reply`, { text: 'x' }),
  ]) {
    expect([answer.status, answer.body.error, answer.body.message]).toEqual([
      422,
      'recipient_blocked',
      'Every recipient is refused: gone@example.com (suppressed)',
    ])
  }
  const stranger = await service.newAgent()
  expect((await stranger.post('/v0/messages/send', mail)).status).toBe(201)
  expect((await stranger.delete('/v0/suppressions/gone@example.com')).status).toBe(404)
  expect((await agent.delete('/v0/suppressions/Gone%40example.com')).status).toBe(204)
  expect((await agent.delete('/v0/suppressions/gone@example.com')).body).toMatchObject({
    error: 'not_found',
    message: 'Suppression not found',
  })
  expect((await sendMail(agent, mail)).refused).toBeUndefined()
})

test('an unknown mailbox in the SMTP reply to RCPT suppresses the address at once, and other SMTP refusals suppress no address', async () => {
  const agent = await service.newAgent()
  sink.refuseRecipient = (address) =>
    address.startsWith('nobody')
      ? { code: 550, message: '5.1.1 No such user' }
      : { code: 550, message: '5.7.1 Not from you' }
  for (const to of ['nobody@example.com', 'policy@example.com']) {
    await untilStatus(agent, (await sendMail(agent, { to: [to] })).messageId, 'failed')
  }
  const { suppressions } = (await agent.get('/v0/suppressions')).body
  expect(suppressions).toMatchObject([
    { address: 'nobody@example.com', reason: 'rejection', detail: '550 5.1.1 No such user' },
  ])
  // A recipient at the service’s own domain is not suppressed, because the missing inbox may be created later.
  await untilStatus(agent, (await sendMail(agent, { to: ['later@mail.test'] })).messageId, 'failed')
  expect(await suppressed(agent)).toEqual(['nobody@example.com'])
})

test('deferred mail is not sent to a recipient that was suppressed after the first attempt', async () => {
  const agent = await service.newAgent()
  sink.refuseRecipient = () => ({ code: 450, message: 'later' })
  const { messageId } = await sendMail(agent, { to: ['soon@example.com', 'fine@example.com'] })
  await untilStatus(agent, messageId, 'deferred')
  sink.refuseRecipient = () => ({ code: 550, message: '5.1.1 No such user' })
  await untilStatus(
    agent,
    (await sendMail(agent, { to: ['soon@example.com'] })).messageId,
    'failed',
  )
  sink.refuseRecipient = () => null
  await hurry(service, messageId)
  const { deliveryError } = await untilStatus(agent, messageId, 'failed')
  expect(deliveryError).toContain('suppressed')
  expect((await sunkAt(sink, messageId)).to).toEqual(['fine@example.com'])
})

test('suppressed addresses are listed in pages, and an API key needs the scope mail:manage to delete a suppression', async () => {
  const agent = await service.newAgent()
  await service.database.pool.query(
    `insert into suppressions (project_id, address, reason, created_at)
     select $1, 'a' || n || '@example.com', 'bounce', '2026-01-05T09:30:00.123Z' from generate_series(1, 25) n`,
    [agent.project.id],
  )
  const seen: string[] = []
  for (let token = ''; ; ) {
    const { body } = await agent.get(`/v0/suppressions?limit=10${token}`)
    seen.push(...body.suppressions.map((one: any) => one.address))
    if (body.nextPageToken === undefined) break
    token = `&pageToken=${body.nextPageToken}`
  }
  expect([seen.length, new Set(seen).size]).toEqual([25, 25])
  const reader = await service.newAgent({ scopes: ['mail:read'] })
  expect((await reader.get('/v0/suppressions')).status).toBe(200)
  expect((await reader.delete('/v0/suppressions/a@b.cc')).body.message).toBe(
    'Missing required scope: mail:manage',
  )
})

test('a letter that a human postmaster wrote does not count as a bounce, whereas a qmail report without a status code does', async () => {
  const agent = await service.newAgent()
  const to = ['postmaster@firm.test', 'ada@firm.test', 'one@firm.test']
  const letters = [
    'The error was ours; please write to bob@firm.test from now on.',
    'Your mail failed with 550 5.7.1; please write to bob@firm.test from now on.',
    'We found the error.\n\nOn Monday you wrote:\n> To: RECIPIENT\n> 550 5.1.1 rejected',
  ]
  for (const [n, letter] of letters.entries()) {
    const recipient = to[n]!
    const { messageId } = await sent(agent, [recipient])
    await returnTo(
      agent,
      `From: Postmaster <postmaster@firm.test>\nSubject: Re: Offer\nIn-Reply-To: ${messageId}\nMessage-ID: <by-hand-${n}@firm.test>\n\nHello,\n\n${letter.replace('RECIPIENT', recipient)}\n`,
    )
    const { deliveryStatus, labels } = (await agent.get(messagePath(messageId))).body
    expect([letter, deliveryStatus, labels]).toEqual([letter, 'sent', ['sent']])
  }
  const codeless = await sent(agent, ['ada@firm.test'])
  const raw = qmailBounce({ ...codeless, recipient: 'ada@firm.test', to: agent.address })
  await returnTo(agent, raw.replace(/^Remote host said.*\n/gm, ''))
  expect((await agent.get(messagePath(codeless.messageId))).body.deliveryStatus).toBe('bounced')
})

test('each copy of a sent message has a different envelope sender, in the domain of the inbox', async () => {
  const agent = await service.newAgent()
  const { returnPaths } = await sent(agent, ['one@example.com', 'two@example.com'])
  expect(new Set(returnPaths).size).toBe(2)
  const [name, domain] = agent.address.split('@')
  for (const path of returnPaths) {
    expect(path).toMatch(new RegExp(`^${name}\\+b[a-z2-7]{24}@${domain}$`))
  }
})

test('a bounce that one recipient of a message has forged does not suppress another recipient', async () => {
  const agent = await service.newAgent()
  const to = agent.address
  const { messageId, returnPaths } = await sent(agent, ['mallory@example.com', 'bob@example.com'])
  // The attacker Mallory knows the Message-ID, the inbox, and the envelope sender of her own copy.
  const [own] = returnPaths
  const forged = (recipient: string) => standardBounce({ messageId, recipient, to })
  const guess = own!.replace(/.(?=@)/, (last: string) => (last === 'a' ? 'b' : 'a'))
  for (const address of [to, own, guess]) {
    await returnTo(agent, forged('bob@example.com'), address)
  }
  expect(await suppressed(agent)).toEqual([])
  expect((await sendMail(agent, { to: ['bob@example.com'] })).refused).toBeUndefined()
  const { deliveryError } = (await agent.get(messagePath(messageId))).body
  expect(deliveryError).toStartWith('bob@example.com: unproven report: ')
  await returnTo(agent, forged('mallory@example.com'), own)
  expect(await suppressed(agent)).toEqual(['mallory@example.com'])
})

test('after a bounce without proof of its origin, a proven bounce of the same message suppresses the recipient but sends no second event', async () => {
  const agent = await service.newAgent()
  const recipient = 'ada@example.com'
  const { messageId, returnPaths } = await sent(agent, [recipient])
  const raw = () => standardBounce({ messageId, recipient, to: agent.address })
  await returnTo(agent, raw())
  expect(await suppressed(agent)).toEqual([])
  // Some mail hosts change the letter case of the address to which they send a bounce, so the service must accept the
  // address in upper case.
  await returnTo(agent, raw(), returnPaths[0]!.toUpperCase())
  expect(await suppressed(agent)).toEqual([recipient])
  expect((await agent.get(messagePath(messageId))).body.deliveryError).not.toContain('unproven')
  const { rows } = await service.database.pool.query(
    `select from events where project_id = $1 and type = 'message.bounced'`,
    [agent.project.id],
  )
  expect(rows).toHaveLength(1)
})

test('the bounce address of another inbox does not prove a bounce, and an automatic reply to a bounce address is stored as mail', async () => {
  const [agent, other] = [await service.newAgent(), await service.newAgent()]
  const { messageId, returnPaths } = await sent(agent, ['ada@example.com'])
  const theirs = await sent(other, ['ada@example.com'])
  const moved = returnPaths[0]!.replace(agent.address.split('@')[0]!, other.address.split('@')[0]!)
  const { messageId: otherId } = theirs
  await returnTo(
    other,
    standardBounce({ messageId: otherId, recipient: 'ada@example.com', to: other.address }),
    moved,
  )
  expect([await suppressed(agent), await suppressed(other)]).toEqual([[], []])
  await returnTo(
    agent,
    `From: ada@example.com\nSubject: Away\nAuto-Submitted: auto-replied\nIn-Reply-To: ${messageId}\nMessage-ID: <away@example.com>\n\nBack on Monday.\n`,
    returnPaths[0],
  )
  const away = (await agent.get(messagePath('<away@example.com>'))).body
  expect(away.labels).toContain('auto-reply')
  expect((await agent.get(messagePath(messageId))).body.deliveryStatus).toBe('sent')
})
