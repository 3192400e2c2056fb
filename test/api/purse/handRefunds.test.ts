/** Tests refunds that a seller sends by hand, and how buyers see a refund. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import type { Hex } from 'viem'
import { verifyReceipt } from '../../../shared/till/receipt.ts'
import { changeProject } from '../../support/changeProject.ts'
import {
  fundPurse,
  newBuyer,
  served,
  startPurseTill,
  startSeller,
} from '../../support/purse/purseScene.ts'
import type { Agent } from '../../support/service.ts'
import { fund, pay, payer, payTo, redeemToEnd, type TestTill } from '../../support/till/till.ts'
import { callToken } from '../../support/till/tokenCalls.ts'
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

type View = {
  refundId: string
  state: string
  final: boolean
  payTo: string
  reason: string | null
  txHash: string | null
  receipt: { body: Record<string, unknown> } | null
}

/** Creates a seller without a purse (wallet), and a final payment of 0.01 USDC to this seller. */
async function sold(): Promise<{ seller: Agent; paymentId: string }> {
  const seller = await till.newSeller()
  const { header } = await pay()
  const { body } = await redeemToEnd(seller, header)
  expect(body).toMatchObject({ ok: true })
  await makeFinal(seller, body.paymentId)
  return { seller, paymentId: body.paymentId }
}

async function makeFinal(seller: Agent, paymentId: string): Promise<void> {
  await till.client.mine({ blocks: FINAL_BLOCKS, interval: 1 })
  await waitFor('a final payment', async () => {
    const { body } = await seller.get(`/v0/payments/${paymentId}`)
    return (body as { finalizedAt: string | null }).finalizedAt
  })
}

let keys = 0
async function expectRefund(paymentId: string, amount: string): Promise<View> {
  const { status, body } = await till.service.platform.post(
    `/v0/payments/${paymentId}/refund`,
    { amount },
    { 'idempotency-key': `hand-${++keys}` },
  )
  expect([status, (body as View).state]).toEqual([200, 'by_hand'])
  return body as View
}

const refundsOf = async (paymentId: string) =>
  (
    (await till.service.platform.get(`/v0/payments/${paymentId}/refunds`)).body as {
      refunds: View[]
    }
  ).refunds
const refundOf = async (paymentId: string, refundId: string) =>
  (await refundsOf(paymentId)).find((one) => one.refundId === refundId)!

const name = (paymentId: string, refundId: string, txHash: Hex) =>
  till.service.platform.put(`/v0/payments/${paymentId}/refunds/${refundId}`, { txHash })

const transfer = async (amountAtomic: bigint, to = payer.address): Promise<Hex> => {
  const hash = await callToken(
    till.client,
    { functionName: 'transfer', args: [to, amountAtomic] },
    payTo,
  )
  await till.client.waitForTransactionReceipt({ hash })
  return hash
}

test('if a seller pays a refund by hand and names the transaction, the service verifies it on the chain, and creates a receipt and an event', async () => {
  const { seller, paymentId } = await sold()
  const { refundId, payTo: buyer } = await expectRefund(paymentId, '0.004')
  expect(buyer).toBe(payer.address.toLowerCase())
  const txHash = await transfer(4_000n)
  expect((await name(paymentId, refundId, txHash)).body).toMatchObject({
    state: 'checking',
    txHash,
  })
  const spent = await waitFor('the proof', async () => {
    const one = await refundOf(paymentId, refundId)
    return one.state === 'spent' ? one : null
  })
  expect(spent.receipt!.body).toMatchObject({
    refundOf: paymentId,
    amountUsdcRaw: '4000',
    recipientAddress: payer.address.toLowerCase(),
    txHash,
  })
  const { keys: published } = (await (
    await fetch(`${till.service.url}/.well-known/jwks.json`)
  ).json()) as { keys: { x: string }[] }
  const trustedKeys = published.map(({ x }) => ({
    publicKeyHex: Buffer.from(x, 'base64url').toString('hex'),
  }))
  expect(verifyReceipt({ receipt: spent.receipt, trustedKeys })).toMatchObject({ ok: true })
  const { rows } = await till.service.database.pool.query(
    `select data from events where project_id = $1 and type = 'payment.refunded'`,
    [seller.project.id],
  )
  expect(rows).toMatchObject([{ data: { refundId, refundOf: paymentId, txHash } }])
  await till.client.mine({ blocks: FINAL_BLOCKS, interval: 1 })
  await waitFor('a final refund', async () => (await refundOf(paymentId, refundId)).final)
  expect((await name(paymentId, refundId, txHash)).status).toBe(409)
})

test('a transfer on the chain proves only one refund by hand, and must have the right amount and recipient and a time after the payment', async () => {
  await fund(till.client, payTo, 3_000n)
  const old = await transfer(3_000n)
  const { paymentId } = await sold()
  const first = await expectRefund(paymentId, '0.003')
  const second = await expectRefund(paymentId, '0.003')
  const refused = async (refundId: string, txHash: Hex, reason: string) => {
    await name(paymentId, refundId, txHash)
    const back = await waitFor(reason, async () => {
      const one = await refundOf(paymentId, refundId)
      return one.state === 'by_hand' ? one : null
    })
    expect(back).toMatchObject({ reason, txHash: null })
  }
  await refused(first.refundId, old, 'the transaction is older than the payment')
  const none = 'the transaction has no transfer of this amount from the payee to the payer'
  await refused(first.refundId, await transfer(2_999n), none)
  await refused(first.refundId, await transfer(3_000n, `0x${'77'.repeat(20)}`), none)
  const right = await transfer(3_000n)
  await name(paymentId, first.refundId, right)
  await waitFor(
    'the proof',
    async () => (await refundOf(paymentId, first.refundId)).state === 'spent',
  )
  const used = 'the transfers of the transaction count for other refunds, sales or purchases'
  await refused(second.refundId, right, used)
})

test('refunds that a seller pays by hand never exceed the payment in total, and the seller can withdraw a refund that was not sent', async () => {
  const { paymentId } = await sold()
  const many = await Promise.all(
    Array.from({ length: 12 }, (_, n) =>
      till.service.platform.post(
        `/v0/payments/${paymentId}/refund`,
        { amount: '0.002' },
        { 'idempotency-key': `race-${keys}-${n}` },
      ),
    ),
  )
  const given = many.filter(({ status }) => status === 200)
  expect(given.length).toBe(5)
  const { refundId } = given[0]!.body as View
  const path = `/v0/payments/${paymentId}/refunds/${refundId}`
  expect((await till.service.platform.delete(path)).body).toMatchObject({ state: 'released' })
  expect((await till.service.platform.delete(path)).status).toBe(409)
  await expectRefund(paymentId, '0.002')
  const missing = `/v0/payments/${paymentId}/refunds/rfd_000000000000000000000000`
  expect((await till.service.platform.delete(missing)).status).toBe(404)
  expect((await name(paymentId, refundId, '0x12' as Hex)).status).toBe(400)
})

test('if a reorganisation replaces the block of a refund, the service verifies the refund again, but reports it only once', async () => {
  const { seller, paymentId } = await sold()
  const { refundId } = await expectRefund(paymentId, '0.001')
  const snapshot = await till.client.snapshot()
  const txHash = await transfer(1_000n)
  await name(paymentId, refundId, txHash)
  await waitFor('the proof', async () => (await refundOf(paymentId, refundId)).state === 'spent')
  await till.client.revert({ id: snapshot })
  await till.client.mine({ blocks: FINAL_BLOCKS + 5, interval: 1 })
  await waitFor('the refund as unproved', async () => {
    const { state } = await refundOf(paymentId, refundId)
    return state === 'checking'
  })
  const again = await transfer(1_000n)
  await name(paymentId, refundId, again)
  await waitFor(
    'the second proof',
    async () => (await refundOf(paymentId, refundId)).state === 'spent',
  )
  const { rowCount } = await till.service.database.pool.query(
    `select from events where project_id = $1 and type = 'payment.refunded'`,
    [seller.project.id],
  )
  expect(rowCount).toBe(1)
})

test('a buyer with a purse (wallet) at this service sees the refund of a payment, but the refund does not give back its amount to the mandate (spending limit)', async () => {
  const seller = await till.newSeller()
  const address = await fundPurse(till, seller.project.id, 1_000_000n)
  await changeProject(till.service.database.pool, seller.project.id, { payTo: address })
  await using shop = startSeller(till)
  shop.terms.payTo = address
  let paymentId = ''
  shop.serve = async (payment) => {
    const { body } = await redeemToEnd(seller, payment.header)
    paymentId = body.paymentId
    return served(payment, body.txHash ?? `0x${'00'.repeat(32)}`)
  }
  const buyer = await newBuyer(till)
  const mandateId = await buyer.giveMandate({ hosts: [shop.host] })
  const { body } = await buyer.pay(shop.url)
  expect(body.state).toBe('answered')
  await makeFinal(seller, paymentId)
  await till.service.platform.post(
    `/v0/payments/${paymentId}/refund`,
    { amount: '0.006' },
    { 'idempotency-key': 'matched' },
  )
  const matched = await waitFor('the refund at the purchase', async () => {
    const found = (await buyer.purchase(body.purchaseId)) as unknown as {
      refunds: { state: string; amountUsdc: string }[]
    }
    return found.refunds[0]?.state === 'spent' ? found : null
  })
  expect(matched.refunds).toMatchObject([{ amountUsdc: '0.006' }])
  expect(await buyer.mandate(mandateId)).toMatchObject({ spentUsdc: '0.01', releasedUsdc: '0' })
  const { rows } = await till.service.database.pool.query(
    `select data from events where project_id = $1 and type = 'purse.refunded'`,
    [buyer.project.id],
  )
  expect(rows).toMatchObject([{ data: { purchaseId: body.purchaseId, amountUsdcRaw: '6000' } }])
})

test('a refund that the seller pays by hand on a former chain of the service can only be withdrawn, because no worker can prove it', async () => {
  const { paymentId } = await sold()
  const { refundId } = await expectRefund(paymentId, '0.004')
  const { pool } = till.service.database
  await pool.query(`update payments set network = 'base', chain_id = 8453 where id = $1`, [
    paymentId,
  ])
  await pool.query(`update hand_refunds set network = 'base' where id = $1`, [refundId])
  const message = 'The payment was made on another chain than the one of the service'
  expect(await name(paymentId, refundId, `0x${'ab'.repeat(32)}`)).toMatchObject({
    status: 409,
    body: { message },
  })
  const again = await till.service.platform.post(
    `/v0/payments/${paymentId}/refund`,
    { amount: '0.001' },
    { 'idempotency-key': `hand-${++keys}` },
  )
  expect(again).toMatchObject({ status: 409, body: { message } })
  const withdrawn = await till.service.platform.delete(
    `/v0/payments/${paymentId}/refunds/${refundId}`,
  )
  expect(withdrawn.body).toMatchObject({ state: 'released' })
})
