/**
 * Tests two ways in which an owner moves money out of a purse (a project's wallet): refunds of sales, and a sweep (the
 * withdrawal of all money that is not reserved).
 */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { countPurseGas } from '../../../sql/purse/purseGas.ts'
import { changeProject } from '../../support/changeProject.ts'
import { startProcess } from '../../support/process/process.ts'
import {
  fundPurse,
  newBuyer,
  paidBy,
  startPurseTill,
  startSeller,
} from '../../support/purse/purseScene.ts'
import type { Agent } from '../../support/service.ts'
import { pay, payer, redeemToEnd, type TestTill } from '../../support/till/till.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/long.ts'

const FINAL_BLOCKS = 66
let till: TestTill
beforeEach(async () => {
  till = await startPurseTill()
})
afterEach(async () => {
  await till[Symbol.asyncDispose]()
})

/** Creates a seller whose purse (wallet) has received one payment of 0.01 USDC. */
async function soldOnce(): Promise<{ seller: Agent; address: `0x${string}`; paymentId: string }> {
  const seller = await till.newSeller()
  const address = await fundPurse(till, seller.project.id, 1_000_000n)
  await changeProject(till.service.database.pool, seller.project.id, { payTo: address })
  const { header } = await pay({ to: address })
  const { body } = await redeemToEnd(seller, header)
  expect(body).toMatchObject({ ok: true })
  return { seller, address, paymentId: body.paymentId }
}

const makeFinal = async (seller: Agent, paymentId: string) => {
  await till.client.mine({ blocks: FINAL_BLOCKS, interval: 1 })
  await waitFor('a final payment', async () => {
    const { body } = await seller.get(`/v0/payments/${paymentId}`)
    return (body as { finalizedAt: string | null }).finalizedAt
  })
}

let keys = 0
const refund = (paymentId: string, amount: string, key = `refund-${++keys}`) =>
  till.service.platform.post(
    `/v0/payments/${paymentId}/refund`,
    { amount },
    { 'idempotency-key': key },
  )

test('a refund of a final payment happens once for each idempotency key, and all refunds together never exceed the payment', async () => {
  const { seller, address, paymentId } = await soldOnce()
  expect((await refund(paymentId, '0.004')).body).toMatchObject({
    message: 'The payment is not final yet: ask again later',
  })
  await makeFinal(seller, paymentId)
  const first = await refund(paymentId, '0.004', 'once')
  expect([first.status, (first.body as { state: string }).state]).toEqual([200, 'open'])
  const again = await refund(paymentId, '0.004', 'once')
  expect((again.body as { refundId: string }).refundId).toBe(
    (first.body as { refundId: string }).refundId,
  )
  expect((await refund(paymentId, '0.005', 'once')).status).toBe(409)

  const many = await Promise.all(Array.from({ length: 20 }, () => refund(paymentId, '0.002')))
  expect(many.filter(({ status }) => status === 200).length).toBe(3)
  const list = async () =>
    (await till.service.platform.get(`/v0/payments/${paymentId}/refunds`)).body as {
      refunds: { state: string }[]
    }
  await waitFor('the refunds on the chain', async () => {
    const { refunds } = await list()
    return refunds.every(({ state }) => state === 'spent')
  })
  expect(await paidBy(till, address)).toBe(10_000n)
  const { rows } = await till.service.database.pool.query(
    `select data from events where project_id = $1 and type = 'payment.refunded'`,
    [seller.project.id],
  )
  expect(rows.length).toBe(4)
  expect(rows[0].data).toMatchObject({ refundOf: paymentId, payTo: payer.address.toLowerCase() })
})

test('a refund needs an owner, a payment that the purse (wallet) received, and enough unreserved money in the purse', async () => {
  const { seller, paymentId } = await soldOnce()
  await makeFinal(seller, paymentId)
  const path = `/v0/payments/${paymentId}/refund`
  const own = await seller.post(path, { amount: '0.01' }, { 'idempotency-key': 'own' })
  expect(own.status).toBe(403)
  const { pool } = till.service.database
  await pool.query('update purses set balance_atomic = 0, balance_block = 999999999')
  expect((await refund(paymentId, '0.01')).body).toMatchObject({
    message: 'The purse has too little that is free',
  })
  const { id: projectId } = seller.project
  await pool.query('insert into project_limits (project_id, daily_gas) values ($1, 80000)', [
    projectId,
  ])
  await countPurseGas(pool, projectId, 1)
  await pool.query('update purses set balance_atomic = 1000000')
  expect(await refund(paymentId, '0.01')).toMatchObject({
    status: 409,
    body: {
      message:
        'The purse has used up its gas of the day: ask again tomorrow, or ask the operator for more dailyGas',
    },
  })
  for (const table of ['purses', 'purse_keys']) {
    await pool.query(`update ${table} set address = $1`, [`0x${'ab'.repeat(20)}`])
  }
  expect((await refund(paymentId, '0.01')).body).toMatchObject({
    state: 'by_hand',
    amountUsdc: '0.01',
    payTo: payer.address.toLowerCase(),
  })
  expect((await refund('pay_000000000000000000000000', '0.01')).status).toBe(404)
  const keyless = await till.service.platform.post(path, { amount: '0.01' })
  expect([keyless.status, keyless.body.message]).toEqual([
    400,
    'Idempotency-Key must be there: a repeated request must not pay back twice',
  ])
})

test('a payment on a former chain of the service is not refunded from the purse (wallet)', async () => {
  const { seller, paymentId } = await soldOnce()
  await makeFinal(seller, paymentId)
  await till.service.database.pool.query(
    `update payments set network = 'base', chain_id = 8453 where id = $1`,
    [paymentId],
  )
  expect(await refund(paymentId, '0.01')).toMatchObject({
    status: 409,
    body: { message: 'The payment was made on another chain than the one of the service' },
  })
  const { body } = await till.service.platform.get(
    `/v0/platform/projects/${seller.project.id}/purse`,
  )
  expect(body).toMatchObject({ openUsdc: '0' })
})

test('an open payment on a former chain of the service reserves no money of the purse (wallet)', async () => {
  await using seller = startSeller(till)
  seller.serve = async () => new Response('no', { status: 400 })
  const buyer = await newBuyer(till, { fundsAtomic: 1_000_000n })
  await buyer.giveMandate({ hosts: [seller.host] })
  await buyer.pay(seller.url)
  const purse = async () =>
    (await till.service.platform.get(`/v0/platform/projects/${buyer.project.id}/purse`)).body
  expect(await purse()).toMatchObject({ openUsdc: '0.01', freeUsdc: '0.99' })
  await till.service.database.pool.query(`update purchases set network = 'base'`)
  expect(await purse()).toMatchObject({ openUsdc: '0', freeUsdc: '1' })
})

test('a project cannot be deleted while its purse (wallet) holds money, and a sweep (withdrawal) moves out all but the amount of open payments', async () => {
  await using seller = startSeller(till)
  seller.serve = async () => new Response('no', { status: 400 })
  const buyer = await newBuyer(till, { fundsAtomic: 1_000_000n })
  await buyer.giveMandate({ hosts: [seller.host] })
  await buyer.pay(seller.url)
  const project = `/v0/platform/projects/${buyer.project.id}`
  const kept = await till.service.platform.delete(project)
  expect([kept.status, (kept.body as { message: string }).message]).toEqual([
    409,
    'The purse holds 1 USDC: sweep it first with `bun run purse:sweep`',
  ])
  const target = `0x${'3c'.repeat(20)}`
  const { database, config } = till.service
  await using sweep = startProcess(
    'sql/purse/sweepMain.ts',
    { DATABASE_URL: database.url, DATA_DIR: config.dataDir },
    [buyer.project.id, target],
  )
  expect(await sweep.exited).toBe(0)
  expect(sweep.stdout()).toContain('0.99 USDC go to')
  await waitFor(
    'the sweep on the chain',
    async () => (await paidBy(till, buyer.address)) === 990_000n,
  )
})
