/** Tests that the workers remove old rows after the number of days that the service or the project has set. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startMaintenance } from '../../../workers/operations/maintenance.ts'
import { silentLog } from '../../support/logs.ts'
import { rawMail, receive } from '../../support/mail/mailRows.ts'
import { messagePath, startTestService, type TestService } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({
    smtp: false,
    workers: false,
    env: { RETENTION_MAIL_DAYS: '30', RETENTION_DELIVERIES_DAYS: '' },
  })
})
afterAll(() => service[Symbol.asyncDispose]())

test('mail is deleted after the retention days of its project, or of the service if the project sets no retention', async () => {
  const { config, database, platform } = service
  const [usual, longer] = [await service.newAgent(), await service.newAgent()]
  const pathOf = ({ project }: typeof usual) => `/v0/platform/projects/${project.id}`
  await platform.patch(pathOf(longer), { retention: { mail: 365 } })
  const [gone, kept] = [
    await receive(database.pool, usual.project.id, rawMail({ text: 'cinnamon' })),
    await receive(database.pool, longer.project.id, rawMail({ text: 'cinnamon' })),
  ]
  await database.pool.query(`update messages set created_at = created_at - interval '31 days'`)
  const maintenance = startMaintenance(database.url, config.retention, silentLog)
  try {
    await waitFor(
      'the old mail to go',
      async () => (await usual.get(messagePath(gone.messageId))).status === 404,
    )
    expect((await usual.get('/v0/messages?q=cinnamon')).body.count).toBe(0)
    expect((await usual.get('/v0/threads')).body.count).toBe(0)
    const seen = (await platform.get(pathOf(usual))).body
    expect([seen.usage.storageBytes, seen.retention.mail]).toEqual([0, 30])
    expect((await longer.get('/v0/messages?q=cinnamon')).body.count).toBe(1)
    expect((await longer.get(messagePath(kept.messageId))).status).toBe(200)
  } finally {
    await maintenance.stop()
  }
})
