/**
 * Tests payments from contract wallets that are not deployed yet (ERC-6492). One transaction deploys the contract
 * wallet and transfers the money.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Address, parseAbi } from 'viem'
import { DEVNET_ACCOUNTS } from '../../../../../shared/till/devnetAccounts.ts'
import type { Agent } from '../../../../support/service.ts'
import { FACTORY, futureWallet } from '../../../../support/till/smartWallet.ts'
import {
  fund,
  headerOf,
  PRICE,
  pay,
  payer,
  RESOURCE,
  redeem,
  SEPOLIA,
  startTestTill,
  type TestTill,
} from '../../../../support/till/till.ts'
import '../../../../support/long.ts'

let till: TestTill
let seller: Agent

beforeAll(async () => {
  till = await startTestTill({ env: { WALLET_FACTORIES: FACTORY.toLowerCase() } })
  seller = await till.newSeller()
})
afterAll(() => till[Symbol.asyncDispose]())

type Wallet = ReturnType<typeof futureWallet>

async function newWallet({ funds = 1_000_000n }: { funds?: bigint } = {}): Promise<Wallet> {
  const wallet = futureWallet(payer.address)
  if (funds > 0n) await fund(till.client, wallet.address, funds)
  return wallet
}

async function payFrom(wallet: Wallet, changes: Parameters<Wallet['wrap']>[1] = {}) {
  const { authorization, signature } = await pay({ from: wallet.address })
  return headerOf(authorization, wallet.wrap(signature, changes))
}

const isDeployed = async (address: Address) =>
  (await till.client.getCode({ address })) !== undefined
const balanceOf = (address: Address) =>
  till.client.readContract({
    address: SEPOLIA.usdcAddress,
    abi: parseAbi(['function balanceOf(address) view returns (uint256)']),
    functionName: 'balanceOf',
    args: [address],
  })
const sentByGasWallet = () =>
  till.client.getTransactionCount({ address: DEVNET_ACCOUNTS.gasWallet.address })

describe('a contract wallet from a factory that the operator allows can pay before its deployment', () => {
  test('a wallet of an allowed factory (ERC-6492) is deployed and pays in one transaction, and later pays without the factory', async () => {
    const wallet = await newWallet()
    const before = await sentByGasWallet()
    const { body } = await redeem(seller, await payFrom(wallet))
    expect(body).toMatchObject({ ok: true, payer: wallet.address })
    expect(await isDeployed(wallet.address)).toBe(true)
    expect(await sentByGasWallet()).toBe(before + 1)
    const header = await payFrom(wallet, { factory: SEPOLIA.usdcAddress })
    expect((await redeem(seller, header)).body.ok).toBe(true)
    expect(await balanceOf(wallet.address)).toBe(980_000n)
  })

  test('a wallet of an allowed factory pays only once, even if many callers redeem the same header at the same time', async () => {
    const wallet = await newWallet()
    const before = await sentByGasWallet()
    const header = await payFrom(wallet)
    const answers = await Promise.all(Array.from({ length: 50 }, () => redeem(seller, header)))
    expect(answers.filter(({ body }) => body.ok)).toHaveLength(1)
    expect(await sentByGasWallet()).toBe(before + 1)
    expect(await balanceOf(wallet.address)).toBe(990_000n)
  })

  test('if two payments of a wallet arrive before the wallet is deployed, both are paid', async () => {
    const wallet = await newWallet()
    const headers = [await payFrom(wallet), await payFrom(wallet)]
    const answers = await Promise.all(headers.map((header) => redeem(seller, header)))
    expect(answers.map(({ body }) => body.ok)).toEqual([true, true])
    expect(await balanceOf(wallet.address)).toBe(980_000n)
  })

  test('a verify call for a payment does not deploy the wallet of the payer', async () => {
    const wallet = await newWallet()
    const header = await payFrom(wallet)
    const challenge = { amount: PRICE, resource: RESOURCE }
    const { body } = await seller.post('/v0/payments/challenge', challenge)
    const verified = await seller.post('/v0/x402/verify', {
      x402Version: 1,
      paymentPayload: JSON.parse(Buffer.from(header, 'base64').toString()),
      paymentRequirements: body.accepts[0],
    })
    expect(verified.body).toEqual({ isValid: true, payer: wallet.address })
    expect(await isDeployed(wallet.address)).toBe(false)
  })
})

describe('the service sends no transaction and stores no payment for a wallet that cannot pay', () => {
  const refused: [string, (wallet: Wallet) => Promise<string>, string][] = [
    [
      'a wallet of a factory that is not allowed',
      (wallet) => payFrom(wallet, { factory: SEPOLIA.usdcAddress }),
      'eip6492_factory_not_allowed',
    ],
    [
      'a wallet whose deployment fails',
      (wallet) => payFrom(wallet, { factoryData: '0x1234' }),
      'smart_wallet_deployment_failed',
    ],
    [
      'a signature that the wallet rejects',
      async (wallet) => {
        const { authorization } = await pay({ from: wallet.address })
        return headerOf(authorization, wallet.wrap(`0x${'ab'.repeat(65)}`))
      },
      'invalid_exact_evm_payload_signature',
    ],
  ]
  for (const [name, header, reason] of refused) {
    test(name, async () => {
      const wallet = await newWallet()
      const before = await sentByGasWallet()
      const { body } = await redeem(seller, await header(wallet))
      expect(body).toMatchObject({ ok: false, stage: 'verify', reason })
      expect(await sentByGasWallet()).toBe(before)
      // The refused payment did not use up its nonce, so the same contract wallet can still pay with a correct payment
      // header.
      expect((await redeem(seller, await payFrom(wallet))).body.ok).toBe(true)
    })
  }

  test('if the payer’s wallet has no money, the service sends no transaction and claims (stores) no payment', async () => {
    const wallet = await newWallet({ funds: 0n })
    const { body } = await redeem(seller, await payFrom(wallet))
    expect(body).toMatchObject({ ok: false, reason: 'insufficient_funds' })
    expect(await isDeployed(wallet.address)).toBe(false)
  })
})
