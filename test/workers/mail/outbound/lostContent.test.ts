/** Tests that mail whose content the object store has lost is tried again, and finally counts as failed. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { LostObjectError } from '../../../../sql/blobs/sealedBlob.ts'
import { createSendMail } from '../../../../workers/mail/outbound/sendMail.ts'
import { noBlobs } from '../../../support/database/blobs.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { silentLog } from '../../../support/logs.ts'
import { newSent } from '../../../support/mail/mailRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

/** Creates the task with an object store that has lost every object, and with a transport that sends nothing. */
function sendTask() {
  const lost = {
    ...noBlobs,
    read: () => Promise.reject(new LostObjectError('the object is missing')),
  }
  const granted = { granted: true, leave: () => {} }
  return createSendMail(
    {
      ...{ pool, log: silentLog },
      lanes: { enter: async () => granted },
      outcomes: { record: (work: () => Promise<unknown>) => work() },
    } as never,
    {
      ...{ mailDomain: 'mail.test', bounceKeys: [], keyring: (() => {}) as never },
      blobs: { ...lost, of: () => lost } as never,
      transport: {
        route: 'relay',
        split: (to: string[]) => (to.length === 0 ? [] : [{ lane: 'relay', to }]),
        send: () => Promise.reject(new Error('nothing can be sent')),
      } as never,
    },
  )
}

test('mail whose content is lost is deferred, and fails when the time for sending attempts is over', async () => {
  const sent = await newSent(pool, { to: ['ada@example.com', 'bob@example.org'] })
  await pool.query(
    `with raw as (insert into raw_mails (source_key, bytes) values (gen_random_uuid(), '') returning id)
     update messages set raw_id = raw.id from raw where row = $1`,
    [sent.row],
  )
  const send = sendTask()
  await send({ messageRow: sent.row }, { attempt: 1 })
  const states = async () =>
    (
      await pool.query(
        'select state, error from outbound_recipients where message_row = $1 order by address',
        [sent.row],
      )
    ).rows.map(({ state, error }) => [state, error])
  const lost = 'the object store has lost the content of this message'
  expect(await states()).toEqual([
    ['deferred', lost],
    ['deferred', lost],
  ])
  const { rowCount } = await pool.query('select from graphile_worker.jobs where key = $1', [
    `send_mail:${sent.row}`,
  ])
  expect(rowCount).toBe(1)
  for (const table of ['outbound_mails', 'outbound_recipients']) {
    await pool.query(
      `update ${table} set next_attempt_at = clock_timestamp() where message_row = $1`,
      [sent.row],
    )
  }
  await pool.query(
    `update outbound_mails set accepted_at = accepted_at - interval '30 days' where message_row = $1`,
    [sent.row],
  )
  await send({ messageRow: sent.row }, { attempt: 1 })
  expect(await states()).toEqual([
    ['failed', expect.stringContaining(lost)],
    ['failed', expect.stringContaining(lost)],
  ])
})
