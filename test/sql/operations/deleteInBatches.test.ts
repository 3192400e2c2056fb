/** Tests that the housekeeping deletes a backlog of any length, and does not wait for a locked row. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createPool, transaction } from '../../../sql/db.ts'
import { deleteStaleEvents } from '../../../sql/events/events.ts'
import { forgetDeletedMessages } from '../../../sql/mail/messages/deleteMail.ts'
import { deleteStaleChecks } from '../../../sql/till/payments/paymentChecks.ts'
import { deleteExpiredUses } from '../../../sql/vault/uses.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { newProject } from '../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const ROWS = 4_500

test.each([
  [
    'events',
    deleteStaleEvents,
    `insert into events (project_id, seq, type, data, created_at)
     select $1, -n, 'message.received', '{}', clock_timestamp() - $2::interval`,
    '8 days',
  ],
  [
    'deleted_messages',
    forgetDeletedMessages,
    `insert into deleted_messages (project_id, content_hash, deleted_at)
     select $1, decode(md5(n::text), 'hex'), clock_timestamp() - $2::interval`,
    '8 days',
  ],
  [
    'payment_checks',
    deleteStaleChecks,
    `insert into payment_checks (id, project_id, claim, claims, created_at)
     select 'chk_' || $2 || n, $1, '{}', false, clock_timestamp() - $2::interval`,
    '2 hours',
  ],
  [
    'vault_uses',
    deleteExpiredUses,
    `insert into vault_uses (id, project_id, credential_name, method, host, path, audit_row, expires_at)
     select 'use_' || $2 || n, $1, 'key', 'GET', 'a.example', '/', 1, clock_timestamp() - $2::interval`,
    '1 minute',
  ],
])(
  'the housekeeping deletes each old row of %s but a locked one, and keeps new rows',
  async (table, clean, insert, age) => {
    const projectId = await newProject(pool)
    const add = (count: number, old: string) =>
      pool.query(`${insert} from generate_series(1, ${count}) n`, [projectId, old])
    const left = async () =>
      (await pool.query(`select from ${table} where project_id = $1`, [projectId])).rowCount
    await add(ROWS, age)
    const hasty = createPool({
      url: database.url,
      size: 1,
      name: 'test',
      statementTimeoutMs: 5_000,
    })
    try {
      await transaction(pool, async (db) => {
        await db.query(`select from ${table} where project_id = $1 limit 1 for update`, [projectId])
        await clean(hasty)
        expect(await left()).toBe(1)
      })
    } finally {
      await hasty.end()
    }
    await clean(pool)
    expect(await left()).toBe(0)
    await add(3, '-1 hours')
    await clean(pool)
    expect(await left()).toBe(3)
  },
)
