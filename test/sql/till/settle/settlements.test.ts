import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { BOOK_DELAY_S } from '../../../../sql/till/payments/books.ts'
import { findPayment } from '../../../../sql/till/payments/payments.ts'
import { storeForNonce, syncWallet } from '../../../../sql/till/settle/gasWallets.ts'
import { postponePayments } from '../../../../sql/till/settle/settlementQueue.ts'
import { failPayment, recordSettlements } from '../../../../sql/till/settle/settlements.ts'
import { recordReorganised } from '../../../../sql/till/watch/finality.ts'
import { recordMisses } from '../../../../sql/till/watch/misses.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { registerEndpoint } from '../../../support/till/till.ts'
import {
  BLOCK,
  crossing,
  dropJobs,
  newHash,
  newPayment,
  newProject,
  newSettled,
  newTransaction,
  OTHER_CHAIN_ID,
  queuedPayments,
  row,
  settle,
  signedFor,
  WALLET,
  whileHeld,
} from '../../../support/till/tillRows.ts'

const RESOURCE = 'https://api.example.com/report'
const MATCH_KEY = 'api.example.com/report'
let database: TestDatabase
let pool: TestDatabase['pool']

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
beforeEach(() => dropJobs(pool))
afterAll(() => database[Symbol.asyncDispose]())

const eventsOf = async (id: string): Promise<string[]> => {
  const { rows } = await pool.query(
    `select type from events where data->>'paymentId' = $1 order by seq`,
    [id],
  )
  return rows.map(({ type }) => type)
}
const deliveriesOf = async (id: string): Promise<number> =>
  (await pool.query('select from webhook_deliveries where subject_id = $1', [id])).rowCount ?? 0
const fail = (paymentId: string) =>
  failPayment(pool, { paymentId, stage: 'settle', reason: 'insufficient_funds', detail: null })
const stateOf = async (hash: string) => (await row(pool, 'chain_transactions', hash)).state
const minedOf = (hash: `0x${string}`) => ({
  hash,
  succeeded: true,
  gasUsed: 86_000n,
  feeWei: null,
  ...BLOCK,
})

/** Makes a payment for a resource whose endpoint has the given webhook URL. */
async function forEndpoint(webhookUrl: string | null): Promise<string> {
  const projectId = await newProject(pool)
  await registerEndpoint(pool, { projectId, resource: RESOURCE, webhookUrl })
  return newPayment(pool, { projectId, matchKey: MATCH_KEY, resourceUrl: RESOURCE })
}

describe('the settlement of a payment is recorded once, with one event', () => {
  test('if two processes record the same settlement, only one event is sent', async () => {
    const id = await forEndpoint('http://127.0.0.1:9/hook')
    const { hash } = await newTransaction(pool, id)
    await settle(pool, id, hash, { receiptText: '{"first":true}' })
    await settle(pool, id, hash, { receiptText: '{"first":false}' })
    expect((await findPayment(pool, id))?.signedReceipt).toBe('{"first":true}')
    expect([await eventsOf(id), await deliveriesOf(id)]).toEqual([['payment.settled'], 1])
  })

  test('a process waits while another process records the same settlement, and then changes nothing', async () => {
    const id = await forEndpoint('http://127.0.0.1:9/hook')
    const { hash } = await newTransaction(pool, id)
    const settled = `update payments set state = 'settled', tx_hash = $2, signed_receipt = '{}', settled_at = now()
                     where id = $1`
    await whileHeld(pool, settled, [id, hash], () => [settle(pool, id, hash)])
    expect((await findPayment(pool, id))?.signedReceipt).toBe('{}')
    expect([await eventsOf(id), await deliveriesOf(id)]).toEqual([[], 0])
  })

  test('a settlement queues no webhook delivery if the payment has no endpoint or if the endpoint has no webhook', async () => {
    for (const id of [await forEndpoint(null), await newPayment(pool)]) {
      await settle(pool, id, newHash())
      expect((await findPayment(pool, id))?.state).toBe('settled')
      expect([await eventsOf(id), await deliveriesOf(id)]).toEqual([['payment.settled'], 0])
    }
  })

  test('if the same transaction settles a payment again after a reorganisation, the payment keeps its receipt, gets a new time, and no second event is sent', async () => {
    const id = await forEndpoint('http://127.0.0.1:9/hook')
    const { hash } = await newTransaction(pool, id)
    await settle(pool, id, hash, { receiptText: '{"n":1}' })
    const before = (await findPayment(pool, id))!
    await recordReorganised(pool, [{ paymentId: id, txHash: hash, ...BLOCK }])
    const settledAt = new Date(before.settledAt!.getTime() + 5_000)
    await settle(pool, id, hash, { receiptText: '{"n":2}', settledAt })
    const payment = (await findPayment(pool, id))!
    expect(payment).toMatchObject({ state: 'settled', signedReceipt: '{"n":1}', settledAt })
    expect([await eventsOf(id), await deliveriesOf(id)]).toEqual([['payment.settled'], 1])
  })

  test('if another transaction settles a payment after a reorganisation, the payment gets a new signed receipt', async () => {
    const { id, txHash } = await newSettled(pool)
    await recordReorganised(pool, [{ paymentId: id, txHash, ...BLOCK }])
    const other = newHash()
    await settle(pool, id, other, { receiptText: '{"n":2}' })
    expect(await findPayment(pool, id)).toMatchObject({ txHash: other, signedReceipt: '{"n":2}' })
    expect(await eventsOf(id)).toEqual(['payment.settled'])
  })

  test('if the service records a settlement late, the settlement has the time of the record', async () => {
    const id = await newPayment(pool)
    const beforeMs = Date.now()
    await settle(pool, id, newHash(), { settledAt: new Date(1_000) })
    const { settledAt } = (await findPayment(pool, id))!
    expect(settledAt!.getTime()).toBeGreaterThan(beforeMs - BOOK_DELAY_S * 1_000 - 1_000)
  })

  test('a payment with an open transaction does not fail, unless the transaction can no longer transfer the money', async () => {
    const id = await newPayment(pool)
    await newTransaction(pool, id)
    await fail(id)
    expect(await findPayment(pool, id)).toMatchObject({ state: 'verified', failureReason: null })
    expect(await eventsOf(id)).toEqual([])
    await failPayment(pool, {
      ...{ paymentId: id, stage: 'settle', reason: 'insufficient_funds', detail: null },
      cannotPay: true,
    })
    expect((await findPayment(pool, id))?.state).toBe('failed')
    expect(await eventsOf(id)).toEqual(['payment.failed'])
  })

  test('a recorded settlement does not change a payment that has already failed', async () => {
    const id = await newPayment(pool)
    await fail(id)
    await settle(pool, id, newHash())
    expect((await findPayment(pool, id))?.state).toBe('failed')
    expect(await eventsOf(id)).toEqual(['payment.failed'])
  })

  test('two processes can record the settlements of the same payments in opposite orders without a deadlock', async () => {
    const ids: string[] = []
    for (let n = 0; n < 4; n++) ids.push(await newPayment(pool))
    const record = (list: string[]) =>
      recordSettlements(pool, {
        settlements: list.map((paymentId) => ({
          paymentId,
          txHash: newHash(),
          logIndex: 1,
          receiptText: '{}',
          settledAt: new Date(),
          ...BLOCK,
        })),
        mined: [],
      })
    const hold = 'select from payments where id = any ($1) for update'
    await whileHeld(pool, hold, [ids.slice(0, 2)], () => crossing(ids).map(record))
    for (const id of ids) expect(await eventsOf(id)).toEqual(['payment.settled'])
  })
})

describe('the failure of a payment is recorded only while the payment is not settled', () => {
  test('a failure of a settled payment is not recorded, and no event announces the failure', async () => {
    const { id } = await newSettled(pool)
    await fail(id)
    expect(await findPayment(pool, id)).toMatchObject({ state: 'settled', failureReason: null })
    expect(await eventsOf(id)).toEqual(['payment.settled'])
  })

  test('a process that records a failure waits for a concurrent settlement of the payment, and then changes nothing', async () => {
    const id = await newPayment(pool)
    const settled = `update payments set state = 'settled', tx_hash = '0x', signed_receipt = '{}' where id = $1`
    await whileHeld(pool, settled, [id], () => [fail(id)])
    expect((await findPayment(pool, id))?.state).toBe('settled')
    expect(await eventsOf(id)).toEqual([])
  })
})

describe('if a block contains a transaction, the other transactions with the same nonce become void', () => {
  test('if a block contains a transaction, only the other transactions of the same wallet with the same nonce become void', async () => {
    const [paid, other, elsewhere] = [
      await newPayment(pool),
      await newPayment(pool),
      await newPayment(pool),
    ]
    const first = await newTransaction(pool, paid)
    const rival = { ...signedFor(paid, first.nonce), maxFeeWei: 200n }
    expect(await storeForNonce(pool, WALLET, rival, first.hash)).toBe(true)
    const next = await newTransaction(pool, other)
    const foreign = { chainId: OTHER_CHAIN_ID, address: WALLET.address }
    await syncWallet(pool, foreign, first.nonce)
    const sameNonce = [await newTransaction(pool, elsewhere, foreign)]
    const wallet = { ...WALLET, address: '0x00000000000000000000000000000000000000aa' } as const
    await syncWallet(pool, wallet, first.nonce)
    sameNonce.push(await newTransaction(pool, await newPayment(pool), wallet))
    await settle(pool, paid, rival.hash)
    expect(sameNonce.map(({ nonce }) => nonce)).toEqual([first.nonce, first.nonce])
    expect([await stateOf(first.hash), await stateOf(rival.hash)]).toEqual(['void', 'mined'])
    for (const { hash } of [next, ...sameNonce]) expect(await stateOf(hash)).toBe('open')
  })

  test('a competing transaction does not make a mined transaction void, because only the check for reorganisations decides whether a block is gone', async () => {
    const id = await newPayment(pool)
    const first = await newTransaction(pool, id)
    const rival = { ...signedFor(id, first.nonce), maxFeeWei: 200n }
    await storeForNonce(pool, WALLET, rival, first.hash)
    await recordSettlements(pool, { settlements: [], mined: [minedOf(first.hash)] })
    expect([await stateOf(first.hash), await stateOf(rival.hash)]).toEqual(['mined', 'void'])
    await recordSettlements(pool, { settlements: [], mined: [minedOf(rival.hash)] })
    expect([await stateOf(first.hash), await stateOf(rival.hash)]).toEqual(['mined', 'mined'])
  })

  test('two processes can record the same mined transactions in opposite orders without a deadlock', async () => {
    const mined: ReturnType<typeof minedOf>[] = []
    for (let n = 0; n < 4; n++) {
      mined.push(minedOf((await newTransaction(pool, await newPayment(pool))).hash))
    }
    const hold = 'select from chain_transactions where hash = any ($1) for update'
    await whileHeld(pool, hold, [mined.slice(0, 2).map(({ hash }) => hash)], () =>
      crossing(mined).map((list) => recordSettlements(pool, { settlements: [], mined: list })),
    )
    for (const { hash } of mined) expect(await stateOf(hash)).toBe('mined')
  })
})

describe('if a transaction is lost (reverted or displaced), its payment is queued for settlement again', () => {
  const countOf = async (id: string) => (await findPayment(pool, id))?.revertCount

  test('a recorded loss of a transaction (reverted or displaced) makes the transaction void, counts once, and queues the payment again', async () => {
    const id = await newPayment(pool)
    const { hash } = await newTransaction(pool, id)
    await recordMisses(pool, { reverted: [], displaced: [hash] })
    expect([await stateOf(hash), await countOf(id)]).toEqual(['void', 1])
    expect(await queuedPayments(pool)).toEqual([id])
    await dropJobs(pool)
    await recordMisses(pool, { reverted: [], displaced: [hash] })
    expect([await countOf(id), await queuedPayments(pool)]).toEqual([1, []])
  })

  test('the loss of a transaction (reverted or displaced) counts once if two processes record the loss at the same time', async () => {
    const id = await newPayment(pool)
    const { hash } = await newTransaction(pool, id)
    const reverted = [{ ...minedOf(hash), succeeded: false }]
    const hold = 'select from chain_transactions where hash = $1 for update'
    await whileHeld(pool, hold, [hash], () =>
      [1, 2].map(() => recordMisses(pool, { reverted, displaced: [] })),
    )
    expect([await stateOf(hash), await countOf(id)]).toEqual(['mined', 1])
  })

  test('the loss of a transaction that only fills a nonce changes no payment', async () => {
    const id = await newPayment(pool)
    const { nonce, hash } = await newTransaction(pool, id)
    const filler = { ...signedFor(null, nonce), maxFeeWei: 200n }
    await storeForNonce(pool, WALLET, filler, hash)
    await recordMisses(pool, { reverted: [], displaced: [filler.hash] })
    expect(await stateOf(filler.hash)).toBe('void')
    expect([await countOf(id), await queuedPayments(pool)]).toEqual([0, []])
  })

  test('the loss of a transaction (reverted or displaced) is not recorded for a mined transaction or a settled payment', async () => {
    const { id, txHash } = await newSettled(pool)
    await recordMisses(pool, { reverted: [], displaced: [txHash] })
    expect(await stateOf(txHash)).toBe('mined')
    const paidByAnother = await newPayment(pool)
    const { hash } = await newTransaction(pool, paidByAnother)
    await settle(pool, paidByAnother, newHash())
    await recordMisses(pool, { reverted: [], displaced: [hash] })
    expect([await countOf(id), await countOf(paidByAnother)]).toEqual([0, 0])
  })
})

describe('a payment is postponed only while it is verified and not yet settled', () => {
  const postpone = (ids: string[]) =>
    postponePayments(
      pool,
      ids.map((paymentId) => ({
        ...{ paymentId, trouble: 'no answer', isContradicted: false, runAt: new Date() },
      })),
    )

  test('the postponement of payments changes only verified payments that are not yet settled', async () => {
    const { id } = await newSettled(pool)
    const waiting = await newPayment(pool)
    await postpone([id, waiting])
    expect(await queuedPayments(pool)).toEqual([waiting])
    expect((await findPayment(pool, id))?.troubleCount).toBe(0)
    expect((await findPayment(pool, waiting))?.troubleCount).toBe(1)
  })

  test('two processes can record the postponement of the same payments in opposite orders without a deadlock', async () => {
    const ids: string[] = []
    for (let n = 0; n < 4; n++) ids.push(await newPayment(pool))
    const hold = 'select from payments where id = any ($1) for update'
    await whileHeld(pool, hold, [ids.slice(0, 2)], () => crossing(ids).map(postpone))
    for (const id of ids) expect((await findPayment(pool, id))?.troubleCount).toBeGreaterThan(0)
  })
})
