/**
 * Tests the data that the service reads about the earlier payments of a project: hosts, payees and base prices (the
 * measure for price rises).
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Keyring } from '../../../../shared/vault/envelope.ts'
import { type PaidPlace, readPaidBefore } from '../../../../sql/purse/purchases/paidBefore.ts'
import { recordReleased } from '../../../../sql/purse/watch.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { newKeyring, newPurse, OTHER_PAYEE } from '../../../support/purse/purseRows.ts'

const PAYEE = `0x${'11'.repeat(20)}`
const DAY_MS = 24 * 3_600_000
const PLACE: PaidPlace = {
  row: 1_000n,
  host: 'seller.test',
  path: '/weather',
  tool: null,
  payTo: PAYEE,
}

let database: TestDatabase
let pool: TestDatabase['pool']
let keyring: Keyring
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  keyring = await newKeyring(pool)
})
afterAll(() => database[Symbol.asyncDispose]())

/** Makes a project that has signed payments of the given prices, and reads the project's earlier payments. */
async function paidBefore(prices: bigint[], places: PaidPlace[] = [PLACE]) {
  const purse = await newPurse(pool, keyring)
  for (const price of prices) await purse.reserve([await purse.wanted(price)])
  return readPaidBefore(pool, purse.projectId, places)
}

/**
 * Makes the record of earlier payments to one payee (with its host, path and tool), with the given last payment and
 * base price.
 */
async function remembered(lastAtomic: bigint, base: { atomic: bigint; at: Date }) {
  const before = await paidBefore([])
  before.note(PLACE, lastAtomic, base)
  return before
}

describe('a purse (wallet) knows a host or payee only after it has paid there', () => {
  test('before its first payment, a project knows no host and no payee', async () => {
    const before = await paidBefore([])
    expect([before.hostIsKnown(PLACE), before.payeeIsKnown(PLACE)]).toEqual([false, false])
  })

  test('a project knows the hosts and payees that it has paid, and knows a payee only at the host where it paid this payee', async () => {
    const places = [
      PLACE,
      { ...PLACE, payTo: OTHER_PAYEE },
      { ...PLACE, host: 'other.test' },
      { ...PLACE, path: '/tides', tool: 'tides' },
    ]
    const before = await paidBefore([1_000n], places)
    expect(places.map(before.hostIsKnown)).toEqual([true, true, false, true])
    expect(places.map(before.payeeIsKnown)).toEqual([true, false, false, true])
  })

  test('a payment that no seller has collected does not make its host and payee known to the purse (wallet), and does not count for the base price', async () => {
    const purse = await newPurse(pool, keyring)
    const [taken, cancelled] = [await purse.wanted(1_000n), await purse.wanted(2_000n, OTHER_PAYEE)]
    const approved = 'update purchases set approved_hash = $2 where id = $1'
    await pool.query(approved, [cancelled.id, cancelled.termsHash])
    expect(await purse.reserve([taken, cancelled])).toEqual(['signed', 'signed'])
    await recordReleased(pool, cancelled.id)
    const other = { ...PLACE, payTo: OTHER_PAYEE }
    const before = await readPaidBefore(pool, purse.projectId, [PLACE, other])
    expect([PLACE, other].map(before.payeeIsKnown)).toEqual([true, false])
    expect(before.baseOf(PLACE, 2_000n, new Date()).atomic).toBe(1_000n)
    await recordReleased(pool, taken.id)
    const after = await readPaidBefore(pool, purse.projectId, [PLACE])
    expect([after.hostIsKnown(PLACE), after.payeeIsKnown(PLACE)]).toEqual([false, false])
  })

  test('a seller that stated a price but was not paid does not count as a known seller of the purse (wallet)', async () => {
    const purse = await newPurse(pool, keyring)
    await purse.wanted(1_000n)
    const before = await readPaidBefore(pool, purse.projectId, [PLACE])
    expect([before.hostIsKnown(PLACE), before.payeeIsKnown(PLACE)]).toEqual([false, false])
  })

  test('if payments are decided together as a group, the first makes its host and payee known to the later payments of the group', async () => {
    const before = await remembered(1_000n, { atomic: 1_000n, at: new Date() })
    expect([before.hostIsKnown(PLACE), before.payeeIsKnown(PLACE)]).toEqual([true, true])
  })
})

describe('the base price (the measure for price rises) of a path is the lowest price that was paid there in the last 30 days', () => {
  const now = new Date()

  test('the base price (the measure for price rises) of a path at the first payment is the price of this payment', async () => {
    expect((await paidBefore([])).baseOf(PLACE, 700n, now)).toEqual({ atomic: 700n, at: now })
  })

  test('the base price (the measure for price rises) of a path is the lowest price that was paid before', async () => {
    const before = await paidBefore([1_000n, 900n, 1_050n])
    expect(before.baseOf(PLACE, 950n, now).atomic).toBe(900n)
    expect(before.baseOf(PLACE, 901n, now).at).not.toBe(now)
  })

  test('an equal or lower price becomes the new base price (the measure for price rises) of a path', async () => {
    const before = await paidBefore([1_000n])
    expect(before.baseOf(PLACE, 1_000n, now)).toEqual({ atomic: 1_000n, at: now })
    expect(before.baseOf(PLACE, 999n, now)).toEqual({ atomic: 999n, at: now })
  })

  test('a price that was paid for another path, tool or host is not used as the base price (the measure for price rises)', async () => {
    const others = [
      { ...PLACE, path: '/tides' },
      { ...PLACE, tool: 'weather' },
      { ...PLACE, host: 'other.test' },
    ]
    const before = await paidBefore([100n], others)
    for (const place of others) expect(before.baseOf(place, 700n, now).atomic).toBe(700n)
  })

  test('if the lowest price is more than 30 days old, the base price (the measure for price rises) is the last price that was paid', async () => {
    const aged = (ms: number) => ({ atomic: 900n, at: new Date(now.getTime() - ms) })
    const young = await remembered(1_100n, aged(30 * DAY_MS))
    expect(young.baseOf(PLACE, 1_150n, now)).toEqual(aged(30 * DAY_MS))
    const old = await remembered(1_100n, aged(30 * DAY_MS + 1))
    expect(old.baseOf(PLACE, 1_150n, now)).toEqual({ atomic: 1_100n, at: now })
  })

  test('the later of two payments sets the base price (the measure for price rises), even if the service records the later payment first', async () => {
    const before = await remembered(1_000n, { atomic: 1_000n, at: now })
    before.note({ ...PLACE, row: 999n }, 500n, { atomic: 500n, at: now })
    expect(before.baseOf(PLACE, 1_200n, now).atomic).toBe(1_000n)
    before.note({ ...PLACE, row: 1_000n }, 600n, { atomic: 600n, at: now })
    expect(before.baseOf(PLACE, 1_200n, now).atomic).toBe(1_000n)
    before.note({ ...PLACE, row: 1_001n }, 700n, { atomic: 700n, at: now })
    expect(before.baseOf(PLACE, 1_200n, now).atomic).toBe(700n)
  })
})
