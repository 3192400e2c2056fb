/**
 * Tests which payments count as idle, so that their settlement must be queued again: verified payments without a job
 * and without an open transaction.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { NewClaim } from '../../../../sql/till/settle/claims.ts'
import { findIdlePayments, queueSettlement } from '../../../../sql/till/settle/settlementQueue.ts'
import { recordMisses } from '../../../../sql/till/watch/misses.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import {
  dropJobs,
  failJobs,
  newPayment,
  newSettled,
  newTransaction,
  OTHER_CHAIN_ID,
  WALLET,
} from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const isIdle = async (id: string) => {
  const found = await findIdlePayments(pool, {
    chainId: WALLET.chainId,
    olderThanMs: 60_000,
    limit: 100,
  })
  return found.includes(id)
}

async function oldPayment(changes: Partial<NewClaim> = {}): Promise<string> {
  const id = await newPayment(pool, changes)
  await pool.query(`update payments set created_at = created_at - interval '2 minutes'`)
  return id
}

test('an old verified payment without a job and without a transaction counts as idle, so its settlement must be queued again', async () => {
  expect(await isIdle(await oldPayment())).toBe(true)
  expect(await isIdle(await newPayment(pool))).toBe(false)
})

test('a settled payment does not count as idle (without a settlement job), so its settlement is not queued again', async () => {
  const { id } = await newSettled(pool)
  await pool.query(`update payments set created_at = created_at - interval '2 minutes'`)
  expect(await isIdle(id)).toBe(false)
})

test('a payment on another chain does not count as an idle payment (without a settlement job) of this chain', async () => {
  expect(await isIdle(await oldPayment({ chainId: OTHER_CHAIN_ID }))).toBe(false)
})

test('a payment with a settlement job does not count as idle, so no second job is queued', async () => {
  const id = await oldPayment()
  await queueSettlement(pool, id, new Date(Date.now() + 3_600_000))
  expect(await isIdle(id)).toBe(false)
})

test('a payment whose settlement job has failed finally counts as idle (without work in progress), so its settlement must be queued again', async () => {
  const id = await oldPayment()
  await queueSettlement(pool, id, null)
  expect(await isIdle(id)).toBe(false)
  await failJobs(pool)
  expect(await isIdle(id)).toBe(true)
  await queueSettlement(pool, id, null)
  expect(await isIdle(id)).toBe(false)
})

test('a payment with an open transaction counts as idle (without work in progress) only after its transaction is displaced or its authorization has expired', async () => {
  const [displaced, expired] = [await oldPayment(), await oldPayment({ validBefore: 1n })]
  const { hash } = await newTransaction(pool, displaced)
  await newTransaction(pool, expired)
  expect([await isIdle(displaced), await isIdle(expired)]).toEqual([false, true])
  await recordMisses(pool, { reverted: [], displaced: [hash] })
  await dropJobs(pool)
  expect(await isIdle(displaced)).toBe(true)
})
