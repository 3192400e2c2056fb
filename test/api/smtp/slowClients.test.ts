import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type SmtpServer, startSmtp } from '../../../api/smtp/server.ts'
import { deliverRaw, talkSmtp } from '../../support/mail/smtpTalk.ts'
import {
  silentLog,
  startTestService,
  type TestService,
  waitForMessages,
} from '../../support/service.ts'

/**
 * Holds the time of silence, in milliseconds, after which the listener ends a connection. This time is much longer than
 * the pause of the test client between two bytes, so the client does not count as silent even on a busy machine.
 */
const SILENT_MS = 500
const CONNECTION_MS = 2_000

let service: TestService
let smtp: SmtpServer
beforeAll(async () => {
  service = await startTestService({ smtp: false })
  smtp = await startSmtp(service.config, service.database.url, silentLog, {
    patience: { silentMs: SILENT_MS, connectionMs: CONNECTION_MS },
  })
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

test('an SMTP client that sends single bytes slowly is disconnected, and delays no other client', async () => {
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
