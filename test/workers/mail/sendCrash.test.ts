import { expect, test } from 'bun:test'
import { sendMail, untilStatus } from '../../support/outbound.ts'
import { startProcess } from '../../support/process.ts'
import { startTestService } from '../../support/service.ts'
import { startSink } from '../../support/sink.ts'
import { startTcpProxy } from '../../support/tcpProxy.ts'
import { waitFor } from '../../support/waitFor.ts'

test('a message whose worker died between the 250 and our commit is sent once more, with the same bytes', async () => {
  await using sink = await startSink()
  await using service = await startTestService({ smtp: false, workers: false })
  const direct = new URL(service.database.url)
  await using proxy = await startTcpProxy(Number(direct.port))
  const agent = await service.newAgent()
  const env = (databaseUrl: string) => ({
    DATABASE_URL: databaseUrl,
    SMTP_RELAY_URL: sink.url,
    MAIL_DOMAIN: 'mail.test',
    DATA_DIR: service.config.dataDir,
    LOG_LEVEL: 'silent',
  })
  // The relay has replied 250. The outcome is sent to Postgres, which no longer answers.
  proxy.muteOn = 'update outbound_recipients r set'
  const behindProxy = service.database.url.replace(`:${direct.port}/`, `:${proxy.port}/`)
  await using doomed = startProcess('workers/main.ts', env(behindProxy), ['--pool', 'mail'])
  const { messageId } = await sendMail(agent, {
    to: ['ada@example.com', 'bob@example.com'],
    attachments: [{ filename: 'a', contentType: 'a/b', content: 'AAAA' }],
  })
  await waitFor('the outcome to be on its way', () => proxy.muted > 0)
  expect(sink.mails).toHaveLength(1)
  doomed.child.kill('SIGKILL')
  expect(await doomed.exited).toBe('SIGKILL')
  // Its connection and its open transaction are gone.
  await proxy.cut()
  expect(
    (await agent.get(`/v0/messages/${encodeURIComponent(messageId)}`)).body.deliveryStatus,
  ).toBe('queued')

  await using heir = startProcess('workers/main.ts', env(service.database.url), ['--pool', 'mail'])
  await untilStatus(agent, messageId, 'sent')
  expect(sink.mails.map(({ email }) => email.messageId)).toEqual([messageId, messageId])
  const [first, second] = sink.mails
  expect(second!.raw).toBe(first!.raw)
  expect(second!.to.toSorted()).toEqual(['ada@example.com', 'bob@example.com'])
  // No job is left that could send it a third time.
  await waitFor('the job to be done', async () => {
    const { rows } = await service.database.pool.query(
      'select count(*)::int as n from graphile_worker.jobs',
    )
    return rows[0].n === 0
  })
  heir.child.kill('SIGTERM')
  expect(await heir.exited).toBe(0)
  expect(sink.mails).toHaveLength(2)
})
