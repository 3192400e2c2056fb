import { expect, test } from 'bun:test'
import { sendMail, untilStatus } from '../../../support/mail/outbound.ts'
import { startSink } from '../../../support/mail/sink.ts'
import { startProcess } from '../../../support/process/process.ts'
import { startTcpProxy } from '../../../support/process/tcpProxy.ts'
import { startTestService } from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/whole.ts'

test('if a worker dies after the SMTP reply 250 and before the database commit, the same bytes are sent once more', async () => {
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
  // The relay has replied 250 to the mail. The worker tries to record this in PostgreSQL, which no longer responds, so
  // the outcome is lost.
  proxy.muteOn = 'update outbound_recipients r set'
  const behindProxy = service.database.url.replace(`:${direct.port}/`, `:${proxy.port}/`)
  await using doomed = startProcess('workers/main.ts', env(behindProxy), ['--pool', 'mail'])
  const { messageId } = await sendMail(agent, {
    to: ['ada@example.com', 'bob@example.com'],
    attachments: [{ filename: 'a', contentType: 'a/b', content: 'AAAA' }],
  })
  await waitFor('the outcome to be on its way', () => proxy.muted > 0)
  await waitFor('both copies', () => sink.mails.length === 2)
  doomed.child.kill('SIGKILL')
  expect(await doomed.exited).toBe('SIGKILL')
  // The proxy closes the connection of the killed worker, so that the open transaction of this worker ends.
  await proxy.cut()
  expect(
    (await agent.get(`/v0/messages/${encodeURIComponent(messageId)}`)).body.deliveryStatus,
  ).toBe('queued')

  await using heir = startProcess('workers/main.ts', env(service.database.url), ['--pool', 'mail'])
  await untilStatus(agent, messageId, 'sent')
  const copies = sink.mails.map(({ email, raw, from, to }) => [email.messageId, raw, from, to[0]])
  const [first, second] = copies
    .toSorted((a, b) => a[3]!.localeCompare(b[3]!))
    .filter((_, n) => n % 2 === 0)
  expect([first![0], second![0], second![1]]).toEqual([messageId, messageId, first![1]])
  expect(copies.slice(2).toSorted()).toEqual(copies.slice(0, 2).toSorted())
  // After the second copy, no job is left that could send the message a third time.
  await waitFor('the job to be done', async () => {
    const { rows } = await service.database.pool.query(
      'select count(*)::int as n from graphile_worker.jobs',
    )
    return rows[0].n === 0
  })
  heir.child.kill('SIGTERM')
  expect(await heir.exited).toBe(0)
  expect(sink.mails).toHaveLength(4)
})
