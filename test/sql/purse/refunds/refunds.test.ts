/** Tests that the refunds of a payment never exceed the payment, and that each idempotency key makes one refund. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { DEVNET_ACCOUNTS } from '../../../../shared/till/devnetAccounts.ts'
import type { Keyring } from '../../../../shared/vault/envelope.ts'
import { deleteProject } from '../../../../sql/account/projects/deleteProject.ts'
import { countPurseGas } from '../../../../sql/purse/purseGas.ts'
import { openPurse } from '../../../../sql/purse/purses.ts'
import { checkAnew, recordHandRefund, usedLogs } from '../../../../sql/purse/refunds/handRefunds.ts'
import {
  claimRefund,
  listRefunds,
  REFUNDS_MAX,
  type Refund,
  refundPayment,
  refundsOfPurchase,
  withdrawRefund,
} from '../../../../sql/purse/refunds/refunds.ts'
import { recordReleased, recordUnspent } from '../../../../sql/purse/watch.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { newKeyring } from '../../../support/purse/purseRows.ts'
import { newHash, newPayment, newProject, newSettled, row } from '../../../support/till/tillRows.ts'

const PAYMENT = 10_000n
const ACTOR = { keyPrefix: 'test', requestId: 'test' }
/** Limits the gas of a purse (wallet) to four signed transfers in a day. */
const DAILY_GAS = 4 * 80_000
const TX = `0x${'AB'.repeat(32)}` as const

let database: TestDatabase
let pool: TestDatabase['pool']
let keyring: Keyring
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  keyring = await newKeyring(pool)
})
afterAll(() => database[Symbol.asyncDispose]())

/** Makes a final payment to an address that the seller controls. */
async function newSale(
  changes: { recipient?: string; projectId?: string; nonce?: `0x${string}` } = {},
) {
  const projectId = changes.projectId ?? (await newProject(pool))
  const { id } = await newSettled(pool, { ...changes, projectId, amountAtomic: PAYMENT } as never)
  await pool.query('update payments set finalized_at = clock_timestamp() where id = $1', [id])
  return { id, projectId }
}

/** Makes a final payment to the purse (the wallet) of the project that sells. */
async function newPurseSale(balance: bigint) {
  const projectId = await newProject(pool)
  await openPurse(pool, keyring, { projectId, ...ACTOR })
  const { rows } = await pool.query(
    'update purses set balance_atomic = $2, balance_block = 1 where project_id = $1 returning address',
    [projectId, String(balance)],
  )
  return { ...(await newSale({ projectId, recipient: rows[0].address })), address: rows[0].address }
}

const refund = (
  paymentId: string,
  amountAtomic: bigint,
  key = randomBytes(8).toString('hex'),
  deniedPayees: readonly string[] = [],
) =>
  refundPayment(pool, keyring, ACTOR, {
    ...{ paymentId, amountAtomic, key, deniedPayees },
    dailyGas: DAILY_GAS,
  })
async function refunded(...given: Parameters<typeof refund>): Promise<Refund> {
  const made = await refund(...given)
  if (made.kind !== 'ok') throw new Error(made.kind)
  return made.refund
}
const kinds = async (paymentId: string, ...amounts: bigint[]) => {
  const found: string[] = []
  for (const amount of amounts) found.push((await refund(paymentId, amount)).kind)
  return found
}

test('if a restored database lacks a refund, a call with the same Idempotency-Key signs the same nonce, which the chain accepts once', async () => {
  const { id } = await newPurseSale(PAYMENT)
  const nonceOf = async (key: string) => {
    const refunded = await refund(id, 1n, key)
    if (refunded.kind !== 'ok') throw new Error(refunded.kind)
    return (await row(pool, 'purchases', refunded.refund.id)).nonce
  }
  const nonce = await nonceOf('refund-1')
  await pool.query('delete from purchases where refund_of = $1', [id])
  expect(await nonceOf('refund-1')).toBe(nonce)
  expect(await nonceOf('refund-2')).not.toBe(nonce)
})

describe('refunds that a seller pays by hand never exceed the payment', () => {
  test('a refund that the seller sends by hand has the amount that the seller names, and goes to the payer', async () => {
    const sale = await newSale()
    const made = await refunded(sale.id, 4_000n, 'first')
    expect(made).toEqual({
      ...{ id: expect.stringMatching(/^rfd_/), state: 'by_hand', amountAtomic: 4_000n },
      payTo: DEVNET_ACCOUNTS.payer.address.toLowerCase(),
      ...{ txHash: null, isFinal: false, reason: null, receipt: null },
    })
    expect(await listRefunds(pool, sale.id)).toEqual([made])
    expect(await row(pool, 'hand_refunds', made.id)).toMatchObject({
      payer: DEVNET_ACCOUNTS.payTo.address.toLowerCase(),
      ...{ project_id: sale.projectId, created_by: 'test', state: 'expected' },
    })
  })

  test('a refund by hand cannot exceed the part that is not refunded yet, and a withdrawn refund no longer counts', async () => {
    const sale = await newSale()
    expect(await kinds(sale.id, PAYMENT + 1n, 6_000n, 4_001n)).toEqual([
      'too_much',
      'ok',
      'too_much',
    ])
    const last = await refunded(sale.id, 4_000n)
    expect(await kinds(sale.id, 1n)).toEqual(['too_much'])
    await withdrawRefund(pool, ACTOR, { paymentId: sale.id, refundId: last.id })
    expect(await kinds(sale.id, 4_001n, 4_000n)).toEqual(['too_much', 'ok'])
  })

  test('a payment has a limited number of refunds, however small they are', async () => {
    const sale = await newSale()
    for (let n = 0; n < REFUNDS_MAX; n++) expect(await kinds(sale.id, 1n)).toEqual(['ok'])
    expect(await kinds(sale.id, 1n)).toEqual(['too_many'])
  })

  test('ten refunds by hand at once never exceed the payment', async () => {
    const sale = await newSale()
    const made = await Promise.all(Array.from({ length: 10 }, () => refund(sale.id, 4_000n)))
    expect(made.filter(({ kind }) => kind === 'ok')).toHaveLength(2)
  })

  test.each([
    ['by hand', () => newProject(pool), undefined],
    ['out of a purse', async () => (await newPurseSale(100_000n)).projectId, 'purse'],
  ])(
    'simultaneous refunds %s of eight payments with one idempotency key make one refund',
    async (_way, makeProject, from) => {
      const projectId = await makeProject()
      const { rows } = await pool.query('select address from purses where project_id = $1', [
        projectId,
      ])
      const recipient = from === undefined ? {} : { recipient: rows[0].address }
      const sales = await Promise.all(
        Array.from({ length: 8 }, () => newSale({ projectId, ...recipient })),
      )
      const made = await Promise.all(sales.map(({ id }) => refund(id, 1_000n, 'shared')))
      expect(made.map(({ kind }) => kind).toSorted()).toEqual([
        'ok',
        ...Array(7).fill('other_request'),
      ])
    },
  )

  test('a refund by hand needs a final payment, and a project that is not deleted', async () => {
    const projectId = await newProject(pool)
    const waiting = await newPayment(pool, { projectId })
    const young = await newSettled(pool, { projectId })
    expect(await kinds(waiting, 1n)).toEqual(['not_final'])
    expect(await kinds(young.id, 1n)).toEqual(['not_final'])
    expect(await kinds('pay_none', 1n)).toEqual(['not_found'])
    const sale = await newSale()
    await deleteProject(pool, sale.projectId, null)
    expect(await kinds(sale.id, 1n)).toEqual(['not_found'])
  })

  test('one idempotency key leads to only one refund by hand, and a different request with this key is refused', async () => {
    const sale = await newSale()
    const made = await refunded(sale.id, 1_000n, 'key')
    expect(await refunded(sale.id, 1_000n, 'key')).toEqual(made)
    expect((await refund(sale.id, 1_001n, 'key')).kind).toBe('other_request')
    const other = await newSale({ projectId: sale.projectId })
    expect((await refund(other.id, 1_000n, 'key')).kind).toBe('other_request')
    expect(await listRefunds(pool, sale.id)).toHaveLength(1)
    // The same idempotency key in another project causes a separate refund.
    await refunded((await newSale()).id, 1_000n, 'key')
  })

  test('a repeated refund request gets the first response, even if the whole payment is refunded meanwhile', async () => {
    const sale = await newSale()
    const made = await refunded(sale.id, PAYMENT, 'all')
    expect(await refunded(sale.id, PAYMENT, 'all')).toEqual(made)
  })
})

describe('a seller can name the transaction of a refund by hand until the chain proves the transaction', () => {
  test('a refund transaction that the seller names is checked, and replaces a transaction that was refused', async () => {
    const sale = await newSale()
    const { id } = await refunded(sale.id, 1_000n)
    await pool.query(`update hand_refunds set reason = 'no transfer' where id = $1`, [id])
    const about = { paymentId: sale.id, refundId: id }
    expect(await claimRefund(pool, ACTOR, { ...about, txHash: TX })).toBe('ok')
    expect((await listRefunds(pool, sale.id))[0]).toMatchObject({
      ...{ state: 'checking', txHash: TX.toLowerCase(), reason: null },
    })
    expect(await claimRefund(pool, ACTOR, { ...about, txHash: newHash() })).toBe('ok')
  })

  test('the transaction that a seller names for a refund can be withdrawn until the chain has confirmed the refund', async () => {
    const sale = await newSale()
    const { id } = await refunded(sale.id, 1_000n)
    const about = { paymentId: sale.id, refundId: id }
    await claimRefund(pool, ACTOR, { ...about, txHash: TX })
    await pool.query(`update hand_refunds set state = 'spent', log_index = 1 where id = $1`, [id])
    expect(await withdrawRefund(pool, ACTOR, about)).toBe('proved')
    expect(await claimRefund(pool, ACTOR, { ...about, txHash: newHash() })).toBe('proved')
    expect((await listRefunds(pool, sale.id))[0]).toMatchObject({ state: 'spent' })
  })

  test('a transaction that is named for a withdrawn refund is refused', async () => {
    const sale = await newSale()
    const { id } = await refunded(sale.id, 1_000n)
    const about = { paymentId: sale.id, refundId: id }
    expect(await withdrawRefund(pool, ACTOR, about)).toBe('ok')
    expect((await listRefunds(pool, sale.id))[0]).toMatchObject({ state: 'released', txHash: null })
    expect(await claimRefund(pool, ACTOR, { ...about, txHash: TX })).toBe('proved')
  })

  test('a transfer that paid for a sale or a purchase cannot count as a refund', async () => {
    const sale = await newSale()
    const { id } = await refunded(sale.id, PAYMENT)
    const { payer: buyer, payTo: seller } = DEVNET_ACCOUNTS
    // The seller of the refunded payment has also bought something from its buyer, for the same amount. This second
    // transfer must not count as the refund.
    const { id: back, txHash } = await newSettled(pool, {
      payer: seller.address,
      recipient: buyer.address,
      amountAtomic: PAYMENT,
    })
    await pool.query('update payments set log_index = 3 where id = $1', [back])
    await pool.query(
      `insert into purchases (id, project_id, kind, request_hash, method, host, path, max_atomic, asked_by, money, payer,
         nonce, tx_hash, log_index)
       values ('pur_back', $1, 'payment', '', 'GET', 'a.example', '/', 1, 'agent', 'spent', $2, 'n', $3, 5)`,
      [sale.projectId, seller.address.toLowerCase(), txHash],
    )
    await claimRefund(pool, ACTOR, { paymentId: sale.id, refundId: id, txHash })
    expect((await usedLogs(pool, { id, txHash })).toSorted()).toEqual([3, 5])
    const record = (logIndex: number) =>
      recordHandRefund(
        pool,
        { id, txHash },
        { logIndex, blockNumber: 7n, blockHash: newHash() },
        () => '{}',
      )
    expect([await record(3), await record(5), await record(4)]).toEqual([false, false, true])
  })

  test('a refund has a receipt only while the chain contains its transfer', async () => {
    const byHand = await newSale()
    const hand = await refunded(byHand.id, 1_000n)
    const out = await newPurseSale(5_000n)
    const purse = await refunded(out.id, 1_000n)
    const states = async () =>
      [...(await listRefunds(pool, byHand.id)), ...(await listRefunds(pool, out.id))].map(
        ({ state, receipt }) => [state, receipt],
      )
    await pool.query(
      `update hand_refunds set state = 'spent', tx_hash = $2, log_index = 1, receipt = '{}' where id = $1`,
      [hand.id, newHash()],
    )
    await pool.query(
      `update purchases set money = 'spent', tx_hash = $2, block_number = 7, block_hash = $2, receipt = '{}' where id = $1`,
      [purse.id, newHash()],
    )
    expect(await states()).toEqual([
      ['spent', '{}'],
      ['spent', '{}'],
    ])
    await checkAnew(pool, [hand.id])
    await recordUnspent(pool, purse.id)
    expect(await states()).toEqual([
      ['checking', null],
      ['open', null],
    ])
    await withdrawRefund(pool, ACTOR, { paymentId: byHand.id, refundId: hand.id })
    await recordReleased(pool, purse.id)
    expect(await states()).toEqual([
      ['released', null],
      ['released', null],
    ])
  })

  test('after a project is deleted, the seller cannot name a transaction for its refunds, and no refund can be withdrawn', async () => {
    const sale = await newSale()
    const { id } = await refunded(sale.id, 1_000n)
    await deleteProject(pool, sale.projectId, null)
    const about = { paymentId: sale.id, refundId: id }
    expect(await claimRefund(pool, ACTOR, { ...about, txHash: TX })).toBe('not_found')
    expect(await withdrawRefund(pool, ACTOR, about)).toBe('not_found')
  })

  test('a seller can name a transaction only for a refund of the same payment', async () => {
    const [sale, other] = [await newSale(), await newSale()]
    const { id } = await refunded(sale.id, 1_000n)
    const claim = (paymentId: string, refundId: string) =>
      claimRefund(pool, ACTOR, { paymentId, refundId, txHash: TX })
    expect(await claim(other.id, id)).toBe('not_found')
    expect(await claim(sale.id, 'rfd_none')).toBe('not_found')
    expect(await claim('pay_none', id)).toBe('not_found')
  })
})

describe('a refund out of the seller’s purse (wallet) is signed at once, within the balance and the gas of the day', () => {
  test('a refund from the purse (wallet) is signed at once, and the purse must contain the amount', async () => {
    const sale = await newPurseSale(5_000n)
    expect(await kinds(sale.id, 5_001n)).toEqual(['insufficient_funds'])
    const made = await refunded(sale.id, 3_000n, 'key')
    expect([made.state, made.id.startsWith('rfd_')]).toEqual(['open', false])
    expect(await refunded(sale.id, 3_000n, 'key')).toEqual(made)
    expect(await kinds(sale.id, 2_001n, 2_000n)).toEqual(['insufficient_funds', 'ok'])
    expect((await row(pool, 'purchases', made.id)).refund_of).toBe(sale.id)
  })

  test('a purse (wallet) signs only as many refunds in a day as its daily gas limit allows, for however many payments', async () => {
    const { id, projectId, address } = await newPurseSale(5_000n)
    const other = await newSale({ projectId, recipient: address, nonce: newHash() })
    const made = await refunded(id, 1n, 'first')
    expect(await kinds(id, 1n, 1n)).toEqual(['ok', 'ok'])
    expect(await kinds(other.id, 1n, 1n)).toEqual(['ok', 'too_much_gas'])
    expect(await kinds(id, 1n)).toEqual(['too_much_gas'])
    expect(await refunded(id, 1n, 'first')).toEqual(made)
    const { rows } = await pool.query('select gas::int from purse_gas where project_id = $1', [
      projectId,
    ])
    expect(rows).toEqual([{ gas: DAILY_GAS }])
    await pool.query('insert into project_limits (project_id, daily_gas) values ($1, $2)', [
      ...[projectId, DAILY_GAS + 1],
    ])
    expect(await kinds(id, 1n, 1n)).toEqual(['ok', 'too_much_gas'])
    await pool.query('update purse_gas set day = day - 1 where project_id = $1', [projectId])
    expect(await kinds(other.id, 1n)).toEqual(['ok'])
  })

  test('twenty refunds at once use at most the gas of the day', async () => {
    const { id } = await newPurseSale(5_000n)
    const made = await Promise.all(Array.from({ length: 20 }, () => refund(id, 1n)))
    expect(made.filter(({ kind }) => kind === 'ok')).toHaveLength(4)
  })

  test('a refund by hand is possible even if the purse (wallet) has used up its gas of the day', async () => {
    const { id, projectId } = await newPurseSale(5_000n)
    await countPurseGas(pool, projectId, 4)
    const byHand = await newSale({ projectId, nonce: newHash() })
    expect(await kinds(id, 1n)).toEqual(['too_much_gas'])
    expect(await kinds(byHand.id, 1n)).toEqual(['ok'])
  })

  test('a refund from the purse (wallet) is refused if the operator has forbidden payments to the payer', async () => {
    const sale = await newPurseSale(5_000n)
    const { rows } = await pool.query('select payer from payments where id = $1', [sale.id])
    const denied = [rows[0].payer.toLowerCase()]
    expect((await refund(sale.id, 1n, 'k1', denied)).kind).toBe('payee_denied')
    expect((await refund(sale.id, 1n, 'k1')).kind).toBe('ok')
  })

  test('a refund from the purse (wallet) accepts every idempotency key that a client may send', async () => {
    const sale = await newPurseSale(5_000n)
    for (const key of ['k'.repeat(255), `${'k'.repeat(254)}l`]) {
      const made = await refunded(sale.id, 1_000n, key)
      expect(await refunded(sale.id, 1_000n, key)).toEqual(made)
    }
    expect(await listRefunds(pool, sale.id)).toHaveLength(2)
  })

  test('a purchase with the same idempotency key as a refund does not prevent the refund', async () => {
    const sale = await newPurseSale(5_000n)
    await pool.query(
      `insert into purchases (id, project_id, kind, idempotency_key, request_hash, method, host, path, max_atomic, asked_by)
       values ('pur_agent', $1, 'payment', 'refund:key', '', 'GET', 'a.example', '/', 1, 'agent')`,
      [sale.projectId],
    )
    const made = await refunded(sale.id, 1_000n, 'key')
    expect(await refunded(sale.id, 1_000n, 'key')).toEqual(made)
    expect(await listRefunds(pool, sale.id)).toHaveLength(1)
  })

  test('a refund from the purse (wallet) cannot be withdrawn like a refund by hand', async () => {
    const sale = await newPurseSale(5_000n)
    const { id } = await refunded(sale.id, 1_000n)
    const about = { paymentId: sale.id, refundId: id }
    expect(await withdrawRefund(pool, ACTOR, about)).toBe('not_by_hand')
    expect(await claimRefund(pool, ACTOR, { ...about, txHash: TX })).toBe('not_by_hand')
  })

  test('a refund is made by hand if the purse (wallet) was not the payee of the payment', async () => {
    const { projectId } = await newPurseSale(PAYMENT)
    const sale = await newSale({ projectId })
    expect((await refunded(sale.id, 1_000n)).state).toBe('by_hand')
    const foreign = await newPurseSale(PAYMENT)
    const strange = await newSale({ projectId, recipient: foreign.address })
    expect((await refunded(strange.id, 1_000n)).state).toBe('by_hand')
  })
})

test('a purchase shows only those refunds that were sent by a seller who uses this service', async () => {
  const nonce = newHash()
  const projectId = await newProject(pool)
  await openPurse(pool, keyring, { projectId, ...ACTOR })
  const { rows } = await pool.query(
    'update purses set balance_atomic = 9000, balance_block = 1 where project_id = $1 returning address',
    [projectId],
  )
  const sale = await newSale({ projectId, recipient: rows[0].address, nonce })
  const sent = await refunded(sale.id, 1_000n)
  const of = (changes: object = {}) =>
    refundsOfPurchase(pool, {
      payer: DEVNET_ACCOUNTS.payer.address.toLowerCase(),
      ...{ nonce, network: 'base-sepolia' },
      ...changes,
    })
  expect(await of()).toEqual([{ ...sent, txHash: null }])
  expect(await of({ payer: `0x${'12'.repeat(20)}` })).toEqual([])
  expect(await of({ nonce: newHash() })).toEqual([])
  expect(await of({ network: 'base' })).toEqual([])
  await pool.query(`update purchases set money = 'released' where id = $1`, [sent.id])
  expect(await of()).toEqual([])
  const expected = await newSale({ nonce: newHash() })
  const { id } = await refunded(expected.id, 1_000n)
  const other = await row(pool, 'payments', expected.id)
  expect(await of({ nonce: other.authorization_nonce })).toEqual([])
  await pool.query(`update hand_refunds set state = 'spent', log_index = 1 where id = $1`, [id])
  expect(await of({ nonce: other.authorization_nonce })).toHaveLength(1)
})
