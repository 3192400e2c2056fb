/** Tests how many payments a project may claim (reserve) in one UTC day, and how much gas it may use. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import type { Hex } from 'viem'
import { claimPayments } from '../../../../sql/till/settle/claims.ts'
import { storeSigned, syncWallet } from '../../../../sql/till/settle/gasWallets.ts'
import {
  isBudgetRace,
  isBudgetUsedUp,
  NO_SETTLEMENT_LIMITS,
  readBudgetUse,
  type SettlementLimits,
} from '../../../../sql/till/settle/settlementBudgets.ts'
import { recordSettlements } from '../../../../sql/till/settle/settlements.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import {
  BLOCK,
  newClaim,
  newPayment,
  newProject,
  newTransaction,
  signedFor,
  WALLET,
  whileHeld,
} from '../../../support/till/tillRows.ts'

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

const limitsOf = (dailySettlements: number | null, dailyGas: number | null = null) => ({
  dailySettlements,
  dailyGas,
})
const claim = async (limits: SettlementLimits, count = 1) => {
  const claims = Array.from({ length: count }, () => newClaim(projectId))
  const made = await claimPayments(pool, claims, limits)
  return made.filter(Boolean).length
}
const own = (column: 'daily_settlements' | 'daily_gas', limit: number) =>
  pool.query(
    `insert into project_limits (project_id, ${column}) values ($1, $2)
     on conflict (project_id) do update set ${column} = excluded.${column}`,
    [projectId, limit],
  )
const mine = (hash: Hex, gasUsed: bigint) =>
  recordSettlements(pool, {
    settlements: [],
    mined: [{ hash, succeeded: true, gasUsed, feeWei: 1n, ...BLOCK }],
  })
const gasOf = async (project: string) => {
  const { rows } = await pool.query('select gas from settlement_budgets where project_id = $1', [
    project,
  ])
  return rows[0] === undefined ? null : Number(rows[0].gas)
}
/** Makes a payment whose transaction used the given gas. */
const burn = async (gas: bigint) =>
  mine((await newTransaction(pool, await newPayment(pool, { projectId }))).hash, gas)
const isUsedUp = (limits: SettlementLimits) => isBudgetUsedUp(pool, projectId, limits)
const becomeYesterday = () => pool.query('update settlement_budgets set day = day - 1')

test('a project can claim (reserve) exactly its daily limit of payments, even in one batch', async () => {
  expect(await claim(limitsOf(3))).toBe(1)
  expect(await isUsedUp(limitsOf(2))).toBe(false)
  expect(await claim(limitsOf(3), 4)).toBe(2)
  expect(await claim(limitsOf(3))).toBe(0)
  expect([await isUsedUp(limitsOf(3)), await isUsedUp(limitsOf(4))]).toEqual([true, false])
  expect(await isUsedUp(NO_SETTLEMENT_LIMITS)).toBe(false)
  expect(await claim(NO_SETTLEMENT_LIMITS)).toBe(1)
})

test('an authorization that is already claimed (reserved), or occurs twice in a batch, does not count again towards the daily limit', async () => {
  const first = newClaim(projectId)
  expect(await claimPayments(pool, [first], limitsOf(3))).toEqual([true])
  const again = newClaim(projectId, { nonce: first.nonce })
  const [second, twin, third] = [
    newClaim(projectId),
    newClaim(projectId),
    newClaim(projectId, { payer: `0x${'ab'.repeat(20)}` }),
  ]
  const batch = [again, second, { ...twin!, nonce: second!.nonce }, third!]
  const made = await claimPayments(pool, batch as never, limitsOf(3))
  expect(made).toEqual([false, true, false, true])
  expect(await claim(limitsOf(3))).toBe(0)
})

test('a payment with a payment identifier that its payer has already used does not count towards the daily limit', async () => {
  const name = (paymentIdentifier: string) => newClaim(projectId, { paymentIdentifier })
  expect(await claimPayments(pool, [name('used')], limitsOf(3))).toEqual([true])
  const batch = [name('used'), name('new'), name('new'), newClaim(projectId)]
  const [used, one, other, nameless] = await claimPayments(pool, batch, limitsOf(3))
  expect([used, nameless]).toEqual([false, true])
  expect([one, other].filter(Boolean)).toHaveLength(1)
})

test('the daily count of claimed (reserved) payments begins at zero on the next day', async () => {
  expect(await claim(limitsOf(2), 2)).toBe(2)
  await becomeYesterday()
  expect(await isUsedUp(limitsOf(2))).toBe(false)
  expect(await claim(limitsOf(2), 3)).toBe(2)
})

test('a project’s own daily limit of payments or gas replaces the general limit of the service', async () => {
  await own('daily_settlements', 1)
  expect(await claim(limitsOf(5), 2)).toBe(1)
  expect(await isUsedUp(NO_SETTLEMENT_LIMITS)).toBe(true)
  await own('daily_settlements', 3)
  expect(await claim(limitsOf(1), 3)).toBe(2)
  await own('daily_settlements', 100)
  await burn(10n)
  await own('daily_gas', 11)
  expect([await isUsedUp(limitsOf(null, 1)), await claim(limitsOf(null, 1))]).toEqual([false, 1])
})

test('after a project has used up its daily gas, it can claim (reserve) no payment', async () => {
  await burn(999n)
  expect([await claim(limitsOf(null, 1_000)), await isUsedUp(limitsOf(null, 1_000))]).toEqual([
    1,
    false,
  ])
  await burn(1n)
  expect([await claim(limitsOf(null, 1_000)), await isUsedUp(limitsOf(null, 1_000))]).toEqual([
    0,
    true,
  ])
  expect(await claim(limitsOf(null, 1_001))).toBe(1)
  await becomeYesterday()
  expect(await claim(limitsOf(null, 1_000))).toBe(1)
  await burn(7n)
  expect(await gasOf(projectId)).toBe(7)
})

test('the gas of a transaction is counted once, and if its receipt changes, only the difference is added', async () => {
  const { hash } = await newTransaction(pool, await newPayment(pool, { projectId }))
  await mine(hash, 100n)
  await mine(hash, 100n)
  expect(await gasOf(projectId)).toBe(100)
  await mine(hash, 90n)
  expect(await gasOf(projectId)).toBe(90)
})

test('the gas of a transaction with several payments is divided among these payments, and a deleted project is charged for no gas', async () => {
  const other = await newProject(pool)
  const gone = await newProject(pool)
  const ids: string[] = []
  for (const id of [projectId, projectId, other, gone]) {
    ids.push(await newPayment(pool, { projectId: id }))
  }
  await syncWallet(pool, WALLET, 0n)
  const [group] = await storeSigned(pool, WALLET, [ids], new Map(), async (members, nonce) =>
    signedFor(members, nonce),
  )
  await pool.query('delete from settlement_budgets where project_id = any ($1)', [
    [projectId, other, gone],
  ])
  await pool.query('update projects set deleted_at = now() where id = $1', [gone])
  await mine(group!.hash, 403n)
  const shares = [(await gasOf(projectId))!, (await gasOf(other))!]
  expect(shares[0]).toBeWithin(200, 203)
  expect(shares[1]).toBeWithin(100, 102)
  expect(await gasOf(gone)).toBeNull()
})

test('the gas of a transaction without a payment is charged to no project', async () => {
  const { hash } = await newTransaction(pool, await newPayment(pool, { projectId }))
  await pool.query('update chain_transactions set payment_id = null where hash = $1', [hash])
  await mine(hash, 100n)
  expect(await gasOf(projectId)).toBe(0)
})

test('the metric for the use of daily limits shows the highest fraction of a limit that any project has used today', async () => {
  await pool.query('delete from settlement_budgets')
  expect(await readBudgetUse(pool, limitsOf(4))).toEqual({
    ...{ share: 0, usedUp: 0, settlements: 0, gas: 0 },
  })
  await claim(limitsOf(4), 2)
  projectId = await newProject(pool)
  await claim(limitsOf(4), 3)
  await burn(10n)
  const use = await readBudgetUse(pool, limitsOf(4, 20))
  expect(use).toEqual({ share: 1, usedUp: 1, settlements: 6, gas: 10 })
  expect(await readBudgetUse(pool, limitsOf(8, 11))).toMatchObject({ share: 10 / 11, usedUp: 0 })
  await becomeYesterday()
  expect((await readBudgetUse(pool, limitsOf(4))).settlements).toBe(0)
})

test('if a concurrent claim (reservation) uses up the daily limit, a single claim is refused, and a batch of claims throws an error', async () => {
  const usedUp = `insert into settlement_budgets (project_id, day, settlements, allowed)
                  values ($1, (clock_timestamp() at time zone 'UTC')::date, 1, 1)`
  const single = await whileHeld(pool, usedUp, [projectId], () => [
    claimPayments(pool, [newClaim(projectId)], limitsOf(1)),
  ])
  expect(single).toEqual([[false]])
  const [other, third] = [await newProject(pool), await newProject(pool)]
  const batch = await whileHeld(pool, usedUp, [other], () => [
    claimPayments(pool, [newClaim(other), newClaim(third)], limitsOf(1)).catch(isBudgetRace),
  ])
  expect(batch).toEqual([true])
})

test('if the database refuses a claim (reservation) of a payment for another reason than the daily limit, the claim throws an error', async () => {
  const invalid = newClaim(projectId, { amountAtomic: 0n })
  const failed = claimPayments(pool, [invalid]).then(() => 'claimed', isBudgetRace)
  expect(await failed).toBe(false)
})
