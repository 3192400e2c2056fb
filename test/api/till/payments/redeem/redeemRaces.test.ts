import { afterAll, beforeAll, expect, test } from 'bun:test'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { DEVNET_ACCOUNTS } from '../../../../../shared/till/devnetAccounts.ts'
import type { Agent } from '../../../../support/service.ts'
import { redeemMany } from '../../../../support/till/redeemers.ts'
import {
  PRICE,
  pay,
  RESOURCE,
  redeem,
  registerEndpoint,
  startTestTill,
  type TestTill,
} from '../../../../support/till/till.ts'
import { waitFor } from '../../../../support/waitFor.ts'
import '../../../../support/long.ts'

let till: TestTill
let seller: Agent

beforeAll(async () => {
  till = await startTestTill()
  seller = await till.newSeller()
})
afterAll(() => till[Symbol.asyncDispose]())

const sentByGasWallet = () =>
  till.client.getTransactionCount({ address: DEVNET_ACCOUNTS.gasWallet.address })

const many = <Item>(count: number, make: (n: number) => Promise<Item>): Promise<Item[]> =>
  Promise.all(Array.from({ length: count }, (_, n) => make(n)))

test('for one payment header, 50 concurrent redeem calls (which take a payment) lead to one transaction, and only one of the calls succeeds', async () => {
  const before = await sentByGasWallet()
  const { header } = await pay()
  const answers = await many(50, () => redeem(seller, header))
  expect(answers.every(({ status }) => status === 200)).toBe(true)
  const granted = answers.filter(({ body }) => body.ok)
  expect(granted).toHaveLength(1)
  const reasons = new Set(answers.flatMap(({ body }) => (body.ok ? [] : [body.reason])))
  expect([...reasons]).toEqual(['duplicate_settlement'])
  expect(await sentByGasWallet()).toBe(before + 1)
  expect((await redeem(seller, header)).body).toMatchObject({
    ok: false,
    reason: 'duplicate_settlement',
    paymentId: granted[0]!.body.paymentId,
  })
})

test('50 concurrent redeem calls (which take a payment) with the same Idempotency-Key get the same stored response', async () => {
  const before = await sentByGasWallet()
  const { header } = await pay()
  const keyed = { 'idempotency-key': 'one-and-the-same' }
  const answers = await many(50, () => redeem(seller, header, {}, keyed))
  const texts = new Set(answers.map(({ body }) => JSON.stringify(body)))
  expect(texts.size).toBe(1)
  expect(answers[0]!.body.ok).toBe(true)
  expect(await sentByGasWallet()).toBe(before + 1)
  expect((await redeem(seller, header, {}, keyed)).body).toEqual(answers[0]!.body)
  expect((await redeem(seller, header)).body.ok).toBe(false)
})

test('the service refuses a used payment header for a second resource, for another amount and for another project', async () => {
  const other = 'https://api.example.com/other'
  await registerEndpoint(till.service.database.pool, {
    projectId: seller.project.id,
    resource: other,
  })
  const stranger = await till.newSeller()
  const { header } = await pay()
  const answers = await Promise.all([
    redeem(seller, header),
    redeem(seller, header, { resource: other }),
    redeem(stranger, header),
  ])
  expect(answers.filter(({ body }) => body.ok)).toHaveLength(1)
  for (const again of [
    await redeem(seller, header, { resource: other }),
    await redeem(stranger, header),
  ]) {
    expect(again.body).toMatchObject({ ok: false, reason: 'duplicate_settlement' })
  }
  expect((await redeem(seller, header, { amount: '0.02' })).body).toMatchObject({
    ok: false,
    reason: 'invalid_exact_evm_payload_authorization_value',
  })
})

test('one gas wallet (which pays the fees) settles 500 different payments at the same time', async () => {
  const payments = await many(500, () => pay())
  const before = await sentByGasWallet()
  const startedMs = performance.now()
  const answers = await redeemMany(
    { url: till.service.url, seller },
    payments.map(({ header }) => ({ paymentHeader: header, resource: RESOURCE, amount: PRICE })),
    { insists: true },
  )
  const ms = performance.now() - startedMs
  expect(answers.filter(({ body }) => !body.ok).map(({ body }) => body)).toEqual([])
  // One transaction can carry several payments, so only the transaction hash and the log index together identify a
  // payment.
  const transfers = new Set(answers.map(({ body }) => `${body.txHash}:${body.logIndex}`))
  expect(transfers.size).toBe(500)
  const transactions = new Set(answers.map(({ body }) => body.txHash)).size
  expect(transactions).toBeLessThan(500)
  expect(await sentByGasWallet()).toBe(before + transactions)
  process.stderr.write(
    `500 distinct payments: ${Math.round(ms)} ms, ${Math.round(500_000 / ms)}/s\n`,
  )
})

test('if several gas wallets are set, concurrent payments settle through more than one of them', async () => {
  const keys = [generatePrivateKey(), generatePrivateKey()]
  await using shared = await startTestTill({ worker: { settlementKeys: keys } })
  const addresses = keys.map((key) => privateKeyToAccount(key).address)
  for (const address of addresses) {
    await shared.client.setBalance({ address, value: 10n ** 18n })
  }
  const shop = await shared.newSeller()
  const hashes = new Set<unknown>()
  // One gas wallet may settle all waiting payments in one transaction. Therefore a second gas wallet gets work only
  // while the first wallet is busy.
  await waitFor('a transaction of each wallet', async () => {
    const payments = await many(60, () => pay())
    const answers = await many(60, (n) => redeem(shop, payments[n]!.header))
    expect(answers.every(({ body }) => body.ok)).toBe(true)
    for (const { body } of answers) hashes.add(body.txHash)
    const counts = await Promise.all(
      addresses.map((address) => shared.client.getTransactionCount({ address })),
    )
    expect(counts[0]! + counts[1]!).toBe(hashes.size)
    return Math.min(...counts) > 0
  })
})
