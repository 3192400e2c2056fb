/**
 * Tests two runs of one purchase that overlap. If one run has signed the payment, the other run cannot end the purchase
 * as unpaid.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Keyring } from '../../../../shared/vault/envelope.ts'
import {
  endPurchase,
  type PurchaseEnd,
  startSend,
} from '../../../../sql/purse/purchases/purchaseSteps.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { newKeyring, newPurse, OTHER_PAYEE } from '../../../support/purse/purseRows.ts'
import { row, whileHeld } from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
let keyring: Keyring
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  keyring = await newKeyring(pool)
})
afterAll(() => database[Symbol.asyncDispose]())

const PRICE = 10_000n

/** Makes a purchase whose seller has stated the price, and signs its payment if `isSigned` is true. */
async function purchase({ isSigned }: { isSigned: boolean }) {
  const purse = await newPurse(pool, keyring)
  const [wanted, other] = [await purse.wanted(PRICE), await purse.wanted(90_000n, OTHER_PAYEE)]
  if (isSigned) expect(await purse.reserve([wanted])).toEqual(['signed'])
  const { id } = wanted
  const end = (from: 'unsigned' | 'signed', how: PurchaseEnd) =>
    endPurchase(pool, { id, projectId: purse.projectId, keyring, from, end: how })
  return { id, end, otherOffer: other.offer, read: () => row(pool, 'purchases', id) }
}

test.each<[name: string, end: PurchaseEnd, withOffer: boolean]>([
  ['a refusal', { state: 'refused', reason: 'no_chain' }, false],
  ['a refusal with other terms', { state: 'refused', reason: 'terms_changed' }, true],
  ['an unpaid answer', { state: 'answered' }, false],
  ['an interruption', { state: 'unknown', reason: 'cut_off' }, false],
])(
  '%s that a run decided before the signature changes nothing about a signed purchase',
  async (_, how, withOffer) => {
    const { end, otherOffer, read } = await purchase({ isSigned: true })
    const before = await read()
    await end('unsigned', withOffer ? { ...how, offer: otherOffer } : how)
    expect(await read()).toEqual(before)
    expect(before).toMatchObject({ state: 'signed', amount_atomic: String(PRICE) })
    await end('signed', { state: 'unknown', reason: 'no_answer' })
    expect(await read()).toMatchObject({ state: 'unknown', reason: 'no_answer', money: 'open' })
  },
)

test('a job run that assumes that the payment is signed cannot end a purchase whose payment is not signed', async () => {
  const { end, read } = await purchase({ isSigned: false })
  const before = await read()
  await end('signed', { state: 'unknown', reason: 'expired' })
  expect(await read()).toEqual(before)
  await end('unsigned', { state: 'refused', reason: 'no_chain' })
  expect(await read()).toMatchObject({ state: 'refused', reason: 'no_chain', money: null })
})

test('if the seller has collected a stopped payment, the service sends the request again, even if it records the collection at the same moment', async () => {
  const { id } = await purchase({ isSigned: true })
  await pool.query(`update purchases set cancel_signature = '0x1' where id = $1`, [id])
  expect(await startSend(pool, id, keyring)).toBe('stopped')
  const [started] = await whileHeld(
    pool,
    `update purchases set money = 'spent' where id = $1`,
    [id],
    () => [startSend(pool, id, keyring)],
  )
  expect(started).toMatchObject({ sends: 2 })
})

test('a payment is not sent again after its reserved amount is available again', async () => {
  const { id } = await purchase({ isSigned: true })
  await pool.query(`update purchases set money = 'released' where id = $1`, [id])
  expect(await startSend(pool, id, keyring)).toBeNull()
})

test('the service records a webhook event about a refused purchase only if the purchase ended as refused', async () => {
  const events = async (id: string) => {
    const { rows } = await pool.query(
      `select data ->> 'reason' as reason from events where type = 'purse.refused' and data ->> 'purchaseId' = $1`,
      [id],
    )
    return rows
  }
  const refused = await purchase({ isSigned: false })
  await refused.end('unsigned', { state: 'refused', reason: 'no_chain' })
  expect(await events(refused.id)).toEqual([{ reason: 'no_chain' }])
  const failed = await purchase({ isSigned: false })
  await failed.end('unsigned', { state: 'failed', reason: 'no_answer', offer: failed.otherOffer })
  expect(await events(failed.id)).toEqual([])
})
