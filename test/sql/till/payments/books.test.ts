/** Tests which transfers the account book of a project contains, and in which order. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { type BookCursor, listBookEntries } from '../../../../sql/till/payments/books.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { moveTo, refundedAt, settledAt, spentAt } from '../../../support/till/bookRows.ts'
import { newPayment, newProject, newTransaction, settle } from '../../../support/till/tillRows.ts'

const FROM = new Date('2026-01-05T00:00:00.000Z')
const TO = new Date('2026-01-06T00:00:00.000Z')
const at = (base: Date, ms: number) => new Date(base.getTime() + ms)
/**
 * Lists four times for a period of the account book: a time before the period, the first and the last time in the
 * period, and the time at which the period ends.
 */
const TIMES = [at(FROM, -1), FROM, at(TO, -1), TO] as const

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

type Given = { after?: BookCursor | null; limit?: number; withPurse?: boolean }
const book = async ({ after = null, limit = 100, withPurse = true }: Given = {}) =>
  listBookEntries(pool, { projectId, from: FROM, to: TO, after, limit, withPurse })
const idsOf = async (given: Given = {}) => (await book(given)).map(({ id }) => id)

describe('the account book of a project contains all transfers of the requested period, in pages', () => {
  test('the account book of a period contains each type of transfer from the start of the period until before its end', async () => {
    const kept: string[] = []
    for (const [n, time] of TIMES.entries()) {
      const payment = await settledAt(pool, projectId, time)
      const ids = [
        payment,
        await refundedAt(pool, { paymentId: payment, time }),
        await spentAt(pool, { projectId, kind: 'payment', time }),
        await spentAt(pool, { projectId, kind: 'refund', time }),
        await spentAt(pool, { projectId, kind: 'sweep', time }),
      ]
      if (n === 1 || n === 2) kept.push(...ids)
    }
    expect((await idsOf()).toSorted()).toEqual(kept.toSorted())
    const open = await book({ withPurse: false })
    expect(open.map(({ kind }) => `${kind}`).toSorted()).toEqual([
      ...['payment', 'payment', 'refund', 'refund', 'refund', 'refund'],
    ])
  })

  test('the account book leaves out unsettled payments, and transfers that were not made', async () => {
    await newPayment(pool, { projectId })
    const id = await settledAt(pool, projectId, FROM)
    await refundedAt(pool, { paymentId: id, time: FROM, state: 'claimed' })
    for (const money of ['open', 'released'])
      await spentAt(pool, { projectId, kind: 'refund', time: FROM, money })
    const own = projectId
    projectId = await newProject(pool)
    await settledAt(pool, projectId, FROM)
    projectId = own
    expect(await idsOf()).toEqual([id])
  })

  test('the account book is read in pages, and each page begins after the last entry of the previous page', async () => {
    const ids: string[] = []
    for (let n = 0; n < 3; n++) ids.push(await settledAt(pool, projectId, FROM))
    ids.push(await spentAt(pool, { projectId, kind: 'payment', time: at(FROM, 1) }))
    const read: string[] = []
    let after: BookCursor | null = null
    for (;;) {
      const page = await book({ after, limit: 2 })
      if (page.length === 0) break
      read.push(...page.map(({ id }) => id))
      after = page.at(-1)!
    }
    expect(read).toEqual(ids)
  })

  test('the account book shows for each payment its part of the transaction fee, or no fee if the fee is unknown', async () => {
    const ids = [await newPayment(pool, { projectId }), await newPayment(pool, { projectId })]
    const { hash } = await newTransaction(pool, ids[0]!)
    for (const id of ids) {
      await pool.query(
        'insert into chain_transaction_payments (hash, payment_id) values ($1, $2)',
        [hash, id],
      )
    }
    await pool.query('update chain_transactions set payment_id = null where hash = $1', [hash])
    for (const id of ids) {
      await settle(pool, id, hash)
      await moveTo(pool, id, FROM)
    }
    const single = await settledAt(pool, projectId, FROM)
    const fees = new Map((await book()).map(({ id, feeWei }) => [id, feeWei]))
    expect([fees.get(ids[0]!), fees.get(ids[1]!), fees.get(single)]).toEqual([3n, 4n, null])
    const [first] = await book({ limit: 1 })
    expect(first).toMatchObject({ kind: 'payment', blockNumber: 7n, isFinal: false, isOwn: false })
  })
})
