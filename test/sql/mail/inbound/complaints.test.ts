/**
 * Tests that a complaint is accepted only for a copy whose envelope sender this service made, and counts only once.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  type BounceKeys,
  bounceAddress,
  bounceKeys,
} from '../../../../shared/mail/compose/bounceAddress.ts'
import { masterKey } from '../../../../shared/vault/envelope.ts'
import { findComplainedCopy, recordComplaint } from '../../../../sql/mail/inbound/complaints.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { addressOf, eventsOf, newSent, type SentRow } from '../../../support/mail/mailRows.ts'
import { whileHeld } from '../../../support/till/tillRows.ts'

const [KEYS, FOREIGN] = [1, 2].map((fill) =>
  bounceKeys([masterKey('a', Buffer.alloc(32, fill))]),
) as [BounceKeys, BounceKeys]
const ADA = 'ada@example.com'

let database: TestDatabase
let pool: TestDatabase['pool']
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const pathOf = async ({ projectId, messageId }: SentRow, keys = KEYS) =>
  bounceAddress(keys, await addressOf(pool, projectId), { projectId, messageId, recipient: ADA })
const find = (...paths: string[]) => findComplainedCopy(pool, KEYS, paths)
const record = ({ row }: SentRow, address = ADA) =>
  recordComplaint(pool, { messageRow: row, address, detail: 'spam' })

test('if a complaint contains several envelope senders, the first one that this service made identifies the sent copy', async () => {
  const [sent, other] = [await newSent(pool), await newSent(pool)]
  const [path, later] = [await pathOf(sent), await pathOf(other)]
  const strange = [
    'ada@example.com',
    path.replace(/@.*/, '@foreign.example'),
    await pathOf(sent, FOREIGN),
  ]
  const copy = { messageRow: sent.row, address: ADA }
  expect(await find(path)).toEqual(copy)
  expect(await find(...strange, path.toUpperCase(), later)).toEqual(copy)
  expect([await find(...strange), await find()]).toEqual([null, null])
  await pool.query('update projects set deleted_at = now() where id = $1', [sent.projectId])
  expect(await find(path)).toBeNull()
})

test('a complaint counts only once, and only for a recipient of an existing message', async () => {
  const sent = await newSent(pool)
  expect([await record(sent, 'eve@example.com'), await record({ ...sent, row: '999999' })]).toEqual(
    [false, false],
  )
  expect([await record(sent), await record(sent)]).toEqual([true, false])
  expect(await eventsOf(pool, sent.projectId)).toEqual(['message.complained'])
})

test('a complaint waits while another transaction changes the recipients of its message', async () => {
  const sent = await newSent(pool)
  const hold = 'select from outbound_mails where message_row = $1 for update'
  expect(await whileHeld(pool, hold, [sent.row], () => [record(sent)])).toEqual([true])
})
