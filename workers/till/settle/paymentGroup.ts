/**
 * Builds one transaction that settles several payments. The contract Multicall3 makes one call for each payment, and
 * each call may fail without affecting the others.
 */
import {
  type Address,
  decodeFunctionResult,
  encodeFunctionData,
  type Hex,
  multicall3Abi,
} from 'viem'
import type { Transfer } from '../../../shared/till/authorization.ts'
import { transferData } from '../chain/transfer.ts'
import { MULTICALL3_ADDRESS } from '../wallets/walletDeployment.ts'

/**
 * Limits how many payments a group has. A larger group hardly saves gas, because a payment takes 52,000 gas in a group
 * of 32, and 51,400 gas in a group of 64.
 */
export const GROUP_MAX = 64
/**
 * The following constants set the gas limit of a group transaction: GAS_BASE for the call of Multicall3 itself, and
 * GAS_OF_MEMBER for each payment. A measured payment to a recipient without USDC took 73,800 gas in a group.
 */
const GAS_BASE = 80_000n
const GAS_OF_MEMBER = 80_000n
/**
 * Limits the gas of a transaction that settles a group of payments. No chain accepts a transaction with more gas
 * (EIP-7825). The service must keep this limit itself, because some chain nodes refuse such a transaction without
 * reporting the refusal.
 */
const GAS_BOUND = 2n ** 24n

/** Returns the gas limit of the transaction that settles a group of payments. */
export function groupGas(members: number): bigint {
  const gas = GAS_BASE + GAS_OF_MEMBER * BigInt(members)
  if (members > GROUP_MAX || gas >= GAS_BOUND) throw new Error(`a group of ${members} payments`)
  return gas
}

/** Returns the contract call that settles a group of payments. */
export function groupCall(transfers: readonly Transfer[]): { to: Address; data: Hex; gas: bigint } {
  const calls = transfers.map((transfer) => ({
    target: transfer.asset,
    allowFailure: true,
    callData: transferData(transfer),
  }))
  return {
    to: MULTICALL3_ADDRESS,
    data: encodeFunctionData({ abi: multicall3Abi, functionName: 'aggregate3', args: [calls] }),
    gas: groupGas(transfers.length),
  }
}

/**
 * Reads the result of `groupCall`, which has one entry for each payment. Returns `null` if the contract Multicall3 did
 * not respond.
 */
export function readGroup(
  result: unknown,
  members: number,
): readonly { success: boolean; returnData: Hex }[] | null {
  try {
    const results = decodeFunctionResult({
      abi: multicall3Abi,
      functionName: 'aggregate3',
      data: result as Hex,
    })
    return results.length === members ? results : null
  } catch {
    return null
  }
}
