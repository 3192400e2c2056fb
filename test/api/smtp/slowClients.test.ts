import { afterAll, beforeAll, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { PATIENCE } from '../../../api/smtp/listener.ts'
import { type SmtpServer, startSmtp } from '../../../api/smtp/server.ts'
import { silentLog } from '../../support/logs.ts'
import { handOver, INBOUND_ENV, signedRequest } from '../../support/mail/signedMail.ts'
import { deliverRaw, talkSmtp } from '../../support/mail/smtpTalk.ts'
import { startTestService, type TestService, waitForMessages } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/long.ts'

/**
 * Sets the milliseconds of silence after which the listener ends a connection. This time is much longer than the test
 * client's pause between two bytes, so the client never counts as silent, even on a busy machine.
 */
const SILENT_MS = 500
const CONNECTION_MS = 2_000
const CLOSE_MS = 500
const TOPIC = 'arn:aws:sns:eu-west-1:123456789012:mail'

const IMPATIENCE = {
  silentMs: SILENT_MS,
  connectionMs: CONNECTION_MS,
  requestMs: CONNECTION_MS,
  closeMs: CLOSE_MS,
}
const startListener = ({ config = service.config, patience = IMPATIENCE } = {}) =>
  startSmtp(config, service.database.url, silentLog, { patience })

let service: TestService
let smtp: SmtpServer
beforeAll(async () => {
  service = await startTestService({
    smtp: false,
    env: { ...INBOUND_ENV, INBOUND_SES_TOPICS: TOPIC },
  })
  smtp = await startListener()
})
afterAll(async () => {
  await smtp.stop()
  await service[Symbol.asyncDispose]()
})

/** Opens an SMTP connection and stops in the middle of a mail. */
async function writing(to: string) {
  const talk = await talkSmtp(smtp.port)
  await talk.say('MAIL FROM:<slow@example.com>')
  expect(await talk.say(`RCPT TO:<${to}>`)).toStartWith('250')
  expect(await talk.say('DATA')).toStartWith('354')
  return talk
}

test('a silent SMTP client is disconnected, both between commands and within a mail', async () => {
  const agent = await service.newAgent()
  const startMs = performance.now()
  await using idle = await talkSmtp(smtp.port)
  await using halfway = await writing(agent.address)
  halfway.write('Subject: half\r\n\r\nHalf of')
  await Promise.all([idle.closed, halfway.closed])
  expect(performance.now() - startMs).toBeGreaterThan(SILENT_MS)
  expect(await deliverRaw(smtp.port, agent.address, 'Subject: whole\n\nWhole.\n')).toStartWith(
    '250',
  )
  expect((await waitForMessages(agent, 1)).map(({ subject }: any) => subject)).toEqual(['whole'])
})

test('an SMTP client that sends single bytes slowly is disconnected, and does not delay other clients', async () => {
  const agent = await service.newAgent()
  const startMs = performance.now()
  await using slow = await writing(agent.address)
  const drip = setInterval(() => slow.write('x'), 20)
  try {
    expect(await deliverRaw(smtp.port, agent.address, 'Subject: quick\n\nQuick.\n')).toStartWith(
      '250',
    )
    await slow.closed
  } finally {
    clearInterval(drip)
  }
  expect(performance.now() - startMs).toBeGreaterThan(CONNECTION_MS - SILENT_MS)
  expect((await waitForMessages(agent, 1)).map(({ subject }: any) => subject)).toEqual(['quick'])
})

/**
 * Sends the head of an HTTP request.
 * @param text is sent repeatedly as the request body, which never ends. If `text` is empty, the client sends nothing.
 */
async function httpClient(port: number, text: string) {
  const socket = connect(port, '127.0.0.1')
  let answer = ''
  socket.setEncoding('latin1').on('data', (part: string) => {
    answer += part
  })
  socket.on('error', () => {})
  socket.write('POST /v0/inbound/ses HTTP/1.1\r\nHost: mail.test\r\nContent-Length: 100000\r\n\r\n')
  const drip = setInterval(() => socket.write(text), 20)
  const closed = new Promise<string>((resolve) => {
    socket.once('close', () => {
      clearInterval(drip)
      resolve(answer)
    })
  })
  await new Promise<void>((resolve) => socket.once('connect', () => resolve()))
  return { closed, [Symbol.dispose]: () => void socket.destroy() }
}

test('an HTTP client that sends single bytes slowly, or nothing, is disconnected', async () => {
  const startMs = performance.now()
  using silent = await httpClient(smtp.httpPort!, '')
  using slow = await httpClient(smtp.httpPort!, 'x')
  expect(await silent.closed).toContain('"message":"4.4.2 The client is silent for too long"')
  expect(performance.now() - startMs).toBeWithin(SILENT_MS - 50, CONNECTION_MS)
  expect(await slow.closed).toStartWith('HTTP/1.1 503 ')
  expect(performance.now() - startMs).toBeGreaterThan(CONNECTION_MS - SILENT_MS)
})

test('the listener can stop without waiting for an HTTP client that sends single bytes slowly', async () => {
  const { smtp: settings } = service.config
  const limits = { ...settings, maxConnectionsPerIp: 1 }
  const own = await startListener({ config: { ...service.config, smtp: limits } })
  using slow = await httpClient(own.httpPort!, 'x')
  await waitFor('the client to take the only place', async () => {
    const { body } = await handOver(own.httpPort!, signedRequest({ to: ['nobody@mail.test'] }))
    return body.message.startsWith('4.7.0 Too many connections')
  })
  const startMs = performance.now()
  await own.stop()
  expect(await slow.closed).toContain('"message":"4.3.2 The service is stopping"')
  expect(performance.now() - startMs).toBeWithin(CLOSE_MS - 50, CONNECTION_MS)
})

test('a mail over HTTP may take longer in total than the time for which a client may be silent', async () => {
  const patience = { ...PATIENCE, silentMs: 1_000 }
  const own = await startListener({ patience })
  const agent = await service.newAgent()
  const mail = `Subject: long\r\n\r\n${'x'.repeat(25)}`
  const { headers } = signedRequest({ to: [agent.address], mail })
  // Bun looks for idle connections only every four seconds, so this mail takes longer than four seconds to arrive.
  const letters = [...mail]
  let drip: Timer | undefined
  const body = new ReadableStream({
    start(stream) {
      drip = setInterval(() => {
        const letter = letters.shift()
        if (letter !== undefined) return stream.enqueue(Buffer.from(letter))
        clearInterval(drip)
        stream.close()
      }, 125)
    },
  })
  const answer = await handOver(own.httpPort!, { method: 'POST', headers, body })
  expect(answer).toMatchObject({ status: 200, body: { accepted: [agent.address] } })
  await own.stop()
  expect((await waitForMessages(agent, 1))[0].subject).toBe('long')
})
