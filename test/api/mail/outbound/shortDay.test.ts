/** Tests the lifetime of an Idempotency-Key on a day that has only 23 hours in the database's time zone. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createPool, type Pool } from '../../../../sql/db.ts'
import { shortenDay } from '../../../support/database/shortDay.ts'
import { expireAll } from '../../../support/retention.ts'
import { startTestService, type TestService } from '../../../support/service.ts'

let service: TestService
/** Holds the connections of a worker, which have the time zone of the database. */
let worker: Pool
beforeAll(async () => {
  service = await startTestService({
    smtp: false,
    workers: false,
    through: { api: (url) => shortenDay(url) },
  })
  worker = createPool({ url: service.database.url, size: 1, name: 'test' })
})
afterAll(async () => {
  await worker.end()
  await service[Symbol.asyncDispose]()
})

const MAIL = { to: ['ada@example.com'], subject: 'Offer', text: 'Shall I order?' }

test('an Idempotency-Key lasts 24 hours on a day with 23 hours, so that a repeated request sends no second mail', async () => {
  const { pool } = service.database
  const agent = await service.newAgent()
  const send = () => agent.post('/v0/messages/send', MAIL, { 'idempotency-key': 'once' })
  const first = await send()
  expect(first.status).toBe(201)
  await pool.query(`update idempotency_keys set created_at = created_at - interval '23.5 hours'`)
  await expireAll(worker)
  const again = await send()
  expect([again.status, again.body]).toEqual([201, first.body])
  await pool.query(`update idempotency_keys set created_at = created_at - interval '40 minutes'`)
  await expireAll(worker)
  expect((await pool.query('select from idempotency_keys')).rowCount).toBe(0)
  const next = await send()
  expect([next.status, next.body.messageId === first.body.messageId]).toEqual([201, false])
})
