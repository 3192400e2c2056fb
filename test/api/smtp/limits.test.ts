import { afterAll, beforeAll, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { startTestService, type TestService, waitForMessages } from '../../support/service.ts'
import { deliverRaw, talkSmtp } from '../../support/smtpTalk.ts'
import { waitFor } from '../../support/waitFor.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ env: { SMTP_MAX_CONNECTIONS_PER_IP: '3' } })
})
afterAll(() => service[Symbol.asyncDispose]())

/** The first line of a new connection. */
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

test('connections per address are limited; closing them frees the limit', async () => {
  const agent = await service.newAgent()
  for (let round = 0; round < 3; round++) {
    const talks = [
      await talkSmtp(service.smtp!.port),
      await talkSmtp(service.smtp!.port),
      await talkSmtp(service.smtp!.port),
    ]
    for (let n = 0; n < 5; n++)
      expect(await greeting()).toStartWith('421 4.7.0 Too many connections')
    // Open connections are still served.
    expect(await talks[0]!.say('NOOP')).toStartWith('250')
    await Promise.all(talks.map((talk) => talk[Symbol.asyncDispose]()))
    await waitFor('room', async () => (await greeting()).startsWith('220'))
  }
  await waitFor('room', async () =>
    (await deliverRaw(service.smtp!.port, agent.address, 'Subject: x\n\nx\n')).startsWith('250'),
  )
  await waitForMessages(agent, 1)
})

test('unfinished messages of one address leave room for other addresses', async () => {
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
  const deliver = (localAddress: string) =>
    deliverRaw(port, agent.address, 'Subject: x\n\nx\n', { localAddress })
  await waitFor('its share to be used up', async () =>
    (await deliver(greedy)).startsWith('452 4.3.1'),
  )
  expect(await deliver('127.0.0.1')).toStartWith('250')
  await Promise.all(talks.map((talk) => talk[Symbol.asyncDispose]()))
  await waitFor('its share to be free', async () => (await deliver(greedy)).startsWith('250'))
})

test('a client that guesses addresses is disconnected', async () => {
  const agent = await service.newAgent()
  await using talk = await talkSmtp(service.smtp!.port)
  await talk.say('MAIL FROM:<a@example.com>')
  for (let n = 0; n < 20; n++)
    expect(await talk.say(`RCPT TO:<guess${n}@mail.test>`)).toStartWith('550 5.1.1')
  expect(await talk.say(`RCPT TO:<${agent.address}>`)).toStartWith('421')
})

test('endless and invalid commands end the connection, not the listener', async () => {
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
