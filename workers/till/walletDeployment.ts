/** A payment from a wallet that is not there yet: deployed and charged in one transaction (ERC-6492). */
import {
  type Address,
  decodeFunctionResult,
  encodeFunctionData,
  type Hex,
  multicall3Abi,
} from 'viem'
import type { WalletDeployment } from '../../shared/till/authorization.ts'

/** The same on Base, Base Sepolia and the devnet. */
export const MULTICALL3_ADDRESS: Address = '0xcA11bde05977b3631167028862bE2a173976CA11'

type Call = { to: Address; data: Hex }

/**
 * One call that deploys a wallet and then charges it. The payer chose the data for the factory, so the factory is called
 * by Multicall3, which owns nothing; from a gas wallet it would be a call of the payer's choice in our name. The
 * deployment may fail, for somebody may have deployed the wallet a moment ago: the charge decides.
 * @param trial whether the charge may fail too, so that the answer tells why.
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

/** Reads what a trial of {@link deployAndCharge} returned; null when it is not Multicall3's answer. */
export function readTrial(result: unknown): { deployed: boolean; charge: TrialResult } | null {
  if (typeof result !== 'string') return null
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
