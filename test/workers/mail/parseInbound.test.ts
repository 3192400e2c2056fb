import { expect, test } from 'bun:test'
import type { Running } from '../../../shared/process/service.ts'
import { createDns } from '../../../workers/mail/dns.ts'
import { parseInProcess } from '../../../workers/mail/parserProcess.ts'
import { startPool } from '../../../workers/queue/pool.ts'
import { inboundRunner } from '../../../workers/runners.ts'
import { fakeLookUp } from '../../support/fakeLookUp.ts'
import {
  type Agent,
  silentLog,
  startTestService,
  type TestService,
  waitForMessages,
} from '../../support/service.ts'
import { deliverRaw } from '../../support/smtpTalk.ts'
import { waitFor } from '../../support/waitFor.ts'

/** Delivers a message whose job has been tried seven times, and starts a worker. */
async function retried(service: TestService, agent: Agent, raw: string): Promise<Running> {
  await deliverRaw(service.smtp!.port, agent.address, raw)
  const { pool, url } = service.database
  await waitFor('the inbound mail', async () => {
    const { rowCount } = await pool.query('update graphile_worker._private_jobs set attempts = 7')
    return rowCount === 1
  })
  const mailDomain = 'mail.test'
  const options = { mailDomain, mailHostname: mailDomain, dns: createDns(), lookUp: fakeLookUp() }
  return startPool({ ...inboundRunner(options), databaseUrl: url }, silentLog)
}

test('a message whose job ended badly several times, through no fault of its own, is still read', async () => {
  await using service = await startTestService({ workers: false })
  const agent = await service.newAgent()
  const worker = await retried(
    service,
    agent,
    'From: ada@example.com\nSubject: Innocent\nMessage-ID: <i@x.test>\nReferences: <r@x.test>\n\nHello.\n',
  )
  try {
    const [item] = await waitForMessages(agent, 1)
    expect(item).toMatchObject({
      messageId: '<i@x.test>',
      subject: 'Innocent',
      from: ['ada@example.com'],
      extractedText: 'Hello.',
      labels: ['received', 'unread'],
    })
  } finally {
    await worker.stop()
  }
})

test('what was read of a message and cannot be stored does not lose the message', async () => {
  await using service = await startTestService({ workers: false })
  const agent = await service.newAgent()
  // Stands for whatever nobody has thought of.
  await service.database.pool.query(
    'alter table messages add constraint no_html check (html_body is null)',
  )
  const worker = await retried(
    service,
    agent,
    'From: ada@example.com\nSubject: Odd\nMessage-ID: <o@x.test>\nContent-Type: text/html\n\n<p>Hello.</p>\n',
  )
  try {
    const [item] = await waitForMessages(agent, 1)
    expect(item).toMatchObject({ messageId: '<o@x.test>', subject: 'Odd' })
    expect(item.labels).toContain('unparseable')
    expect(item.text).toContain('<p>Hello.</p>')
  } finally {
    await worker.stop()
  }
})

test('a message of megabytes is read like any other', async () => {
  await using service = await startTestService()
  const agent = await service.newAgent()
  const lines = 'Lorem ipsum dolor sit amet.\r\n'.repeat(40_000)
  const port = service.smtp!.port
  await Promise.all([
    deliverRaw(port, agent.address, `Subject: large\r\n\r\n${lines}`),
    deliverRaw(port, agent.address, `Subject: larger\r\n\r\n${lines.repeat(2)}`),
    deliverRaw(port, agent.address, 'Subject: small\r\n\r\nLorem\r\n'),
  ])
  const items = await waitForMessages(agent, 3)
  const sizes = new Map(items.map(({ subject, text }: any) => [subject, text.trim().length + 1]))
  expect(Object.fromEntries(sizes)).toEqual({
    large: 40_000 * 28,
    larger: 80_000 * 28,
    small: 6,
  })
})

test('apart, a message that no parser can read is an error, not the end of the worker', async () => {
  const parts = Array.from(
    { length: 150 },
    (_, n) => `Content-Type: multipart/mixed; boundary="b${n}"\n\n--b${n}\n`,
  )
  await expect(parseInProcess(Buffer.from(parts.join('')), 'mail.test')).rejects.toThrow(
    /ended with/,
  )
})
