/** Tests that the retention time of a sent mail begins when the service may send the mail. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startMaintenance } from '../../../workers/operations/maintenance.ts'
import { silentLog } from '../../support/logs.ts'
import { rawMail, receive } from '../../support/mail/mailRows.ts'
import { hurry, sendMail, untilStatus } from '../../support/mail/outbound.ts'
import { messagePath, startTestService, type TestService } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/long.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({
    smtp: false,
    pools: ['outbound'],
    env: { RETENTION_MAIL_DAYS: '30' },
  })
})
afterAll(() => service[Symbol.asyncDispose]())

test('a mail that was scheduled 31 days before its time stays for the retention days after its time', async () => {
  const { config, database } = service
  const agent = await service.newAgent()
  const old = await receive(database.pool, agent.project.id, rawMail({ text: 'old' }))
  const sendAt = new Date(Date.now() + 3_600_000).toISOString()
  const { messageId: late } = await sendMail(agent, { sendAt })
  const { messageId: cancelled } = await sendMail(agent, { sendAt })
  expect((await agent.post(`${messagePath(cancelled)}/cancel`)).status).toBe(200)
  await database.pool.query(`update messages set created_at = created_at - interval '31 days'`)
  const isDue = `message_row = (select row from messages where message_id = $1)`
  await database.pool.query(
    `update outbound_mails set accepted_at = clock_timestamp() where ${isDue}`,
    [late],
  )
  await hurry(service, late)
  await untilStatus(agent, late, 'sent')
  const maintenance = startMaintenance(database.url, config.retention, silentLog)
  const statusOf = async (id: string) => (await agent.get(messagePath(id))).status
  try {
    await waitFor('the received mail to go', async () => (await statusOf(old.messageId)) === 404)
    await waitFor('the cancelled mail to go', async () => (await statusOf(cancelled)) === 404)
    expect(await statusOf(late)).toBe(200)
  } finally {
    await maintenance.stop()
  }
  await database.pool.query(
    `update outbound_mails set accepted_at = accepted_at - interval '31 days' where ${isDue}`,
    [late],
  )
  const later = startMaintenance(database.url, config.retention, silentLog)
  try {
    await waitFor('the sent mail to go', async () => (await statusOf(late)) === 404)
  } finally {
    await later.stop()
  }
})
