/** Tests the webhooks about transfers that a restored database does not know yet, although they are on the chain. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { EventType } from '../../../shared/events/events.ts'
import type { Keyring } from '../../../shared/vault/envelope.ts'
import { recordHandRefund } from '../../../sql/purse/refunds/handRefunds.ts'
import { claimRefund, refundPayment } from '../../../sql/purse/refunds/refunds.ts'
import { recordSpent } from '../../../sql/purse/watch.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { newWebhook } from '../../support/events/eventRows.ts'
import { newKeyring, newPurse } from '../../support/purse/purseRows.ts'
import { newHash, newProject, newSettled } from '../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
let keyring: Keyring
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  keyring = await newKeyring(pool)
})
afterAll(() => database[Symbol.asyncDispose]())

const seen = { logIndex: 1, blockNumber: 7n, blockHash: newHash() }
const ACTOR = { keyPrefix: 'k', requestId: 'r' }

/** Returns the idempotency keys of the deliveries to each of two webhooks, in the order of the deliveries. */
async function keysOf(projectId: string, event: EventType, tell: () => Promise<unknown>) {
  const webhooks = [
    await newWebhook(pool, projectId, [event]),
    await newWebhook(pool, projectId, [event]),
  ]
  await tell()
  const { rows } = await pool.query<{ webhook_id: string; idempotency_key: string }>(
    'select webhook_id, idempotency_key from webhook_deliveries where event = $1 order by row',
    [event],
  )
  return webhooks.map((id) =>
    rows.filter(({ webhook_id }) => webhook_id === id).map((row) => row.idempotency_key),
  )
}

function expectOneKeyEach([one, two]: string[][]): void {
  expect([one!.length, two!.length]).toEqual([2, 2])
  expect([new Set(one).size, new Set(two).size, new Set([...one!, ...two!]).size]).toEqual([
    1, 1, 2,
  ])
}

test('if a restored database lacks a payment of the purse, the webhook about it comes again with the same idempotency key', async () => {
  const { projectId, wanted, reserve } = await newPurse(pool, keyring)
  const purchase = await wanted(1_000n)
  await reserve([purchase])
  const txHash = newHash()
  const record = () => recordSpent(pool, purchase.id, { ...seen, txHash }, () => '')
  const keys = await keysOf(projectId, 'purse.paid', async () => {
    await record()
    await pool.query(`update purchases set money = 'open', told_at = null where id = $1`, [
      purchase.id,
    ])
    await record()
  })
  expectOneKeyEach(keys)
})

test('if a restored database lacks a refund, the webhook about it comes again with the same idempotency key', async () => {
  const projectId = await newProject(pool)
  const { id: paymentId } = await newSettled(pool, { projectId, amountAtomic: 10_000n })
  await pool.query('update payments set finalized_at = clock_timestamp() where id = $1', [
    paymentId,
  ])
  const made = await refundPayment(pool, keyring, ACTOR, {
    ...{ paymentId, amountAtomic: 1n, key: 'key', deniedPayees: [], dailyGas: null },
  })
  if (made.kind !== 'ok') throw new Error(made.kind)
  const { id } = made.refund
  const txHash = newHash()
  await claimRefund(pool, ACTOR, { paymentId, refundId: id, txHash })
  const record = () => recordHandRefund(pool, { id, txHash }, seen, () => '{}')
  const keys = await keysOf(projectId, 'payment.refunded', async () => {
    await record()
    await pool.query(
      `update hand_refunds set state = 'claimed', log_index = null, block_number = null, block_hash = null,
         spent_at = null, told_at = null, receipt = null where id = $1`,
      [id],
    )
    await record()
  })
  expectOneKeyEach(keys)
})
