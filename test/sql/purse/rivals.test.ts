/**
 * Tests that a change of a purse (wallet) waits for a concurrent change of the same rows, and then respects the result
 * of the concurrent change.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Keyring } from '../../../shared/vault/envelope.ts'
import { transaction } from '../../../sql/db.ts'
import { giveMandate, listMandates } from '../../../sql/purse/mandates.ts'
import { askOwner, decidePayment } from '../../../sql/purse/purchases/askedPayments.ts'
import type { Wanted } from '../../../sql/purse/purchases/reserve.ts'
import { recordHandRefund } from '../../../sql/purse/refunds/handRefunds.ts'
import { claimRefund, refundPayment } from '../../../sql/purse/refunds/refunds.ts'
import { signInAt } from '../../../sql/purse/signIn.ts'
import { cancelOpen } from '../../../sql/purse/stop.ts'
import { recordReleased, recordSpent, recordUnspent } from '../../../sql/purse/watch.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { newKeyring, newPurse, ownerOf, TERMS } from '../../support/purse/purseRows.ts'
import { newHash, newProject, newSettled, row, whileHeld } from '../../support/till/tillRows.ts'

const HASH = Buffer.alloc(32, 7)

let database: TestDatabase
let pool: TestDatabase['pool']
let keyring: Keyring
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  keyring = await newKeyring(pool)
})
afterAll(() => database[Symbol.asyncDispose]())

/**
 * Runs `work` while another transaction has changed a row but has not committed yet, and returns the result of `work`.
 */
const behind = async <Result>(
  change: string,
  id: string,
  work: () => Promise<Result>,
): Promise<Result> => (await whileHeld(pool, change, [id], () => [work()]))[0]!

/** Makes a purse (wallet) with one mandate (permission to pay) and one purchase whose payment is not signed yet. */
async function newScene() {
  const purse = await newPurse(pool, keyring)
  const { projectId } = purse
  const [mandate] = await listMandates(pool, { projectId, cursor: null, limit: 1 })
  const wanted = await purse.wanted(1_000n)
  return { ...purse, mandateId: mandate!.id, wanted, owner: ownerOf(projectId) }
}
type Scene = Awaited<ReturnType<typeof newScene>>

const END_MANDATE = `update mandates set state = 'ended' where id = $1`
const FAIL_PURCHASE = `update purchases set state = 'failed', ended_at = now() where id = $1`
const HOLD_PURSE = 'update purses set frozen_by = frozen_by where project_id = $1'

const payments: [name: string, change: string, id: (scene: Scene) => string, result: string][] = [
  [
    'the owner ends the mandate',
    END_MANDATE,
    ({ mandateId }) => mandateId,
    'refused not_in_mandate',
  ],
  ['the purchase fails', FAIL_PURCHASE, ({ wanted }) => wanted.id, 'not_due'],
  [
    'the owner stops the purse',
    'update purses set frozen_at = now() where project_id = $1',
    ({ projectId }) => projectId,
    'refused frozen',
  ],
  [
    'the balance of the purse falls',
    'update purses set balance_atomic = 0 where project_id = $1',
    ({ projectId }) => projectId,
    'refused insufficient_funds',
  ],
]
for (const [name, change, id, result] of payments) {
  test(`a payment is not signed if at the same time ${name}`, async () => {
    const scene = await newScene()
    const pay = (wanted: Wanted) => scene.reserve([wanted])
    expect(await behind(change, id(scene), () => pay(scene.wanted))).toEqual([result])
  })
}

test('if a project is deleted while a mandate (spending limit) is created for it, the mandate is not stored', async () => {
  const projectId = await newProject(pool)
  expect(
    await behind('update projects set deleted_at = now() where id = $1', projectId, () =>
      giveMandate(pool, ownerOf(projectId), TERMS),
    ),
  ).toBeNull()
})

test('if a payment ends while the owner decides, the payment cannot be approved', async () => {
  const { wanted, owner } = await newScene()
  const { id, offer } = wanted
  await askOwner(pool, { id, offer, reason: 'new_payee', hash: HASH })
  const { rows } = await pool.query('select id from approvals where subject = $1', [id])
  const decision = { state: 'approved', hash: HASH } as const
  const decided = await behind(FAIL_PURCHASE, id, () =>
    decidePayment(pool, owner, { id: rows[0].id, decision }),
  )
  expect(decided?.kind).toBe('before')
})

test('if a purchase fails during the sign-in at the seller, the purse (wallet) does not sign in', async () => {
  const { wanted } = await newScene()
  const signIn = () =>
    signInAt(pool, {
      id: wanted.id,
      challenge: { info: {}, caip2: 'eip155:84532' } as never,
      at: { url: wanted.url, network: TERMS.network },
      keyring,
    })
  expect(await behind(FAIL_PURCHASE, wanted.id, signIn)).toBeNull()
})

test('the outcome of a payment is recorded only after a concurrent transaction has unlocked the purse (wallet)', async () => {
  const { wanted, reserve, projectId } = await newScene()
  await reserve([wanted])
  const { id } = wanted
  const seen = { txHash: newHash(), logIndex: 1, blockNumber: 7n, blockHash: newHash() }
  const outcomes: [() => Promise<unknown>, string][] = [
    [() => recordSpent(pool, id, seen, () => ''), 'spent'],
    [() => recordUnspent(pool, id), 'open'],
    [() => recordReleased(pool, id), 'released'],
  ]
  for (const [record, money] of outcomes) {
    await behind(HOLD_PURSE, projectId, record)
    expect((await row(pool, 'purchases', id)).money).toBe(money)
  }
})

test('a payment is recorded as spent once', async () => {
  const { wanted, reserve } = await newScene()
  await reserve([wanted])
  const seen = { txHash: newHash(), logIndex: 1, blockNumber: 7n, blockHash: newHash() }
  const record = () => recordSpent(pool, wanted.id, seen, () => '')
  expect([await record(), await record()]).toEqual([true, false])
})

test('the open payments of a purse (wallet) are cancelled only after a concurrent transaction has unlocked the purse', async () => {
  const { wanted, reserve, projectId } = await newScene()
  await reserve([wanted])
  const cancel = () =>
    transaction(pool, (db) => cancelOpen(db, keyring, projectId, { kind: 'all' }))
  expect(await behind(HOLD_PURSE, projectId, cancel)).toBe(1)
  expect((await row(pool, 'purchases', wanted.id)).cancel_signature).toBeString()
})

/** Makes a final payment of a seller that refunds by hand. */
async function newSale() {
  const { id } = await newSettled(pool, {
    projectId: await newProject(pool),
    amountAtomic: 10_000n,
  })
  await pool.query('update payments set finalized_at = clock_timestamp() where id = $1', [id])
  const refund = () =>
    refundPayment(
      pool,
      keyring,
      { keyPrefix: 'k', requestId: 'r' },
      {
        paymentId: id,
        amountAtomic: 1n,
        key: 'key',
        deniedPayees: [],
        dailyGas: null,
      },
    )
  return { id, refund }
}

test('a refund is refused if a concurrent transaction records that the payment is no longer final', async () => {
  const { id, refund } = await newSale()
  const change = 'update payments set finalized_at = null where id = $1'
  expect(await behind(change, id, refund)).toEqual({ kind: 'not_final' })
})

test('if the seller withdraws a refund while its transfer is recorded, the transfer does not count as the refund', async () => {
  const { id: paymentId, refund } = await newSale()
  const made = await refund()
  if (made.kind !== 'ok') throw new Error(made.kind)
  const { id } = made.refund
  const txHash = newHash()
  await claimRefund(pool, { keyPrefix: 'k', requestId: 'r' }, { paymentId, refundId: id, txHash })
  const seen = { logIndex: 1, blockNumber: 7n, blockHash: newHash() }
  const recorded = await behind(
    `update hand_refunds set state = 'withdrawn', tx_hash = null where id = $1`,
    id,
    () => recordHandRefund(pool, { id, txHash }, seen, () => '{}'),
  )
  expect(recorded).toBe(false)
  expect((await row(pool, 'hand_refunds', id)).state).toBe('withdrawn')
})
