/** Tests the approval of a payment by the owner: there is one approval request, and only one decision counts. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Keyring } from '../../../../shared/vault/envelope.ts'
import {
  askOwner,
  decidePayment,
  type PaymentDecision,
} from '../../../../sql/purse/purchases/askedPayments.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { newKeyring, newPurse } from '../../../support/purse/purseRows.ts'
import { row, whileHeld } from '../../../support/till/tillRows.ts'

const HASH = Buffer.alloc(32, 7)
const APPROVED: PaymentDecision = { state: 'approved', hash: HASH }

let database: TestDatabase
let pool: TestDatabase['pool']
let keyring: Keyring
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  keyring = await newKeyring(pool)
})
afterAll(() => database[Symbol.asyncDispose]())

/** Makes a purchase that waits for the approval of the owner. */
async function newAsked() {
  const purse = await newPurse(pool, keyring)
  const { id, offer } = await purse.wanted(1_000n)
  const ask = () => askOwner(pool, { id, offer, reason: 'new_payee', hash: HASH })
  await ask()
  const approvals = async () =>
    (await pool.query('select * from approvals where subject = $1', [id])).rows
  const [approval] = await approvals()
  const actor = { projectId: purse.projectId, keyPrefix: 'owner', requestId: 'test' }
  return {
    id,
    ask,
    approvals,
    approvalId: approval.id as string,
    projectId: purse.projectId,
    purchase: () => row(pool, 'purchases', id),
    decide: (decision: PaymentDecision, { as = actor, within = async () => {} } = {}) =>
      decidePayment(pool, as, { id: approval.id, decision, within }),
    events: async () =>
      (
        await pool.query('select type from events where project_id = $1 order by seq', [
          purse.projectId,
        ])
      ).rows.map(({ type }) => type),
    expire: () =>
      pool.query(
        `update approvals set expires_at = clock_timestamp() - interval '1 second' where id = $1`,
        [approval.id],
      ),
  }
}

describe('a payment that waits for its owner is made only after the owner approved exactly its terms', () => {
  test('a payment that waits for its owner has one approval request, which is valid for the time that the project sets', async () => {
    const { ask, approvals, purchase, projectId } = await newAsked()
    expect(await purchase()).toMatchObject({
      state: 'waiting',
      asked_for: 'new_payee',
      asked_hash: HASH,
    })
    await ask()
    const found = await approvals()
    expect(found).toHaveLength(1)
    const { rows } = await pool.query('select approval_hours from projects where id = $1', [
      projectId,
    ])
    const hours = (found[0].expires_at - found[0].requested_at) / 3_600_000
    expect([found[0].kind, hours]).toEqual(['payment', rows[0].approval_hours])
  })

  test('the owner gets no approval request for a payment that has already ended', async () => {
    const purse = await newPurse(pool, keyring)
    const { id, offer } = await purse.wanted(1_000n)
    await pool.query(`update purchases set state = 'failed', ended_at = now() where id = $1`, [id])
    await askOwner(pool, { id, offer, reason: 'new_payee', hash: HASH })
    const { rowCount } = await pool.query('select from approvals where subject = $1', [id])
    expect([rowCount, (await row(pool, 'purchases', id)).state]).toEqual([0, 'failed'])
  })

  test('after the owner approves exactly the payment terms that were shown, the payment is queued again', async () => {
    const { decide, purchase, approvals } = await newAsked()
    const other: PaymentDecision = { state: 'approved', hash: Buffer.alloc(32, 8) }
    expect((await decide(other))?.kind).toBe('changed')
    expect((await purchase()).state).toBe('waiting')
    expect((await decide(APPROVED))?.kind).toBe('done')
    expect(await purchase()).toMatchObject({ state: 'queued', approved_hash: HASH })
    expect((await approvals())[0]).toMatchObject({ state: 'approved', decided_by: 'owner' })
  })

  test('after the owner rejects a payment, the payment is refused with the owner’s reason', async () => {
    const { decide, purchase, events } = await newAsked()
    expect((await decide({ state: 'rejected', reason: 'too dear' }))?.kind).toBe('done')
    const { state, reason, detail, ciphertext } = await purchase()
    expect([state, reason, ciphertext]).toEqual(['refused', 'rejected', null])
    expect(detail).toEndWith(': too dear')
    expect((await events()).at(-1)).toBe('purse.refused')
  })

  test('the owner’s first decision about a payment counts, and a second decision changes nothing', async () => {
    const { decide, purchase } = await newAsked()
    await decide(APPROVED)
    expect((await decide({ state: 'rejected', reason: null }))?.kind).toBe('before')
    expect((await purchase()).state).toBe('queued')
  })

  test('if ten decisions about a payment are made at the same time, only one takes effect', async () => {
    const { decide } = await newAsked()
    const results = await Promise.all(Array.from({ length: 10 }, () => decide(APPROVED)))
    expect(results.filter((result) => result?.kind === 'done')).toHaveLength(1)
  })

  test('an approval request for a payment expires only after its time, and can then no longer be approved', async () => {
    const { decide, expire, purchase } = await newAsked()
    expect((await decide({ state: 'expired' }))?.kind).toBe('before')
    expect((await purchase()).state).toBe('waiting')
    await expire()
    expect((await decide(APPROVED))?.kind).toBe('late')
    expect(await purchase()).toMatchObject({ state: 'refused', reason: 'approval_expired' })
    const silent = await newAsked()
    await silent.expire()
    expect((await silent.decide({ state: 'expired' }))?.kind).toBe('done')
    expect((await silent.purchase()).reason).toBe('approval_expired')
  })

  test('a payment can be decided only in its own project, and an unknown approval request is not found', async () => {
    const { decide, purchase } = await newAsked()
    const stranger = { projectId: 'prj_other', keyPrefix: 'eve', requestId: 'test' }
    expect(await decide(APPROVED, { as: stranger })).toBeNull()
    const unknown = { id: 'apr_none', decision: APPROVED }
    expect(await decidePayment(pool, stranger, unknown)).toBeNull()
    expect((await purchase()).state).toBe('waiting')
  })

  test('if a check in the transaction of the owner’s decision fails, the payment stays undecided', async () => {
    const { decide, purchase } = await newAsked()
    const within = () => Promise.reject(new Error('no passkey'))
    await expect(decide(APPROVED, { within })).rejects.toThrow('no passkey')
    expect((await purchase()).state).toBe('waiting')
  })
})

test('a decision has no effect if its approval request is deleted at the same time', async () => {
  const asked = await newAsked()
  const decided = await whileHeld(
    pool,
    'delete from approvals where id = $1',
    [asked.approvalId],
    () => [asked.decide(APPROVED)],
  )
  expect(decided).toEqual([null])
})
