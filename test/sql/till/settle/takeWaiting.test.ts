/**
 * Tests which waiting payments one settler (a worker that settles payments) claims, and which payments get separate
 * transactions.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import type { Address } from 'viem'
import type { NewClaim } from '../../../../sql/till/settle/claims.ts'
import { recordSends } from '../../../../sql/till/settle/gasWallets.ts'
import {
  deleteEndedLonePayers,
  findUntaken,
  keepAlone,
  queueSettlement,
  sendAlone,
  takeWaiting,
  type WaitingCursor,
} from '../../../../sql/till/settle/settlementQueue.ts'
import { failPayment } from '../../../../sql/till/settle/settlements.ts'
import { recordMisses } from '../../../../sql/till/watch/misses.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import {
  crossing,
  dropJobs,
  newHash,
  newPayment,
  newProject,
  newTransaction,
  queuedPayments,
  row,
  settle,
  WALLET,
  whileHeld,
} from '../../../support/till/tillRows.ts'

const PAYER: Address = '0x00000000000000000000000000000000000000Aa'
let database: TestDatabase
let pool: TestDatabase['pool']
/** Holds the id of a chain on which only the payments of one test wait. */
let chainId = 1_000

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
beforeEach(() => {
  chainId++
})
afterAll(() => database[Symbol.asyncDispose]())

const waiting = (changes: Partial<NewClaim> = {}) => newPayment(pool, { chainId, ...changes })
const set = (id: string, columns: string) =>
  pool.query(`update payments set ${columns} where id = $1`, [id])
const open = (id: string) => newTransaction(pool, id, { ...WALLET, chainId })
const fail = (paymentId: string) =>
  failPayment(pool, { paymentId, stage: 'verify', reason: 'insufficient_funds', detail: null })

const ROOM = { most: 100, share: 100 }
const jobAt = async (id: string): Promise<Date> => {
  const { rows } = await pool.query('select run_at from graphile_worker.jobs where key = $1', [
    `settle_payment:${id}`,
  ])
  return rows[0].run_at
}

type Given = { own?: string[]; grouped?: typeof ROOM; alone?: typeof ROOM }
async function take({ own = [], grouped = ROOM, alone = ROOM }: Given = {}) {
  const { next, ...taken } = await takeWaiting(pool, { chainId, own, room: { grouped, alone } })
  expect(next).toBeNull()
  for (const part of [taken.grouped, taken.alone]) part.taken.sort()
  return taken
}
const NOTHING = { taken: [], more: 0 }

describe('a settler (a worker that settles payments) claims each waiting payment once', () => {
  test('a waiting payment is claimed for settlement once, and until its retry time only the settlement job of this payment claims it again', async () => {
    const id = await waiting()
    expect(await take()).toEqual({ grouped: { taken: [id], more: 0 }, alone: NOTHING })
    expect(await take()).toEqual({ grouped: NOTHING, alone: NOTHING })
    expect((await take({ own: [id] })).grouped.taken).toEqual([id])
    await set(id, `settle_after = clock_timestamp() - interval '1 second'`)
    expect((await take()).grouped.taken).toEqual([id])
  })

  test('two settlement processes that claim waiting payments at the same time claim different payments, so no payment is handled twice', async () => {
    const ids = [await waiting(), await waiting()]
    const client = await pool.connect()
    try {
      await client.query('begin')
      const room = { grouped: { most: 1, share: 1 }, alone: ROOM }
      const first = await takeWaiting(client, { chainId, own: [], room })
      expect(first.grouped).toEqual({ taken: [ids[0]!], more: 1 })
      expect((await take()).grouped).toEqual({ taken: [ids[1]!], more: 1 })
    } finally {
      await client.query('commit')
      client.release()
    }
  })

  test.each<[name: string, change: (id: string) => Promise<unknown>]>([
    ['is settled', (id) => settle(pool, id, newHash())],
    ['has failed', fail],
    ['is postponed', (id) => set(id, `settle_after = clock_timestamp() + interval '1 hour'`)],
    ['has an open transaction', open],
    ['is on another chain', (id) => set(id, 'chain_id = 7')],
  ])('a payment that %s is not taken and does not count as waiting', async (_, change) => {
    const [id, other] = [await waiting(), await waiting()]
    await change(id)
    expect((await take()).grouped).toEqual({ taken: [other], more: 0 })
  })

  test('a settlement process claims a payment again whose transaction was displaced by another transaction', async () => {
    const id = await waiting()
    const { hash } = await open(id)
    await recordMisses(pool, { reverted: [], displaced: [hash] })
    await set(id, 'revert_count = 0')
    expect((await take()).grouped.taken).toEqual([id])
  })

  test('waiting payments of several projects are claimed in rotation, and each project gets at most its part of a payment group (one shared transaction)', async () => {
    const [greedy, other] = [await newProject(pool), await newProject(pool)]
    const many: string[] = []
    for (let n = 0; n < 4; n++) many.push(await waiting({ projectId: greedy }))
    const few = [await waiting({ projectId: other }), await waiting({ projectId: other })]
    const wide = await take({ grouped: { most: 3, share: 3 } })
    expect(wide.grouped).toEqual({ taken: [many[0]!, many[1]!, few[0]!].sort(), more: 3 })
    await pool.query('update payments set settle_after = null where chain_id = $1', [chainId])
    const narrow = await take({ grouped: { most: 5, share: 2 } })
    expect(narrow.grouped).toEqual({ taken: [...many.slice(0, 2), ...few].sort(), more: 2 })
    const last = await take({ grouped: { most: 1, share: 0 } })
    expect(last.grouped).toEqual({ taken: [many[2]!], more: 1 })
    expect((await take({ grouped: { most: 0, share: 0 } })).grouped).toEqual({ taken: [], more: 1 })
  })

  test('a settler (a worker that settles payments) has one limit for payments with separate transactions, and another limit for payments in a group', async () => {
    const [one, two] = [await newProject(pool), await newProject(pool)]
    const alone: string[] = []
    for (const projectId of [one, one, one, two]) alone.push(await waiting({ projectId }))
    for (const id of alone) await set(id, 'goes_alone = true')
    const grouped = [await waiting({ projectId: one }), await waiting({ projectId: one })]
    const none = { most: 0, share: 0 }
    expect(await take({ grouped: none, alone: none })).toEqual({
      grouped: { taken: [], more: 2 },
      alone: { taken: [], more: 4 },
    })
    expect(await take({ grouped: { most: 2, share: 1 }, alone: { most: 4, share: 2 } })).toEqual({
      grouped: { taken: grouped, more: 0 },
      alone: { taken: [alone[0]!, alone[1]!, alone[3]!], more: 1 },
    })
  })
})

describe('if more payments wait than one query reads, a settler reads them with several queries', () => {
  const room = { grouped: { most: 1, share: 1 }, alone: { most: 0, share: 0 } }
  const look = (after: WaitingCursor | null = null) =>
    takeWaiting(pool, { chainId, own: [], room, after, windowMax: 2 })

  test('if one project’s payments fill the result of the first query, the next query reads the payments after them', async () => {
    const alone = [await waiting(), await waiting()]
    for (const id of alone) await set(id, 'goes_alone = true')
    const late = await waiting({ projectId: await newProject(pool) })
    const first = await look()
    expect(first).toMatchObject({ grouped: NOTHING, alone: { taken: [], more: 2 } })
    expect(first.next).toMatchObject({ id: alone[1]! })
    const second = await look(first.next)
    expect(second).toMatchObject({ grouped: { taken: [late], more: 0 }, next: null })
  })

  test('if several payments were stored in the same millisecond, the settlement process reads each of them once', async () => {
    const ids = [await waiting(), await waiting(), await waiting()].toSorted()
    await pool.query(`update payments set created_at = '2026-01-01' where chain_id = $1`, [chainId])
    const first = await look()
    expect(first).toMatchObject({ grouped: { taken: [ids[0]!], more: 1 } })
    expect(first.next?.id).toBe(ids[1]!)
    const second = await look(first.next)
    expect(second).toMatchObject({ grouped: { taken: [ids[2]!], more: 0 }, next: null })
  })
})

describe('the payments of a payer in the table lone_payers get separate transactions for a day', () => {
  const lone = (id: string, chain: number, until: string) =>
    pool.query(
      `insert into lone_payers (chain_id, payer, until)
       select $2, lower(payer), clock_timestamp() + interval '${until}' from payments where id = $1`,
      [id, chain],
    )
  test.each<[name: string, alone: boolean, change: (id: string) => Promise<unknown>]>([
    ['that nothing speaks against a group', false, async () => {}],
    ['that is marked to go alone', true, (id) => set(id, 'goes_alone = true')],
    ['that has reverted', true, (id) => set(id, 'revert_count = 1')],
    [
      'whose wallet must be deployed',
      true,
      (id) => set(id, `factory = '0x1', factory_data = '0x'`),
    ],
    ['with a longer signature', true, (id) => set(id, `signature = signature || '11'`)],
    ['whose payer is kept alone', true, (id) => lone(id, chainId, '1 hour')],
    ['whose payer was kept alone before', false, (id) => lone(id, chainId, '-1 hour')],
    ['whose payer is kept alone on another chain', false, (id) => lone(id, 7, '1 hour')],
  ])('a payment %s gets a separate transaction: %p', async (_, alone, change) => {
    const id = await waiting({ payer: PAYER })
    await change(id)
    const [untaken] = await findUntaken(pool, [id], { chainId, headTime: 0n })
    expect(untaken).toEqual({ id, state: 'waiting', goesAlone: alone, settleAfter: null })
    const taken = await take()
    expect([taken.grouped.taken, taken.alone.taken]).toEqual(alone ? [[], [id]] : [[id], []])
    await pool.query('delete from lone_payers')
  })

  test('a payer stays marked for separate transactions for a day, and a repeated mark starts the day again', async () => {
    const until = async () => {
      const { rows } = await pool.query(
        `select payer, extract(epoch from until - clock_timestamp()) / 3600 as hours
         from lone_payers where chain_id = $1`,
        [chainId],
      )
      return rows.map(({ payer, hours }) => [payer, Math.round(hours)])
    }
    await keepAlone(pool, [])
    // A payer may have several payments in one group. The function must mark the payer only once, because PostgreSQL
    // refuses an upsert that changes one row twice.
    const payments = Array.from({ length: 20 }, () => ({ chainId, payer: PAYER }))
    await keepAlone(pool, [...payments, { chainId, payer: PAYER.toLowerCase() }])
    expect(await until()).toEqual([[PAYER.toLowerCase(), 24]])
    await pool.query(`update lone_payers set until = until - interval '23 hours'`)
    await deleteEndedLonePayers(pool)
    expect(await until()).toEqual([[PAYER.toLowerCase(), 1]])
    await keepAlone(pool, [{ chainId, payer: PAYER }])
    expect(await until()).toEqual([[PAYER.toLowerCase(), 24]])
    await pool.query(`update lone_payers set until = until - interval '25 hours'`)
    await deleteEndedLonePayers(pool)
    expect(await until()).toEqual([])
  })

  test('two processes that mark the same payments for separate transactions in opposite orders do not block each other', async () => {
    const ids: string[] = []
    for (let n = 0; n < 4; n++) ids.push(await waiting())
    const hold = 'select from payments where id = any ($1) for update'
    await whileHeld(pool, hold, [ids.slice(0, 2)], () =>
      crossing(ids).map((list) => sendAlone(pool, list)),
    )
    expect((await take()).alone.taken).toEqual(ids)
  })

  test('only a verified payment is marked for a separate transaction, and the marked payment gets a settlement job at once', async () => {
    const [id, settled] = [await waiting(), await waiting()]
    await settle(pool, settled, newHash())
    await set(id, `settle_after = clock_timestamp() + interval '1 hour'`)
    await dropJobs(pool)
    await sendAlone(pool, [])
    await sendAlone(pool, [id, settled])
    expect(await queuedPayments(pool)).toEqual([id])
    const marks = [await row(pool, 'payments', id), await row(pool, 'payments', settled)]
    expect(marks.map((one) => one.goes_alone)).toEqual([true, false])
    expect((await take()).alone.taken).toEqual([id])
  })
})

describe('a settler (a worker that settles payments) reports the state of payments that it did not claim', () => {
  const HEAD_TIME = 1_000n
  const untaken = async (...ids: string[]) =>
    (await findUntaken(pool, ids, { chainId, headTime: HEAD_TIME })).map(({ id, state }) => [
      id,
      state,
    ])

  test('the reported state of a payment that was not claimed for settlement follows from the state of its transaction', async () => {
    const sent = await waiting()
    await recordSends(pool, [{ hash: (await open(sent)).hash, error: null }], 1n)
    expect(await untaken(sent)).toEqual([[sent, 'sent']])
    const refused = await waiting()
    await recordSends(pool, [{ hash: (await open(refused)).hash, error: 'no gas' }], 1n)
    expect(await untaken(refused)).toEqual([[refused, 'open']])
    const unsent = await waiting()
    const { hash } = await open(unsent)
    expect(await untaken(unsent)).toEqual([[unsent, 'open']])
    await recordMisses(pool, { reverted: [], displaced: [hash] })
    expect(await untaken(unsent)).toEqual([[unsent, 'waiting']])
    for (const [validBefore, state] of [
      [HEAD_TIME - 31n, 'open'],
      [HEAD_TIME - 30n, 'sent'],
    ] as const) {
      await set(sent, `valid_before = ${validBefore}`)
      expect(await untaken(sent)).toEqual([[sent, state]])
    }
  })

  test('the list of payments that were not claimed for settlement leaves out ended payments, unknown payments and payments on another chain', async () => {
    const [settled, failed, elsewhere] = [await waiting(), await waiting(), await waiting()]
    await settle(pool, settled, newHash())
    await fail(failed)
    await set(elsewhere, 'chain_id = 7')
    expect(await untaken(settled, failed, elsewhere, 'pay_unknown')).toEqual([])
    expect(await untaken()).toEqual([])
  })

  test('a postponed payment shows the time from which a settlement process may claim the payment', async () => {
    const id = await waiting()
    const at = new Date(Date.now() + 60_000)
    await pool.query('update payments set settle_after = $2 where id = $1', [id, at])
    const [later] = await findUntaken(pool, [id], { chainId, headTime: 0n })
    expect(later?.settleAfter).toEqual(at)
    await dropJobs(pool)
    await queueSettlement(pool, id, at)
    expect(await jobAt(id)).toEqual(at)
    expect((await row(pool, 'payments', id)).settle_after).toEqual(at)
    await queueSettlement(pool, id, null)
    const [now] = await findUntaken(pool, [id], { chainId, headTime: 0n })
    expect(now?.settleAfter).toBeNull()
    expect((await jobAt(id)).getTime()).toBeLessThan(at.getTime() - 50_000)
    expect(await queuedPayments(pool)).toEqual([id])
  })
})
