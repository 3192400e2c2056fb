/** Tests how the simulation of a payment group divides the payments of the group. */
import { afterEach, expect, test } from 'bun:test'
import {
  decodeFunctionData,
  encodeErrorResult,
  encodeFunctionResult,
  type Hex,
  multicall3Abi,
  pad,
  parseAbi,
  toHex,
} from 'viem'
import type { Payment } from '../../../../sql/till/payments/payments.ts'
import type { KnownChain } from '../../../../workers/till/chain/chainView.ts'
import { createRpc } from '../../../../workers/till/chain/rpc.ts'
import { tryGroup } from '../../../../workers/till/trial/groupTrial.ts'
import { MULTICALL3_ADDRESS } from '../../../../workers/till/wallets/walletDeployment.ts'
import { startNode } from '../../../support/till/fakeNode.ts'
import { blockAt } from '../../../support/till/handChain.ts'
import { payTo, SEPOLIA } from '../../../support/till/headers/payment.ts'

type Outcome = 'passes' | 'early' | 'poor'
type Block = 'latest' | 'pending'
type Scene = {
  /**
   * Holds the simulated outcome of each payment on a block. If a block has no outcomes, the simulation fails.
   */
  on: Partial<Record<Block, Outcome[]>>
  /** Lists the numbers of those payments whose payers have contract code. */
  coded?: number[]
  hasMulticall?: boolean
}

const REASONS = {
  early: 'FiatTokenV2: authorization is not yet valid',
  poor: 'ERC20: transfer amount exceeds balance',
}
const entryOf = (outcome: Outcome) =>
  outcome === 'passes'
    ? { success: true, returnData: '0x' as Hex }
    : {
        success: false,
        returnData: encodeErrorResult({
          abi: parseAbi(['error Error(string)']),
          args: [REASONS[outcome]],
        }),
      }

const payments = Array.from({ length: 4 }, (_, n) => ({
  id: `pay_${n}`,
  asset: SEPOLIA.usdcAddress,
  payer: pad(toHex(0xa0 + n), { size: 20 }),
  recipient: payTo,
  amountAtomic: 1n,
  validAfter: 0n,
  validBefore: 1n,
  nonce: pad(toHex(0xbeef00 + n)),
  signature: `0x${'11'.repeat(65)}`,
  deployment: null,
})) as unknown as Payment[]

let stop = () => {}
afterEach(() => stop())

/**
 * Simulates a payment group of the first `count` payments, and returns the numbers of the payments in each part of the
 * result.
 */
async function divide(count: number, { on, coded = [], hasMulticall = true }: Scene) {
  const asked: [Block, number[]][] = []
  const node = startNode((method, [first, block]) => {
    if (method === 'eth_getCode') {
      if (first === MULTICALL3_ADDRESS) return hasMulticall ? '0xc0de' : '0x'
      return coded.some((n) => payments[n]!.payer === first) ? '0xc0de' : '0x'
    }
    const { args } = decodeFunctionData({ abi: multicall3Abi, data: first.data })
    const calls = args![0] as readonly { callData: Hex }[]
    const members = calls.map(({ callData }) =>
      payments.findIndex(({ nonce }) => callData.includes(nonce.slice(2))),
    )
    asked.push([block, members])
    const outcomes = on[block as Block]
    if (outcomes === undefined) return { error: { code: -32000, message: 'no such block' } }
    return encodeFunctionResult({
      abi: multicall3Abi,
      functionName: 'aggregate3',
      result: members.map((n) => entryOf(outcomes[n]!)),
    })
  })
  stop = () => node[Symbol.dispose]()
  const chain = { rpc: createRpc({ url: node.url }), head: blockAt(10n) } as KnownChain
  const sender = { from: payTo, fees: null } as const
  const parts = await tryGroup(chain, payments.slice(0, count), sender)
  const numbers = (some: Payment[]) => some.map((payment) => payments.indexOf(payment))
  return {
    parts: [numbers(parts.members), numbers(parts.apart), numbers(parts.refused)],
    asked,
  }
}

test('the simulation of a payment group keeps the payments that succeed together, and refuses the other payments', async () => {
  expect(await divide(3, { on: { latest: ['passes', 'poor', 'passes'] } })).toEqual({
    parts: [[0, 2], [], [1]],
    asked: [['latest', [0, 1, 2]]],
  })
})

test('the simulation of a payment group separates the payments of payers with contract code, and then simulates the remaining payments again', async () => {
  const on = { latest: ['passes', 'passes', 'passes', 'poor'] } as const
  expect(await divide(4, { on: { latest: [...on.latest] }, coded: [1] })).toEqual({
    parts: [[0, 2], [1], [3]],
    asked: [
      ['latest', [0, 1, 2, 3]],
      ['latest', [0, 2, 3]],
    ],
  })
  const two = await divide(3, { on: { latest: [...on.latest] }, coded: [1] })
  expect(two.parts).toEqual([[0, 2], [1], []])
})

test('no payment group is formed from fewer than two payments, or without the contract Multicall3', async () => {
  const on = { latest: ['passes', 'passes'] } satisfies Scene['on']
  expect((await divide(2, { on, coded: [0] })).parts).toEqual([[], [0, 1], []])
  expect((await divide(2, { on, hasMulticall: false })).parts).toEqual([[], [0, 1], []])
  expect((await divide(2, { on })).parts).toEqual([[0, 1], [], []])
})

test('a payment that is not yet valid is simulated again on the pending block, without the refused payments of its group', async () => {
  const on = {
    latest: ['passes', 'early', 'poor', 'early'],
    pending: ['passes', 'passes', 'passes', 'early'],
  } satisfies Scene['on']
  expect(await divide(4, { on })).toEqual({
    parts: [[0, 1], [], [2, 3]],
    asked: [
      ['latest', [0, 1, 2, 3]],
      ['pending', [0, 1, 3]],
    ],
  })
})

test('all payments of a group get separate transactions if the chain node cannot simulate the group', async () => {
  expect((await divide(2, { on: {} })).parts).toEqual([[], [0, 1], []])
  expect((await divide(2, { on: { latest: ['passes', 'early'] } })).parts).toEqual([[], [0, 1], []])
})
