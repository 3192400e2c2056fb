import { afterAll, beforeAll, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { testWhole } from '../../support/database/extent.ts'
import { deliverRaw, talkSmtp } from '../../support/mail/smtpTalk.ts'
import { startTestService, type TestService, waitForMessages } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/long.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ env: { SMTP_MAX_CONNECTIONS_PER_IP: '3' } })
})
afterAll(() => service[Symbol.asyncDispose]())

/** Returns the first line that the listener sends on a new connection. */
function greeting(): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(service.smtp!.port, '127.0.0.1')
    socket.setEncoding('latin1').once('data', (text: string) => {
      socket.destroy()
      resolve(text.trim())
    })
    socket.on('error', reject)
  })
}

test('the number of SMTP connections of an IP address is limited, and after a connection closes, the address may open a new one', async () => {
  const agent = await service.newAgent()
  for (let round = 0; round < 3; round++) {
    const talks = [
      await talkSmtp(service.smtp!.port),
      await talkSmtp(service.smtp!.port),
      await talkSmtp(service.smtp!.port),
    ]
    for (let n = 0; n < 5; n++)
      expect(await greeting()).toStartWith('421 4.7.0 Too many connections')
    // The listener still serves the SMTP connections that are already open.
    expect(await talks[0]!.say('NOOP')).toStartWith('250')
    await Promise.all(talks.map((talk) => talk[Symbol.asyncDispose]()))
    await waitFor('room', async () => (await greeting()).startsWith('220'))
  }
  await waitFor('room', async () =>
    (await deliverRaw(service.smtp!.port, agent.address, 'Subject: x\n\nx\n')).startsWith('250'),
  )
  await waitForMessages(agent, 1)
})

test('incomplete mails of one IP address leave enough space for the mails of other IP addresses', async () => {
  await using own = await startTestService({ workers: false })
  const agent = await own.newAgent()
  const { port } = own.smtp!
  const greedy = '127.0.0.2'
  const talks = await Promise.all(Array.from({ length: 8 }, () => talkSmtp(port, greedy)))
  const bytes = Buffer.alloc(34 * 1024 * 1024, `${'x'.repeat(98)}\r\n`)
  for (const talk of talks) {
    await talk.say('MAIL FROM:<a@example.com>')
    await talk.say(`RCPT TO:<${agent.address}>`)
    await talk.say('DATA')
    talk.write(bytes)
  }
  const deliver = (localAddress: string, bytes: number) =>
    deliverRaw(port, agent.address, `Subject: x\n\n${'x\n'.repeat(bytes / 2)}`, { localAddress })
  await waitFor('its share to be used up', async () =>
    (await deliver(greedy, 100_000)).startsWith('452 4.3.1'),
  )
  expect(await deliver(greedy, 10_000)).toStartWith('250')
  expect(await deliver('127.0.0.1', 1_000_000)).toStartWith('250')
  await Promise.all(talks.map((talk) => talk[Symbol.asyncDispose]()))
  await waitFor('its share to be free', async () =>
    (await deliver(greedy, 100_000)).startsWith('250'),
  )
})

testWhole(
  'if four IP addresses send unfinished messages of the maximum size, a fifth address can still send a message',
  async () => {
    await using own = await startTestService({ workers: false })
    const agent = await own.newAgent()
    const { port } = own.smtp!
    const bytes = Buffer.alloc(34 * 1024 * 1024, `${'x'.repeat(98)}\r\n`)
    const talks = []
    for (let n = 0; n < 32; n++) {
      const talk = await talkSmtp(port, `127.0.1.${1 + (n % 4)}`)
      talks.push(talk)
      await talk.say('MAIL FROM:<a@example.com>')
      await talk.say(`RCPT TO:<${agent.address}>`)
      await talk.say('DATA')
      talk.write(bytes)
    }
    const mail = `Subject: x\n\n${`${'x'.repeat(98)}\n`.repeat(100_000)}`
    expect(await deliverRaw(port, agent.address, mail)).toStartWith('250')
    await Promise.all(talks.map((talk) => talk[Symbol.asyncDispose]()))
  },
)

test('if four IP addresses use all connections of the SMTP listener, it closes idle connections so that a new client can send mail', async () => {
  await using own = await startTestService({
    workers: false,
    env: { SMTP_MAX_CONNECTIONS: '20', SMTP_MAX_CONNECTIONS_PER_IP: '10' },
  })
  const agent = await own.newAgent()
  const { port } = own.smtp!
  const idle = []
  for (let n = 0; n < 20; n++) idle.push(await talkSmtp(port, `127.0.2.${1 + (n % 4)}`))
  for (let n = 0; n < 5; n++) {
    expect(await deliverRaw(port, agent.address, 'Subject: x\n\nx\n')).toStartWith('250')
  }
  await Promise.all(idle.map((talk) => talk[Symbol.asyncDispose]()))
})

test('an SMTP client cannot guess inbox addresses by opening many connections', async () => {
  await using own = await startTestService({ workers: false })
  const agent = await own.newAgent()
  const { port } = own.smtp!
  const replies: string[] = []
  const guesser = '127.0.3.1'
  for (let n = 0; n < 13; n++) {
    await using talk = await talkSmtp(port, guesser)
    await talk.say('MAIL FROM:<a@example.com>')
    for (let guess = 0; guess < 16; guess++) {
      replies.push(await talk.say(`RCPT TO:<guess-${n}-${guess}@mail.test>`))
    }
  }
  expect(replies.filter((reply) => reply.startsWith('550'))).toHaveLength(100)
  expect(replies.at(-1)).toStartWith('450 4.7.0')
  await using talk = await talkSmtp(port, guesser)
  await talk.say('MAIL FROM:<a@example.com>')
  expect(await talk.say(`RCPT TO:<${agent.address}>`)).toStartWith('450 4.7.0')
  expect(await deliverRaw(port, agent.address, 'Subject: x\n\nx\n')).toStartWith('250')
})

test('the number of mails per minute is limited for each IP address and for each inbox', async () => {
  await using own = await startTestService({
    workers: false,
    env: { SMTP_MESSAGES_PER_IP: '3', SMTP_MESSAGES_PER_INBOX: '5' },
  })
  const [agent, other] = [await own.newAgent(), await own.newAgent()]
  const { port } = own.smtp!
  const mailFrom = async (localAddress: string) => {
    await using talk = await talkSmtp(port, localAddress)
    return await talk.say('MAIL FROM:<a@example.com>')
  }
  const deliver = (localAddress: string, to = agent.address) =>
    deliverRaw(port, to, 'Subject: x\n\nx\n', { localAddress })
  for (let n = 0; n < 3; n++) expect(await deliver('127.0.4.1')).toStartWith('250')
  expect(await mailFrom('127.0.4.1')).toStartWith('450 4.7.0')
  for (let n = 0; n < 2; n++) expect(await deliver('127.0.4.2')).toStartWith('250')
  expect(await deliver('127.0.4.3')).toStartWith('250')
  await using talk = await talkSmtp(port, '127.0.4.2')
  await talk.say('MAIL FROM:<a@example.com>')
  expect(await talk.say(`RCPT TO:<${agent.address}>`)).toStartWith('450 4.2.1')
  expect(await talk.say(`RCPT TO:<${other.address}>`)).toStartWith('250')
})

test('an SMTP client that guesses inbox addresses is disconnected', async () => {
  const agent = await service.newAgent()
  await using talk = await talkSmtp(service.smtp!.port)
  await talk.say('MAIL FROM:<a@example.com>')
  for (let n = 0; n < 20; n++)
    expect(await talk.say(`RCPT TO:<guess${n}@mail.test>`)).toStartWith('550 5.1.1')
  expect(await talk.say(`RCPT TO:<${agent.address}>`)).toStartWith('421')
})

test('endless or invalid SMTP commands end only their own connection, and the listener still serves other clients', async () => {
  const agent = await service.newAgent()
  {
    await using talk = await talkSmtp(service.smtp!.port)
    talk.write('A'.repeat(1024 * 1024))
    await talk.closed
  }
  {
    await using talk = await talkSmtp(service.smtp!.port)
    talk.write('NONSENSE\r\n'.repeat(50))
    await talk.closed
  }
  await waitFor('room', async () => (await greeting()).startsWith('220'))
  expect(
    await deliverRaw(
      service.smtp!.port,
      agent.address,
      `Subject: long\n\n${'x'.repeat(1_000_000)}\n`,
    ),
  ).toStartWith('250')
  const [message] = await waitForMessages(agent, 1)
  expect(message.text.trim()).toHaveLength(1_000_000)
})
