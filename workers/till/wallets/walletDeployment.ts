/** Deploys the wallet of a payer and charges this wallet in the same transaction (ERC-6492). */
import {
  type Address,
  decodeFunctionResult,
  encodeFunctionData,
  type Hex,
  multicall3Abi,
} from 'viem'
import type { WalletDeployment } from '../../../shared/till/authorization.ts'

/** The contract Multicall3 has this address on Base, Base Sepolia and the devnet. */
export const MULTICALL3_ADDRESS: Address = '0xcA11bde05977b3631167028862bE2a173976CA11'

type Call = { to: Address; data: Hex }

/**
 * Returns one contract call that deploys the wallet of a payer and then charges this wallet. The payer chose the call
 * data for the wallet factory. Therefore Multicall3, which owns nothing, calls the factory. If a gas wallet called the
 * factory, the call data would run with the rights of this service. The deployment may fail, because another party may
 * have deployed the wallet just before. Therefore only the result of charging the wallet decides about the payment.
 * @param trial asks for a call that does not revert if the payment from the wallet fails. Its result tells why the
 * payment failed.
 */
export function deployAndCharge(
  { factory, factoryData }: WalletDeployment,
  charge: Call,
  { trial }: { trial: boolean },
): Call {
  const calls = [
    { target: factory, allowFailure: true, callData: factoryData },
    { target: charge.to, allowFailure: trial, callData: charge.data },
  ]
  const data = encodeFunctionData({
    abi: multicall3Abi,
    functionName: 'aggregate3',
    args: [calls],
  })
  return { to: MULTICALL3_ADDRESS, data }
}

/**
 * Reads the result of a simulated call that {@link deployAndCharge} built. Returns `null` if the contract Multicall3
 * did not respond.
 */
export function readTrial(result: unknown): { deployed: boolean; charge: TrialResult } | null {
  try {
    const [deployment, charge] = decodeFunctionResult({
      abi: multicall3Abi,
      functionName: 'aggregate3',
      data: result as Hex,
    })
    return deployment && charge ? { deployed: deployment.success, charge } : null
  } catch {
    return null
  }
}

type TrialResult = { success: boolean; returnData: Hex }
