/** Tests the transaction that deploys a payer's smart wallet and transfers the payment from this wallet. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { concat, encodeFunctionData, encodeFunctionResult, multicall3Abi, parseAbi } from 'viem'
import { deployAndCharge, readTrial } from '../../../../workers/till/wallets/walletDeployment.ts'
import { type HandTill, startHandTill } from '../../../support/till/handTill.ts'
import { futureWallet } from '../../../support/till/smartWallet.ts'
import { payer, SEPOLIA } from '../../../support/till/till.ts'
import { stranger } from '../../../support/till/tokenCalls.ts'

let till: HandTill
beforeAll(async () => {
  till = await startHandTill()
})
afterAll(() => till[Symbol.asyncDispose]())

const run = async (call: ReturnType<typeof deployAndCharge>) => {
  const transaction = { account: stranger, chain: null, ...call, gas: 2_000_000n }
  const hash = await till.client.sendTransaction(transaction)
  return (await till.client.waitForTransactionReceipt({ hash })).status
}
const abi = parseAbi(['function totalSupply()', 'function nothing()'])
const charge = (functionName: 'totalSupply' | 'nothing') => ({
  to: SEPOLIA.usdcAddress,
  data: encodeFunctionData({ abi, functionName }),
})
const codeOf = (address: `0x${string}`) => till.client.getCode({ address })

test('if the payment transfer fails, the deployment of the payer’s wallet in the same transaction is undone', async () => {
  const { address, deployment } = futureWallet(payer.address)
  const failing = deployAndCharge(deployment, charge('nothing'), { trial: false })
  expect(await run(failing)).toBe('reverted')
  expect(await codeOf(address)).toBeUndefined()
  const passing = deployAndCharge(deployment, charge('totalSupply'), { trial: false })
  expect(await run(passing)).toBe('success')
  expect(await codeOf(address)).toBeDefined()
})

test('if the deployment of the payer’s wallet fails, the payment transfer in the same transaction still succeeds', async () => {
  const { deployment } = futureWallet(payer.address)
  // No contract can have code that begins with the byte 0xef (EIP-3541), so the deployment fails.
  const factoryData = concat([
    deployment.factoryData.slice(0, 66) as `0x${string}`,
    '0x60ef60005360016000f3',
  ])
  const call = deployAndCharge({ ...deployment, factoryData }, charge('totalSupply'), {
    trial: false,
  })
  expect(await run(call)).toBe('success')
})

test('a simulated wallet deployment gives a result only if Multicall3 returns the results of both calls', () => {
  const results = [
    { success: true, returnData: '0x' },
    { success: false, returnData: '0x12' },
  ] as const
  const told = (count: number) =>
    encodeFunctionResult({
      ...{ abi: multicall3Abi, functionName: 'aggregate3' },
      result: results.slice(0, count),
    } as const)
  expect(readTrial(told(2))).toEqual({ deployed: true, charge: results[1] })
  for (const wrong of [told(1), told(0), '0x', 'nonsense', null, undefined, 7, { data: told(2) }]) {
    expect([wrong, readTrial(wrong)]).toEqual([wrong, null])
  }
})
