/**
 * Sends, through a gas wallet, contract calls that purses (wallets of projects) have signed: cancellations of payments,
 * withdrawals (sweeps) and refunds.
 */
import { type Address, encodeFunctionData, type Hex, multicall3Abi } from 'viem'
import { recordUnsentCalls } from '../../../sql/purse/callTurns.ts'
import { GAS_OF_CALL } from '../../../sql/purse/purseGas.ts'
import { takeCancellations } from '../../../sql/purse/stop.ts'
import { takeTransfers } from '../../../sql/purse/transferOut.ts'
import type { KnownChain } from '../chain/chainView.ts'
import { cancellationData, transferData } from '../chain/transfer.ts'
import { nextAccount } from '../trial/trial.ts'
import { MULTICALL3_ADDRESS } from '../wallets/walletDeployment.ts'
import { sendCall } from './gasWallet.ts'

const BATCH_MAX = 32
const GAS_BASE = 80_000n

/**
 * Sends the waiting calls of purses in one transaction, in which each call may fail without affecting the others. A
 * cancellation fails, for example, if the seller has collected the payment before. Therefore the service reads the
 * result of each call from the chain. If a gas wallet had no gas, or if the process crashed, the service sends a call
 * again. This is safe, because a second call with the same authorization nonce changes nothing.
 */
export async function sendPurseCalls(chain: KnownChain): Promise<void> {
  const { network } = chain.network
  const cancellations = await takeCancellations(chain.pool, network, BATCH_MAX)
  const transfers = await takeTransfers(chain.pool, network, BATCH_MAX)
  const calls = [
    ...cancellations.map((one) => callOf(one.asset, cancellationData(one))),
    ...transfers.map((one) => callOf(one.asset, transferData({ ...one, deployment: null }))),
  ]
  if (calls.length === 0) return
  const gas = GAS_BASE + GAS_OF_CALL * BigInt(calls.length)
  const account = nextAccount(chain, gas)
  if (account === null) {
    const ids = [...cancellations, ...transfers].map(({ id }) => id)
    await recordUnsentCalls(chain.pool, ids)
    chain.log.error({ calls: calls.length }, 'no gas wallet can send the calls of purses')
    return
  }
  const data = encodeFunctionData({
    abi: multicall3Abi,
    functionName: 'aggregate3',
    args: [calls],
  })
  await sendCall(chain, account, { to: MULTICALL3_ADDRESS, data, gas })
}

const callOf = (target: Address, callData: Hex) => ({ target, allowFailure: true, callData })
