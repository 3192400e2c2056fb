/**
 * Builds one transaction that settles several payments. The contract Multicall3 makes the calls, and each call succeeds
 * or fails independently.
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
 * Limits how many payments a group has. In a larger group the gas for each payment hardly falls: it is 52,000 in a
 * group of 32, and 51,400 in a group of 64.
 */
export const GROUP_MAX = 64
/**
 * Set the gas limit of a group transaction: GAS_BASE for the call itself, and GAS_OF_MEMBER for each payment. The gas
 * of one payment in a group, to a recipient without USDC, was measured at 73,800.
 */
const GAS_BASE = 80_000n
const GAS_OF_MEMBER = 80_000n
/**
 * Limits the gas of a transaction that settles a group of payments. No chain accepts a transaction with more gas
 * (EIP-7825). Not every node reports that it refuses a transaction because of this gas limit.
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
