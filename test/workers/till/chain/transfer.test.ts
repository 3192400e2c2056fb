/** Tests which log events of a transaction prove the transfer of one payment. */
import { expect, test } from 'bun:test'
import { type Address, encodeAbiParameters, encodeEventTopics, type Hex, pad, parseAbi } from 'viem'
import {
  plainTransfers,
  readTransfers,
  transferCall,
  transferData,
  transferGas,
  transferIndex,
} from '../../../../workers/till/chain/transfer.ts'
import { MULTICALL3_ADDRESS } from '../../../../workers/till/wallets/walletDeployment.ts'
import { payer, payTo, SEPOLIA } from '../../../support/till/till.ts'

const ABI = parseAbi([
  'event Transfer(address indexed from, address indexed to, uint256 value)',
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
])
const other: Address = '0x00000000000000000000000000000000000000AA'
const nonce = pad('0x5a')
const payment = {
  asset: SEPOLIA.usdcAddress,
  payer: payer.address,
  recipient: payTo,
  amountAtomic: 10_000n,
  validAfter: 0n,
  validBefore: 1n,
  nonce,
}

type Log = { address: Address; topics: Hex[]; data: Hex }
const used = ({ authorizer = payer.address, of = nonce, address = payment.asset } = {}): Log => ({
  address,
  topics: encodeEventTopics({
    abi: ABI,
    eventName: 'AuthorizationUsed',
    args: { authorizer, nonce: of },
  }) as Hex[],
  data: '0x',
})
const moved = ({
  from = payer.address,
  to = payTo as Address,
  value = 10_000n,
  address = payment.asset,
} = {}): Log => ({
  address,
  topics: encodeEventTopics({ abi: ABI, eventName: 'Transfer', args: { from, to } }) as Hex[],
  data: encodeAbiParameters([{ type: 'uint256' }], [value]),
})

test.each<[string, boolean, Log[]]>([
  ['both events', true, [used(), moved()]],
  [
    'both events among other events',
    true,
    [moved({ value: 1n }), used({ of: pad('0x5b') }), used(), moved()],
  ],
  ['a transfer that is not the next event', false, [used(), moved({ value: 1n }), moved()]],
  ['a use after the transfer', false, [moved(), used()]],
  ['no event', false, []],
  ['the transfer alone', false, [moved()]],
  ['the use alone', false, [used()]],
  ['a use by another payer', false, [used({ authorizer: other }), moved()]],
  ['a use of another nonce', false, [used({ of: pad('0x5b') }), moved()]],
  ['a transfer from another payer', false, [used(), moved({ from: other })]],
  ['a transfer to another recipient', false, [used(), moved({ to: other })]],
  ['a smaller transfer', false, [used(), moved({ value: 9_999n })]],
  ['a larger transfer', false, [used(), moved({ value: 10_001n })]],
  ['a transfer of another token', false, [used(), moved({ address: other })]],
  ['a use at another token', false, [used({ address: other }), moved()]],
])('the transfer in a transaction with %s counts as proved: %p', (_, proved, logs) => {
  const numbered = logs.map((log, n) => ({ ...log, logIndex: BigInt(n) }))
  const found = transferIndex(readTransfers(numbered, payment.asset), payment)
  expect(found !== null).toBe(proved)
})

test('the gas limit of a transfer depends on the payer: a plain account, a wallet contract, or a wallet that must first be deployed', () => {
  const account = { signature: `0x${'11'.repeat(65)}`, deployment: null } as const
  const deployment = { factory: other, factoryData: '0x' } as const
  const bounds = [
    account,
    { ...account, signature: `0x${'11'.repeat(66)}` as Hex },
    { ...account, deployment },
  ].map(transferGas)
  expect(bounds).toEqual([160_000n, 500_000n, 1_500_000n])
})

test('a transfer calls the token contract directly, or calls Multicall3 if the payer’s wallet must first be deployed', () => {
  const transfer = { ...payment, signature: `0x${'11'.repeat(65)}`, deployment: null } as const
  const data = transferData(transfer)
  expect(transferCall(transfer)).toEqual({ to: payment.asset, data, gas: 160_000n })
  const deployment = { factory: other, factoryData: '0x1234' } as const
  const deploying = transferCall({ ...transfer, deployment })
  expect([deploying.to, deploying.gas]).toEqual([MULTICALL3_ADDRESS, 1_500_000n])
  expect(deploying.data).toContain(data.slice(2))
})

test.each<[string, number[], Log[]]>([
  ['the transfer', [0], [moved()]],
  ['the transfer twice', [0, 2], [moved(), used(), moved()]],
  ['a transfer from another payer', [], [moved({ from: other })]],
  ['a transfer to another recipient', [], [moved({ to: other })]],
  ['a transfer of another amount', [], [moved({ value: 9_999n })]],
  ['a transfer of another token', [], [moved({ address: other })]],
  ['a transfer without an amount', [], [{ ...moved(), data: '0x' }]],
  ['a transfer with one topic', [], [{ ...moved(), topics: moved().topics.slice(0, 1) }]],
  ['no transfer', [], [used()]],
])(
  'a transaction receipt with %s proves the transfers with the log indexes %p',
  (_, indexes, logs) => {
    const numbered = logs.map((log, n) => ({ ...log, logIndex: BigInt(n) }))
    const { asset, amountAtomic } = payment
    const wanted = { asset, payer: payer.address, payTo: payTo as Address, amountAtomic }
    expect(plainTransfers(numbered, wanted)).toEqual(indexes)
  },
)
