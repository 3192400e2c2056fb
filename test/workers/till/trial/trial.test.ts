/** Tests which gas wallet pays for the next transaction. */
import { expect, test } from 'bun:test'
import { privateKeyToAccount } from 'viem/accounts'
import type { KnownChain } from '../../../../workers/till/chain/chainView.ts'
import { marketFees } from '../../../../workers/till/settle/gasWallet.ts'
import { nextAccount } from '../../../../workers/till/trial/trial.ts'
import { blockAt } from '../../../support/till/handChain.ts'

const GAS = 100_000n
const accounts = [1, 2].map((n) => privateKeyToAccount(`0x${String(n).repeat(64)}`))

test('a gas wallet pays for a transaction only if its balance covers the highest possible fee', () => {
  const fees = { head: blockAt(9n, { baseFeePerGas: 1_000_000n }), tipWei: 2n }
  const neededWei = marketFees(fees).maxFeeWei * GAS
  for (const [balances, payers] of [
    [
      [neededWei, neededWei],
      [0, 1, 0],
    ],
    [
      [neededWei - 1n, neededWei],
      [1, 1, 1],
    ],
    [
      [neededWei - 1n, 0n],
      [-1, -1, -1],
    ],
    [[], [0, 1, 0]],
  ] as [bigint[], number[]][]) {
    const known = balances.map((wei, n) => [accounts[n]!.address.toLowerCase(), wei] as const)
    const chosen = payers.map((_, batches) => {
      const chain = { ...fees, accounts, balances: new Map(known), batches } as Partial<KnownChain>
      return accounts.indexOf(nextAccount(chain as KnownChain, GAS)!)
    })
    expect([balances, chosen]).toEqual([balances, payers])
  }
})
