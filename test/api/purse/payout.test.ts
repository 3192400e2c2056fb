/**
 * Tests automatic transfers from a purse (wallet) to the owner's address, and from the old address of a purse to its
 * new address.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import type { Address } from 'viem'
import { startProcess } from '../../support/process/process.ts'
import {
  type Buyer,
  newBuyer,
  paidBy,
  startPurseTill,
  startSeller,
} from '../../support/purse/purseScene.ts'
import { fund, type TestTill } from '../../support/till/till.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/long.ts'

let till: TestTill
beforeEach(async () => {
  till = await startPurseTill({ env: { DENIED_PAYEES: FORBIDDEN } })
})
afterEach(async () => {
  await till[Symbol.asyncDispose]()
})

const OWNER = `0x${'4d'.repeat(20)}`
const FORBIDDEN = `0x${'6F'.repeat(20)}`
const OTHER = `0x${'5e'.repeat(20)}`

const path = ({ project }: Buyer) => `/v0/platform/projects/${project.id}/purse`
const change = async (buyer: Buyer, body: object) =>
  (await till.service.platform.patch(path(buyer), body)).body as any
const purseOf = async (buyer: Buyer) => (await till.service.platform.get(path(buyer))).body as any

/** Moves the time at which the new payout address becomes valid back by one day, as if a day had passed. */
const aDayLater = ({ project }: Buyer) =>
  till.service.database.pool.query(
    `update purses set payout_next_at = payout_next_at - interval '24 hours' where project_id = $1`,
    [project.id],
  )

test('a purse (wallet) transfers its balance above the maximum to the payout address, from one day after this address was set', async () => {
  const buyer = await newBuyer(till, { fundsAtomic: 5_000_000n })
  const set = await change(buyer, { max: '2', payoutAddress: OWNER })
  expect(set).toMatchObject({ maxUsdc: '2', payout: { address: null, next: { address: OWNER } } })
  const waitMs = Date.parse(set.payout.next.from) - Date.now()
  expect(Math.round(waitMs / 3_600_000)).toBe(24)
  // Until the payout address is valid, the worker reads the purse balance repeatedly but transfers nothing to this
  // address.
  const { balanceBlock } = await purseOf(buyer)
  await till.client.mine({ blocks: 2 })
  await waitFor('a later balance', async () => (await purseOf(buyer)).balanceBlock > balanceBlock)
  expect(await paidBy(till, buyer.address)).toBe(0n)
  await aDayLater(buyer)
  await waitFor(
    'the rest at the owner',
    async () => (await paidBy(till, buyer.address)) === 3_000_000n,
  )
  expect((await purseOf(buyer)).payout).toEqual({ address: OWNER, next: null })

  // A new payout address becomes valid only after a day, and until then the first payout address still gets the
  // transfers.
  await change(buyer, { payoutAddress: OTHER })
  expect((await purseOf(buyer)).payout).toMatchObject({ address: OWNER, next: { address: OTHER } })
  await fund(till.client, buyer.address, 1_000_000n)
  await waitFor('more at the owner', async () => (await paidBy(till, buyer.address)) === 4_000_000n)
  const { rows } = await till.service.database.pool.query(
    `select pay_to, sum(amount_atomic)::text as sum from purchases where project_id = $1 and kind = 'sweep' group by 1`,
    [buyer.project.id],
  )
  expect(rows).toEqual([{ pay_to: OWNER, sum: '4000000' }])
  // The removal of the payout address by the owner takes effect at once.
  expect((await change(buyer, { payoutAddress: null })).payout).toEqual({
    address: null,
    next: null,
  })
})

test('a stopped purse (wallet) makes no automatic payout to its owner', async () => {
  const buyer = await newBuyer(till, { fundsAtomic: 2_000_000n })
  await till.service.platform.post(`${path(buyer)}/stop`, {})
  await change(buyer, { max: '1', payoutAddress: OWNER })
  await aDayLater(buyer)
  const { balanceBlock } = await purseOf(buyer)
  await till.client.mine({ blocks: 2 })
  await waitFor('a later balance', async () => (await purseOf(buyer)).balanceBlock > balanceBlock)
  expect(await paidBy(till, buyer.address)).toBe(0n)
})

test('an invalid change of the payout settings gets an error that names the field', async () => {
  const buyer = await newBuyer(till, { fundsAtomic: 0n })
  const other = await newBuyer(till, { fundsAtomic: 0n })
  const wrong: [object, string][] = [
    [{}, 'the body must hold low, max or payoutAddress'],
    [{ payoutAddress: '0x12' }, 'payoutAddress must be an address'],
    [{ payoutAddress: `0x${'00'.repeat(20)}` }, 'payoutAddress must not be the zero address'],
    [{ payoutAddress: buyer.address }, 'payoutAddress must not be a purse of this service'],
    [{ payoutAddress: other.address }, 'payoutAddress must not be a purse of this service'],
    [
      { payoutAddress: FORBIDDEN },
      'payoutAddress must not be an address that the operator forbids',
    ],
    [{ max: '-1' }, 'max must be'],
  ]
  for (const [body, message] of wrong) {
    const answer = await till.service.platform.patch(path(buyer), body)
    expect([answer.status, (answer.body as any).message]).toEqual([
      400,
      expect.stringContaining(message),
    ])
  }
})

test('after a key rotation, a purse (wallet) pays from a new address, and all money at the old address moves to the new address', async () => {
  await using seller = startSeller(till)
  const buyer = await newBuyer(till, { fundsAtomic: 1_000_000n })
  await buyer.giveMandate({ hosts: [seller.host] })
  // A signed payment from the old address of the purse (wallet) is still open, because nobody settles it.
  const { serve } = seller
  seller.serve = async () => new Response('no', { status: 400 })
  const { body: left } = await buyer.pay(seller.url)
  seller.serve = serve
  const { database, config } = till.service
  await using rotation = startProcess(
    'sql/purse/rotateKeyMain.ts',
    { DATABASE_URL: database.url, DATA_DIR: config.dataDir },
    [buyer.project.id],
  )
  expect(await rotation.exited).toBe(0)
  expect(rotation.stdout()).toContain('0.99 USDC go there')
  const next = (await purseOf(buyer)).address as Address
  expect(next).not.toBe(buyer.address)
  // A payout address must not be an address of the purse (wallet), because each payout would come back to the purse.
  for (const payoutAddress of [buyer.address, next]) {
    expect((await change(buyer, { payoutAddress })).message).toContain(
      'payoutAddress must not be a purse of this service',
    )
  }
  await waitFor(
    'the money at the new address',
    async () => (await purseOf(buyer)).balanceUsdc === '0.99',
  )
  const paid = await buyer.pay(seller.url)
  expect(paid.body.state).toBe('answered')
  await buyer.settled(paid.body.purchaseId, 'spent')
  expect(await paidBy(till, next)).toBe(10_000n)

  await till.client.mine({ blocks: 110, interval: 3 })
  await buyer.settled(left.purchaseId, 'released')
  // Once the open payment is released, its reserved money moves to the new address. Money that somebody then sends to
  // the old address moves there too.
  await waitFor(
    'the rest of the old address',
    async () => (await paidBy(till, buyer.address)) === 1_000_000n,
  )
  await fund(till.client, buyer.address, 50_000n)
  await waitFor('a late payment', async () => (await paidBy(till, buyer.address)) === 1_050_000n)
})
