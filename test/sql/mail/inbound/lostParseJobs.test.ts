/** Tests that an accepted mail reaches its inbox even if the job that parses the mail is lost. */
import { expect, test } from 'bun:test'
import { insertInboundMails } from '../../../../sql/mail/inbound/inboundMails.ts'
import { requeueLostArrivals } from '../../../../sql/mail/inbound/lostParseJobs.ts'
import { startMaintenance } from '../../../../workers/operations/maintenance.ts'
import { startPool } from '../../../../workers/queue/pool.ts'
import { inboundRunner } from '../../../../workers/runners/inbound.ts'
import { createTestDatabase } from '../../../support/database/database.ts'
import { silentLog } from '../../../support/logs.ts'
import { trustingLookUp } from '../../../support/mail/fakeLookUp.ts'
import { addressOf, rawMail, spooled } from '../../../support/mail/mailRows.ts'
import { startTestService, type TestService } from '../../../support/service.ts'
import { dropJobs, failJobs, newProject } from '../../../support/till/tillRows.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

const startParser = ({ config, database }: TestService) =>
  startPool(
    {
      ...inboundRunner({
        mailDomain: config.mailDomain,
        mailHostname: config.mailHostname,
        dns: {} as never,
        lookUp: trustingLookUp,
        bounceKeys: [],
        objectStore: null,
      }),
      databaseUrl: database.url,
    },
    silentLog,
  )

for (const [loss, lose] of [
  ['is deleted', dropJobs],
  ['has failed for good', failJobs],
] as const) {
  test(`a mail that was accepted over SMTP reaches its inbox, although the job that parses the mail ${loss}`, async () => {
    await using service = await startTestService({ workers: false })
    const { pool } = service.database
    const agent = await service.newAgent()
    const deliver = (subject: string) =>
      service.deliver({ from: 'ada@example.com', to: agent.address, subject, text: 'Text' })
    const arrivals = async () =>
      (await pool.query<{ n: number }>('select count(*)::int as n from inbound_mails')).rows[0]!.n
    for (const subject of ['one', 'two', 'three']) await deliver(subject)
    await waitFor('the mails in the database', async () => (await arrivals()) === 3)
    await lose(pool)
    await pool.query(`update inbound_mails set received_at = now() - interval '11 minutes'`)
    await deliver('four')
    await waitFor('the last mail in the database', async () => (await arrivals()) === 4)
    const parser = await startParser(service)
    const maintenance = startMaintenance(service.database.url, service.config.retention, silentLog)
    try {
      const subjects = async () =>
        (await agent.get('/v0/messages')).body.messages
          .map(({ subject }: any) => subject)
          .toSorted()
      await waitFor('the new mail', async () => (await subjects()).includes('four'))
      await waitFor('all mails', async () => (await subjects()).length === 4)
      expect(await subjects()).toEqual(['four', 'one', 'three', 'two'])
    } finally {
      await maintenance.stop()
      await parser.stop()
    }
  })
}

test('a mail counts as lost only if no job of its own and no job of a batch waits or runs', async () => {
  await using database = await createTestDatabase()
  const { pool } = database
  const address = await addressOf(pool, await newProject(pool))
  const arrive = (count: number) =>
    insertInboundMails(
      pool,
      Array.from({ length: count }, (_, n) =>
        spooled([address], rawMail({ subject: `${count} ${n}` }), { receivedAt: new Date(0) }),
      ),
    )
  await arrive(3)
  await arrive(1)
  expect(await requeueLostArrivals(pool)).toBe(0)
  await failJobs(pool)
  await pool.query('update graphile_worker._private_jobs set locked_at = now()')
  expect(await requeueLostArrivals(pool)).toBe(0)
  await pool.query('update graphile_worker._private_jobs set locked_at = null')
  expect(await requeueLostArrivals(pool)).toBe(4)
  expect(await requeueLostArrivals(pool)).toBe(0)
})

test('all lost mails get their jobs again, although the service queues a thousand at a time', async () => {
  await using database = await createTestDatabase()
  const { pool } = database
  const address = await addressOf(pool, await newProject(pool))
  const lost = Array.from({ length: 1_001 }, (_, n) =>
    spooled([address], rawMail({ subject: `${n}` }), { receivedAt: new Date(0) }),
  )
  await insertInboundMails(pool, lost)
  await dropJobs(pool)
  expect(await requeueLostArrivals(pool)).toBe(1_001)
})
