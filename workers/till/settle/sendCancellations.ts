/** Sends the cancellations of stopped purses: one transaction of a gas wallet, in which each succeeds or fails by itself. */
import { encodeFunctionData, multicall3Abi } from 'viem'
import { takeCancellations } from '../../../sql/purse/stop.ts'
import type { KnownChain } from '../chain/chainView.ts'
import { cancellationData } from '../chain/transfer.ts'
import { nextAccount } from '../trial/trial.ts'
import { MULTICALL3_ADDRESS } from '../wallets/walletDeployment.ts'
import { sendCall } from './gasWallet.ts'

const BATCH_MAX = 32
const GAS_BASE = 80_000n
/** 53,000 gas were measured. */
const GAS_OF_CANCELLATION = 80_000n

/**
 * Cancels what is signed and unused. The seller may be faster: the chain shows which came first. Without gas or after a
 * crash the cancellation is taken again, and the second one of the same nonce changes nothing.
 */
export async function sendCancellations(chain: KnownChain): Promise<void> {
  const due = await takeCancellations(chain.pool, chain.network.network, BATCH_MAX)
  if (due.length === 0) return
  const gas = GAS_BASE + GAS_OF_CANCELLATION * BigInt(due.length)
  const account = nextAccount(chain, gas)
  if (account === null) {
    chain.log.error(
      { purchases: due.length },
      'no gas wallet can cancel the payments of a stopped purse',
    )
    return
  }
  const calls = due.map((one) => ({
    target: one.asset,
    allowFailure: true,
    callData: cancellationData(one),
  }))
  const data = encodeFunctionData({
    abi: multicall3Abi,
    functionName: 'aggregate3',
    args: [calls],
  })
  await sendCall(chain, account, { to: MULTICALL3_ADDRESS, data, gas })
}
