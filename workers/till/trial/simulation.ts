/** Reads the responses of the chain to simulated transfers. */
import { decodeErrorResult, type Hex, parseAbi } from 'viem'
import { storableLine } from '../../../shared/storable.ts'
import type { Transfer } from '../../../shared/till/authorization.ts'
import type { X402Reason } from '../../../shared/till/x402.ts'
import type { RpcAnswer } from '../chain/rpc.ts'
import { readTrial } from '../wallets/walletDeployment.ts'

/** Tells why the token contract refuses a transfer. */
export type ChainRefusal = {
  /**
   * Tells why the transfer is refused. The reason `used` means that a transaction spent or cancelled the payment
   * authorization. The reasons `expired` and `early` depend on the time of a block. The reason `suspended` means that
   * this service refuses the payer without asking the chain.
   */
  kind: 'used' | 'expired' | 'early' | 'final' | 'suspended'
  reason: X402Reason
  detail: string
}

/**
 * Describes the outcome of a simulated transfer. The outcome `trouble` means that the chain node could not simulate the
 * transfer.
 */
export type Simulated =
  | { kind: 'passes' }
  | { kind: 'refused'; refusal: ChainRefusal }
  | { kind: 'trouble'; detail: string }

/** Maps the revert strings of the contract FiatTokenV2_2 and its libraries to x402 reasons. */
const REVERTS: readonly [RegExp, ChainRefusal['kind'], X402Reason][] = [
  [/authorization is used or canceled/, 'used', 'invalid_exact_evm_nonce_already_used'],
  [/authorization is expired/, 'expired', 'invalid_exact_evm_payload_authorization_valid_before'],
  [
    /authorization is not yet valid/,
    'early',
    'invalid_exact_evm_payload_authorization_valid_after',
  ],
  [/invalid signature|ECRecover/, 'final', 'invalid_exact_evm_payload_signature'],
  [/exceeds balance/, 'final', 'insufficient_funds'],
]

const DETAIL_CHARS_MAX = 200

/** Holds the JSON-RPC error code of a reverted call (Geth and clients that follow it). */
const REVERTED = 3

/**
 * Matches the error messages of reverted calls. If a call uses up its gas, geth, reth and erigon report "out of gas",
 * and anvil reports "OutOfGas". Running out of gas counts as a verdict on the payment, because this service sets the
 * gas limit, and no wallet may use more gas.
 */
const VERDICT = /revert|out ?of ?gas/i

/** Reads the response to `eth_call` with the simulated form of `transferCall`. */
export function readSimulation(
  { deployment }: Pick<Transfer, 'deployment'>,
  answer: RpcAnswer,
): Simulated {
  if (answer.ok) return deployment === null ? { kind: 'passes' } : readTrialResult(answer.result)
  if (answer.code !== REVERTED && !VERDICT.test(answer.message)) {
    return { kind: 'trouble', detail: answer.message.slice(0, DETAIL_CHARS_MAX) }
  }
  const refusal = readRevert(answer.message, answer.data)
  // Multicall3 catches both a revert of the deployment and a revert of the payment from the wallet. Therefore, if the
  // whole call of Multicall3 reverts, the call ran out of gas.
  return deployment === null ? { kind: 'refused', refusal } : notDeployed(refusal)
}

/**
 * Reads the result of a simulation that deploys the wallet of a payer and takes the payment from this wallet. The
 * result tells whether the second step failed.
 */
function readTrialResult(result: unknown): Simulated {
  const trial = readTrial(result)
  if (trial === null) return { kind: 'trouble', detail: 'Multicall3 does not answer' }
  const { deployed, charge } = trial
  if (charge.success) return { kind: 'passes' }
  const refusal = readRevert('', charge.returnData)
  // The transfer failed for one of two reasons. Either the wallet of the payer does not exist, or the deployment of the
  // wallet left no gas for the token contract.
  const walletMissing =
    charge.returnData === '0x' || refusal.reason === 'invalid_exact_evm_payload_signature'
  return walletMissing && !deployed ? notDeployed(refusal) : { kind: 'refused', refusal }
}

const notDeployed = (refusal: ChainRefusal): Simulated => ({
  kind: 'refused',
  refusal: { ...refusal, reason: 'smart_wallet_deployment_failed' },
})

/**
 * Reads why a simulated call reverted. A revert with an unknown text also counts as a final refusal, because the chain
 * has refused the call.
 */
export function readRevert(message: string, data: unknown): ChainRefusal {
  const text = revertString(data) ?? message.replace(/^execution reverted:?\s*/i, '')
  const detail = storableLine(text, DETAIL_CHARS_MAX)
  for (const [pattern, kind, reason] of REVERTS) {
    if (pattern.test(detail)) return { kind, reason, detail }
  }
  return { kind: 'final', reason: 'invalid_transaction_state', detail: detail || 'reverted' }
}

const ERROR_ABI = parseAbi(['error Error(string)'])

function revertString(data: unknown): string | null {
  if (typeof data !== 'string' || !/^0x08c379a0([0-9a-f]{2})+$/i.test(data)) return null
  try {
    return String(decodeErrorResult({ abi: ERROR_ABI, data: data as Hex }).args[0])
  } catch {
    return null
  }
}
