/**
 * Tests that waiting payments settle in one transaction, in which each payment may fail without affecting the others.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { decodeEventLog, parseAbi } from 'viem'
import { MULTICALL3_ADDRESS } from '../../../../workers/till/wallets/walletDeployment.ts'
import type { Agent } from '../../../support/service.ts'
import { type GroupScene, startGroupScene } from '../../../support/till/groupScene.ts'
import { deployWallet } from '../../../support/till/smartWallet.ts'
import {
  fund,
  newPayer,
  payer,
  payTo,
  redeemToEnd,
  SEPOLIA,
  type TestTill,
} from '../../../support/till/till.ts'
import { broadcastPayment, callToken, cancelPayment } from '../../../support/till/tokenCalls.ts'
import {
  claimAll,
  reaches,
  transactionsOf,
  type WaitingPayment,
} from '../../../support/till/waitingPayments.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

const TRANSFER = parseAbi([
  'event Transfer(address indexed from, address indexed to, uint256 value)',
])

let scene: GroupScene
let till: TestTill
let seller: Agent

beforeAll(async () => {
  scene = await startGroupScene()
  till = scene.till
  seller = scene.seller
})
afterEach(() => scene.rest())
afterAll(() => scene[Symbol.asyncDispose]())

const allSettle = (payments: readonly WaitingPayment[]) =>
  Promise.all(payments.map(({ id }) => reaches(seller, id, 'settled')))

test('waiting payments settle in one shared transaction, and each payment gets its own receipt and event', async () => {
  const [nonce, balance] = [await scene.nonceOf(), await scene.received()]
  const payments = await claimAll(seller, 5)
  await scene.start()
  const records = await allSettle(payments)
  expect(await scene.nonceOf()).toBe(nonce + 1)
  expect(await scene.received()).toBe(balance + 50_000n)
  const hash = records[0].txHash as `0x${string}`
  const receipt = await till.client.getTransactionReceipt({ hash })
  expect(receipt.to?.toLowerCase()).toBe(MULTICALL3_ADDRESS.toLowerCase())
  expect(new Set(records.map(({ logIndex }) => logIndex)).size).toBe(5)
  for (const [n, record] of records.entries()) {
    expect(record.txHash).toBe(hash)
    expect(record.signedReceipt.body).toMatchObject({ txHash: hash, paymentId: payments[n]!.id })
    const log = receipt.logs.find(({ logIndex }) => logIndex === record.logIndex)!
    const { args } = decodeEventLog({ abi: TRANSFER, ...log })
    expect(args).toMatchObject({ from: payer.address, to: payTo, value: 10_000n })
    const { body } = await redeemToEnd(seller, payments[n]!.header)
    expect(body).toMatchObject({ ok: true, txHash: hash, logIndex: record.logIndex })
  }
})

test('a single waiting payment is sent directly to the USDC contract, and not to the Multicall3 contract for groups', async () => {
  const [payment] = await claimAll(seller, 1)
  await scene.start()
  const { txHash } = await reaches(seller, payment!.id, 'settled')
  const { to } = await till.client.getTransaction({ hash: txHash })
  expect(to?.toLowerCase()).toBe(SEPOLIA.usdcAddress.toLowerCase())
})

test('a hundred payments settle in two groups of at most 64 payments, within the limits of gas and transaction size', async () => {
  const nonce = await scene.nonceOf()
  const payments = await claimAll(seller, 100)
  await scene.start()
  await allSettle(payments)
  const groups = await transactionsOf(till, payments)
  expect(groups.map(({ members }) => members).toSorted((a, b) => b - a)).toEqual([64, 36])
  expect(await scene.nonceOf()).toBe(nonce + 2)
  for (const { hash, members } of groups) {
    const { gas, input } = await till.client.getTransaction({ hash: hash as `0x${string}` })
    expect(gas).toBe(80_000n + 80_000n * BigInt(members))
    expect(input.length / 2).toBeLessThan(120_000)
  }
})

test('a payment from an account with contract code gets a separate transaction outside of the payment group', async () => {
  const wallet = await deployWallet(till.client, payer.address)
  await fund(till.client, wallet, 1_000_000n)
  const coded = await newPayer(till.client)
  const delegated = await till.client.getCode({ address: wallet })
  const payments = await claimAll(seller, [{}, {}, { account: coded }])
  await till.client.setCode({ address: coded.address, bytecode: delegated! })
  await scene.start()
  await reaches(seller, payments[0]!.id, 'settled')
  await reaches(seller, payments[1]!.id, 'settled')
  const [group] = await transactionsOf(till, payments.slice(0, 2))
  expect(group).toMatchObject({ members: 2, state: 'mined' })
  // The third payment fails, because the payer’s account got the code of a wallet that refuses the signature.
  await reaches(seller, payments[2]!.id, 'failed')
})

describe('if the token contract refuses one payment of a group, the other payments still settle', () => {
  test('if the token contract refuses one payment of a group, only this payment fails, and the others settle', async () => {
    const poor = await newPayer(till.client, 9_999n)
    const barred = await newPayer(till.client)
    const payments = await claimAll(seller, [{}, { account: poor }, {}, { account: barred }, {}])
    const blacklist = { functionName: 'blacklist', args: [barred.address] } as const
    await till.client.waitForTransactionReceipt({ hash: await callToken(till.client, blacklist) })
    await scene.start()
    await allSettle([payments[0]!, payments[2]!, payments[4]!])
    expect(await reaches(seller, payments[1]!.id, 'failed')).toMatchObject({
      failureReason: 'insufficient_funds',
      txHash: null,
    })
    expect(await reaches(seller, payments[3]!.id, 'failed')).toMatchObject({
      failureReason: 'invalid_transaction_state',
      failureDetail: 'Blacklistable: account is blacklisted',
    })
    const groups = await transactionsOf(till, payments)
    expect(groups.map(({ members }) => members)).toEqual([3])
  })

  test('if a payer has money for only three of its five payments in a group, three payments settle and two do not', async () => {
    const before = await scene.received()
    const account = await newPayer(till.client, 30_000n)
    const payments = await claimAll(
      seller,
      Array.from({ length: 5 }, () => ({ account })),
    )
    await scene.start()
    const ends = await Promise.all(
      payments.map(async ({ id }) => {
        const { body } = await redeemToEnd(seller, payments.find((one) => one.id === id)!.header)
        return body
      }),
    )
    expect(await scene.received()).toBe(before + 30_000n)
    expect(ends.filter(({ ok }) => ok)).toHaveLength(3)
    expect(ends.filter(({ reason }) => reason === 'insufficient_funds')).toHaveLength(2)
  })

  test('a payment is settled by the transaction that used its authorization, and fails if the authorization was cancelled', async () => {
    const payments = await claimAll(seller, 4)
    const foreign = await broadcastPayment(till.client, payments[1]!)
    await till.client.waitForTransactionReceipt({ hash: foreign })
    await cancelPayment(till.client, payer, payments[2]!.authorization.nonce)
    await scene.start()
    const [first, front, last] = await allSettle([payments[0]!, payments[1]!, payments[3]!])
    expect(front.txHash).toBe(foreign)
    expect(first.txHash).toBe(last.txHash)
    expect(first.txHash).not.toBe(foreign)
    expect(await reaches(seller, payments[2]!.id, 'failed')).toMatchObject({
      failureReason: 'invalid_exact_evm_nonce_already_used',
    })
  })
})

test('on a chain without Multicall3 each payment gets a separate transaction', async () => {
  const code = await till.client.getCode({ address: MULTICALL3_ADDRESS })
  await till.client.setCode({ address: MULTICALL3_ADDRESS, bytecode: '0x' })
  const payments = await claimAll(seller, 3)
  await scene.start()
  await allSettle(payments)
  expect((await transactionsOf(till, payments)).map(({ members }) => members)).toEqual([1, 1, 1])
  await till.client.setCode({ address: MULTICALL3_ADDRESS, bytecode: code! })
})

test('projects with payments in one transaction share the gas cost in proportion to their payments', async () => {
  const [one, two] = [await till.newSeller(), await till.newSeller()]
  const payments = [...(await claimAll(one, 2)), ...(await claimAll(two, 1))]
  await scene.start()
  const { txHash } = await reaches(one, payments[0]!.id, 'settled')
  const receipt = await till.client.getTransactionReceipt({ hash: txHash })
  const gasOf = async ({ project }: Agent) =>
    (await till.service.platform.get(`/v0/platform/projects/${project.id}`)).body.usage.dailyGas
  const shares = await waitFor('the gas', async () => {
    const found = [await gasOf(one), await gasOf(two)] as const
    return found[0] + found[1] === Number(receipt.gasUsed) ? found : null
  })
  expect(Math.abs(shares[0] - 2 * shares[1])).toBeLessThan(5)
})
