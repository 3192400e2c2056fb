import { afterAll, beforeAll, expect, test } from 'bun:test'
import { newCheckId } from '../../../../shared/ids.ts'
import {
  type Check,
  createCheck,
  deleteStaleChecks,
  findCheck,
  passCheck,
  refuseCheck,
} from '../../../../sql/till/payments/paymentChecks.ts'
import { findPayment } from '../../../../sql/till/payments/payments.ts'
import { claimPayments } from '../../../../sql/till/settle/claims.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { newClaim, newProject, whileHeld } from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
let projectId: string

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  projectId = await newProject(pool)
})
afterAll(() => database[Symbol.asyncDispose]())

async function newCheck({ claims = true, claim = newClaim(projectId) } = {}): Promise<Check> {
  const id = newCheckId()
  await createCheck(pool, { id, claim, claims, reasonWithoutCode: null })
  return (await findCheck(pool, id))!
}
const refuse = (check: Check) => refuseCheck(pool, check.id, 'unexpected_verify_error')

test('a passed payment check reserves the payment’s authorization only if the check was created with `claims` set to true', async () => {
  const [claiming, asking] = [await newCheck(), await newCheck({ claims: false })]
  for (const check of [claiming, asking]) await passCheck(pool, check)
  expect(await findCheck(pool, claiming.id)).toMatchObject({
    state: 'passed',
    paymentId: claiming.claim.id,
  })
  expect((await findPayment(pool, claiming.claim.id))?.state).toBe('verified')
  expect(await findCheck(pool, asking.id)).toMatchObject({ state: 'passed', paymentId: null })
  expect(await findPayment(pool, asking.claim.id)).toBeNull()
})

test('a payment check names the other payment that has already reserved the authorization', async () => {
  const claim = newClaim(projectId)
  await claimPayments(pool, [claim])
  const check = await newCheck({ claim: newClaim(projectId, { nonce: claim.nonce }) })
  await passCheck(pool, check)
  expect(await findCheck(pool, check.id)).toMatchObject({ state: 'passed', paymentId: claim.id })
})

test('a payment check that has ended is never changed again', async () => {
  const [refused, passed] = [await newCheck(), await newCheck()]
  await refuse(refused)
  await passCheck(pool, refused)
  await passCheck(pool, passed)
  await refuse(passed)
  expect((await findCheck(pool, refused.id))?.state).toBe('refused')
  expect(await findPayment(pool, refused.claim.id)).toBeNull()
  expect(await findCheck(pool, passed.id)).toMatchObject({ state: 'passed', reason: null })
})

test('if one process records a refusal and another records a pass, the payment check reserves no authorization', async () => {
  const check = await newCheck()
  const refused = `update payment_checks set state = 'refused', reason = 'x' where id = $1`
  await whileHeld(pool, refused, [check.id], () => [passCheck(pool, check)])
  expect((await findCheck(pool, check.id))?.state).toBe('refused')
  expect(await findPayment(pool, check.claim.id)).toBeNull()
})

test('a payment check is kept for an hour', async () => {
  const [old, recent] = [await newCheck(), await newCheck()]
  await pool.query(
    `update payment_checks set created_at = created_at - interval '61 minutes' where id = $1`,
    [old.id],
  )
  await deleteStaleChecks(pool)
  expect(await findCheck(pool, old.id)).toBeNull()
  expect(await findCheck(pool, recent.id)).not.toBeNull()
})
