/**
 * Tests payments that one purse (the wallet of a project) makes together as a group. Each payment reduces what the
 * limits allow for the next.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Keyring } from '../../../../shared/vault/envelope.ts'
import type { MandateTerms } from '../../../../sql/purse/mandates.ts'
import { findDuePurchase } from '../../../../sql/purse/purchases/purchaseSteps.ts'
import { COLLECTABLE_MAX, OPEN_MAX } from '../../../../sql/purse/purchases/reserve.ts'
import { countPurseGas } from '../../../../sql/purse/purseGas.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import {
  BALANCE,
  newKeyring,
  newPurse as newPurseOf,
  OTHER_PAYEE,
  TERMS,
} from '../../../support/purse/purseRows.ts'

let database: TestDatabase
let keyring: Keyring
beforeAll(async () => {
  database = await createTestDatabase()
  keyring = await newKeyring(database.pool)
})
afterAll(() => database[Symbol.asyncDispose]())

const newPurse = (terms: Partial<MandateTerms> = {}) => newPurseOf(database.pool, keyring, terms)

test('payments that are decided together never exceed the limits of the owner’s mandate (spending limit)', async () => {
  const purse = await newPurse({ limits: { ...TERMS.limits, day: 25_000n } })
  const wanted = [10_000n, 10_000n, 6_000n, 5_000n, 1n]
  const group = []
  for (const price of wanted) group.push(await purse.wanted(price))
  expect(await purse.reserve(group)).toEqual([
    'signed',
    'signed',
    'refused mandate_exceeded',
    'signed',
    'refused mandate_exceeded',
  ])
  expect(await purse.reserved()).toEqual([25_000n, 25_000n])
})

test('payments that are decided together never exceed the number of payments that the mandate (spending limit) allows in a minute', async () => {
  const purse = await newPurse({ paymentsPerMinute: 2 })
  const group = [await purse.wanted(1n), await purse.wanted(1n), await purse.wanted(1n)]
  expect(await purse.reserve(group)).toEqual(['signed', 'signed', 'refused too_many_payments'])
})

test('if two runs of one purchase job are decided in the same group, only one run signs a payment', async () => {
  const purse = await newPurse()
  const wanted = await purse.wanted(10_000n)
  expect(await purse.reserve([wanted, wanted])).toEqual(['signed', 'not_due'])
  expect(await purse.reserved()).toEqual([10_000n, 10_000n])
})

test('purchases that are decided together spend no more than the balance of the purse (wallet)', async () => {
  const purse = await newPurse({ perPaymentAtomic: BALANCE, risePercent: 1_000_000 })
  await database.pool.query('update purses set balance_atomic = 150000 where project_id = $1', [
    purse.projectId,
  ])
  const group = [
    await purse.wanted(100_000n),
    await purse.wanted(60_000n),
    await purse.wanted(50_000n),
  ]
  expect(await purse.reserve(group)).toEqual(['signed', 'refused insufficient_funds', 'signed'])
})

/** Adds copies of the only payment of a purse. */
const addCopies = (projectId: string, count: number) =>
  database.pool.query(
    `insert into purchases (id, project_id, kind, idempotency_key, request_hash, state, method, host, path, max_atomic,
       asked_by, network, asset, pay_to, amount_atomic, money, payer, nonce, valid_before, reserved_at, ended_at)
     select id || n, project_id, kind, n::text, request_hash, 'signed', method, host, path, max_atomic, asked_by, network,
       asset, pay_to, amount_atomic, money, payer, nonce || n, valid_before, reserved_at, reserved_at
     from purchases, generate_series(1, $2) n where project_id = $1`,
    [projectId, count],
  )

/** Makes `count` open payments of a purse (wallet) expire. */
const expire = (projectId: string, count: number) =>
  database.pool.query(
    `update purchases set valid_before = extract(epoch from clock_timestamp())::bigint - 1 where id in (
       select id from purchases where project_id = $1 and money = 'open' limit $2)`,
    [projectId, count],
  )

test('a purse (wallet) may have only a limited number of payments that sellers can still collect', async () => {
  const purse = await newPurse()
  expect(await purse.reserve([await purse.wanted(1n)])).toEqual(['signed'])
  await addCopies(purse.projectId, COLLECTABLE_MAX - 2)
  const group = [await purse.wanted(1n), await purse.wanted(1n)]
  expect(await purse.reserve(group)).toEqual(['signed', 'refused too_many_open'])
  await expire(purse.projectId, 1)
  expect(await purse.reserve([await purse.wanted(1n)])).toEqual(['signed'])
})

test('a purse (wallet) may have only a limited number of expired payments whose amounts are still reserved', async () => {
  const purse = await newPurse()
  expect(await purse.reserve([await purse.wanted(1n)])).toEqual(['signed'])
  await addCopies(purse.projectId, OPEN_MAX - 2)
  await expire(purse.projectId, OPEN_MAX)
  const group = [await purse.wanted(1n), await purse.wanted(1n)]
  expect(await purse.reserve(group)).toEqual(['signed', 'refused too_many_open'])
})

test('a purse (wallet) whose cancellations and transfers have used up the daily gas limit signs no payment until the next day', async () => {
  const purse = await newPurse()
  const { pool } = database
  const reserved = async (dailyGas: number | null) =>
    await purse.reserve([await purse.wanted(1n)], dailyGas)
  await countPurseGas(pool, purse.projectId, 2)
  expect(await reserved(160_001)).toEqual(['signed'])
  expect(await reserved(null)).toEqual(['signed'])
  expect(await reserved(160_000)).toEqual(['refused too_much_gas'])
  await pool.query('insert into project_limits (project_id, daily_gas) values ($1, 240_000)', [
    purse.projectId,
  ])
  expect(await reserved(160_000)).toEqual(['signed'])
  await countPurseGas(pool, purse.projectId, 1)
  expect(await reserved(null)).toEqual(['refused too_much_gas'])
  await pool.query('update purse_gas set day = day - 1 where project_id = $1', [purse.projectId])
  expect(await reserved(null)).toEqual(['signed'])
  await countPurseGas(pool, purse.projectId, 2)
  expect(await reserved(null)).toEqual(['signed'])
})

test('if purchases are decided together, the owner is still asked about each new payee and each raised price', async () => {
  const purse = await newPurse()
  const group = [
    await purse.wanted(1_000n),
    await purse.wanted(1_000n, OTHER_PAYEE),
    await purse.wanted(1_200n),
    await purse.wanted(1_201n),
  ]
  expect(await purse.reserve(group)).toEqual([
    'signed',
    'ask new_payee',
    'signed',
    'ask price_rose',
  ])
  const later = [await purse.wanted(1_201n), await purse.wanted(900n), await purse.wanted(1_081n)]
  expect(await purse.reserve(later)).toEqual(['ask price_rose', 'signed', 'ask price_rose'])
})

test('the owner must approve a payment above the amount in the mandate (spending limit), but not a payment of exactly this amount', async () => {
  const purse = await newPurse({ askAboveAtomic: 1_000n })
  const group = [await purse.wanted(1_000n), await purse.wanted(1_001n)]
  expect(await purse.reserve(group)).toEqual(['signed', 'ask above_limit'])
})

test('a purchase is not signed if the content of its request has been erased', async () => {
  const purse = await newPurse()
  const wanted = await purse.wanted(1_000n)
  await database.pool.query(
    'update purchases set key_id = null, wrapped_key = null, ciphertext = null where id = $1',
    [wanted.id],
  )
  expect(await purse.reserve([wanted])).toEqual(['not_due'])
  expect(await purse.reserved()).toEqual([0n, 0n])
})

test('the warning that a mandate (spending limit) is almost used up is recorded once, for the payment that crosses the threshold', async () => {
  const purse = await newPurse({ limits: { ...TERMS.limits, total: 10_000n } })
  const group = [await purse.wanted(8_000n), await purse.wanted(1_000n), await purse.wanted(1_000n)]
  await purse.reserve(group)
  const { rows } = await database.pool.query(
    `select data->>'percent' as percent, data->>'usedUsdcRaw' as used from events
     where project_id = $1 and type = 'purse.warned' order by seq`,
    [purse.projectId],
  )
  expect(rows).toEqual([
    { percent: '80', used: '8000' },
    { percent: '95', used: '10000' },
  ])
})

test('a purchase is not signed if it belongs to another project or is already signed', async () => {
  const [mine, others] = [await newPurse(), await newPurse()]
  const [first, foreign] = [await mine.wanted(1n), await others.wanted(1n)]
  expect(await mine.reserve([foreign, first])).toEqual(['not_due', 'signed'])
  expect(await mine.reserve([first])).toEqual(['not_due'])
  expect((await findDuePurchase(database.pool, first.id))?.state).toBe('signed')
  expect(await others.reserved()).toEqual([0n, 0n])
})

test('a purchase whose project has no purse (wallet) any more, or whose request is deleted, signs no payment', async () => {
  const [gone, empty] = [await newPurse(), await newPurse()]
  const { pool } = database
  const first = await gone.wanted(1n)
  await pool.query('delete from purses where project_id = $1', [gone.projectId])
  expect(await gone.reserve([first, { ...first, id: 'pur_none' }])).toEqual([
    'refused no_purse',
    'not_due',
  ])
  const second = await empty.wanted(1n)
  await pool.query(
    'update purchases set key_id = null, wrapped_key = null, ciphertext = null where id = $1',
    [second.id],
  )
  expect(await empty.reserve([second])).toEqual(['not_due'])
})

test('a purse (wallet) whose key is missing signs nothing, and the error says so', async () => {
  const purse = await newPurse()
  const wanted = await purse.wanted(1n)
  await database.pool.query('delete from purse_keys where project_id = $1', [purse.projectId])
  await expect(purse.reserve([wanted])).rejects.toThrow('the key of the purse is not there')
})
