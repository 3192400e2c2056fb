/** Tests the totals of a project's income. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { readActivity } from '../../../../sql/till/payments/activity.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { refundedAt, settledAt, spentAt } from '../../../support/till/bookRows.ts'
import { newPayment, newProject } from '../../../support/till/tillRows.ts'

const FROM = new Date('2026-01-05T00:00:00.000Z')

let database: TestDatabase
let pool: TestDatabase['pool']
let projectId: string

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
beforeEach(async () => {
  projectId = await newProject(pool)
})
afterAll(() => database[Symbol.asyncDispose]())

test('the activity report of a project counts the payments and refunds since a given time', async () => {
  for (const time of [new Date(FROM.getTime() - 1), FROM]) {
    const payment = await settledAt(pool, projectId, time)
    await refundedAt(pool, { paymentId: payment, time })
    await spentAt(pool, { projectId, kind: 'refund', time })
    await spentAt(pool, { projectId, kind: 'payment', time })
  }
  await newPayment(pool, { projectId })
  const { total, days, own, refunded } = await readActivity(pool, { projectId, since: FROM })
  expect(total).toMatchObject({ count: 1, amountAtomic: 10_000n })
  expect(days).toEqual([{ day: '2026-01-05', count: 1, amountAtomic: 10_000n }])
  expect(own).toMatchObject({ count: 0, amountAtomic: 0n })
  expect(refunded).toMatchObject({ count: 2, amountAtomic: 4_300n })
})

test('the activity report of a project lists the hundred payers who paid most', async () => {
  const payerOf = (n: number) => `0x${n.toString(16).padStart(40, '0')}` as const
  await pool.query(
    `insert into payments (id, project_id, resource_url, network, chain_id, asset, payer, recipient, amount_atomic,
       valid_after, valid_before, authorization_nonce, signature, state, settled_at, tx_hash, signed_receipt)
     select $1 || '_' || n, $1, 'x', 'base-sepolia', 84532, '0x1', '0x' || lpad(to_hex(n), 40, '0'), '0x2', 1000 + n,
       0, 1, $1 || n, '0x', 'settled', $2, '0x', '{}'
     from generate_series(1, 101) n`,
    [projectId, FROM],
  )
  const { payers, total } = await readActivity(pool, { projectId, since: FROM })
  expect([payers.length, total.count]).toEqual([100, 101])
  expect([payers[0]?.payerAddress, payers[99]?.payerAddress]).toEqual([payerOf(101), payerOf(2)])
})
