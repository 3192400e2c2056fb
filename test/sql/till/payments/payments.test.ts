import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Address } from 'viem'
import { findClaim, findPayment } from '../../../../sql/till/payments/payments.ts'
import { storeForNonce } from '../../../../sql/till/settle/gasWallets.ts'
import { failPayment } from '../../../../sql/till/settle/settlements.ts'
import { recordFinal } from '../../../../sql/till/watch/finality.ts'
import { recordMisses } from '../../../../sql/till/watch/misses.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import {
  newClaim,
  newHash,
  newPayment,
  newProject,
  newTransaction,
  OTHER_CHAIN_ID,
  settle,
  signedFor,
  WALLET,
} from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

test('an authorization is identified by chain, token, payer in any letter case, and nonce', async () => {
  const claim = newClaim(await newProject(pool))
  const id = await newPayment(pool, claim)
  const find = (changes: { chainId?: number; asset?: string; payer?: string; nonce?: string }) =>
    findClaim(pool, { ...claim, ...changes })
  expect((await find({}))?.id).toBe(id)
  expect((await find({ payer: claim.payer.toLowerCase() }))?.id).toBe(id)
  const other: Address = '0x00000000000000000000000000000000000000aa'
  for (const changes of [
    { chainId: OTHER_CHAIN_ID },
    { asset: other },
    { payer: other },
    { nonce: newHash() },
  ]) {
    expect(await find(changes)).toBeNull()
  }
})

describe('the service finds the transaction of a payment', () => {
  const hashOf = async (id: string) => (await findPayment(pool, id))?.txHash

  test('the transaction of a payment is the newest signed transaction that was not displaced', async () => {
    const id = await newPayment(pool)
    expect(await hashOf(id)).toBeNull()
    const first = await newTransaction(pool, id)
    await pool.query(`update chain_transactions set signed_at = signed_at - interval '1 second'`)
    const second = { ...signedFor(id, first.nonce), maxFeeWei: 200n }
    await storeForNonce(pool, WALLET, second, first.hash)
    expect(await hashOf(id)).toBe(second.hash)
    await recordMisses(pool, { reverted: [], displaced: [second.hash] })
    expect(await hashOf(id)).toBe(first.hash)
  })

  test('the transaction of a payment is null after the payment has failed', async () => {
    const paymentId = await newPayment(pool)
    await newTransaction(pool, paymentId)
    const failure = { stage: 'settle', reason: 'insufficient_funds', detail: null } as const
    await failPayment(pool, { paymentId, ...failure })
    expect(await hashOf(paymentId)).toBeNull()
  })

  test('the transaction of a settled payment is the transaction that settled it', async () => {
    const id = await newPayment(pool)
    await newTransaction(pool, id)
    const foreign = newHash()
    await settle(pool, id, foreign)
    await recordFinal(pool, [id])
    expect(await hashOf(id)).toBe(foreign)
  })
})
