import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Address } from 'viem'
import { findClaim, findPayment, isNamedPayment } from '../../../../sql/till/payments/payments.ts'
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

test('a payment authorization is identified by chain, token, nonce and payer, and the letter case of the addresses does not matter', async () => {
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

test('a stored payment keeps the deployment data of the payer’s wallet', async () => {
  const deployment = {
    factory: '0x00000000000000000000000000000000000000fa',
    factoryData: '0x12',
  } as const
  const id = await newPayment(pool, { deployment })
  expect((await findPayment(pool, id))?.deployment).toEqual(deployment)
  expect((await findPayment(pool, await newPayment(pool)))?.deployment).toBeNull()
})

test('a payment identifier counts as already used if another payment of the same payer in the project has it and has not failed', async () => {
  const paymentIdentifier = 'order-1'
  const claim = newClaim(await newProject(pool), { paymentIdentifier })
  const named = { ...claim, paymentIdentifier }
  const another = { ...named, nonce: newHash() }
  expect(await isNamedPayment(pool, named)).toBe(false)
  const paymentId = await newPayment(pool, claim)
  expect(await isNamedPayment(pool, named)).toBe(false)
  expect(await isNamedPayment(pool, another)).toBe(true)
  expect(await isNamedPayment(pool, { ...another, payer: claim.payer.toLowerCase() })).toBe(true)
  for (const change of [
    { projectId: await newProject(pool) },
    { paymentIdentifier: 'order-2' },
    { payer: '0x00000000000000000000000000000000000000aa' },
  ]) {
    expect(await isNamedPayment(pool, { ...another, ...change })).toBe(false)
  }
  for (const change of [{ chainId: OTHER_CHAIN_ID }, { asset: '0x1' }]) {
    expect(await isNamedPayment(pool, { ...named, ...change })).toBe(true)
  }
  const failure = { stage: 'verify', reason: 'insufficient_funds', detail: null } as const
  await failPayment(pool, { paymentId, ...failure })
  expect(await isNamedPayment(pool, another)).toBe(false)
})

describe('the service finds the transaction that settles a payment', () => {
  const hashOf = async (id: string) => (await findPayment(pool, id))?.txHash

  test('the transaction of an unsettled payment is its newest signed transaction that no other transaction has displaced', async () => {
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

  test('a failed payment has no transaction, so the search for its transaction returns null', async () => {
    const paymentId = await newPayment(pool)
    await newTransaction(pool, paymentId)
    const failure = { stage: 'settle', reason: 'insufficient_funds', detail: null } as const
    await failPayment(pool, { paymentId, ...failure, cannotPay: true })
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
