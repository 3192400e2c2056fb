/** The token's side of a payment: the call that moves the money, its refusals, and the events that prove it moved. */
import {
  type Address,
  decodeErrorResult,
  encodeFunctionData,
  type Hex,
  parseAbi,
  parseEventLogs,
  toEventSelector,
} from 'viem'
import type { X402Reason } from '../shared/x402.ts'

const TOKEN_ABI = parseAbi([
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
  'event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)',
  'error Error(string)',
])

export const AUTHORIZATION_USED = toEventSelector('AuthorizationUsed(address,bytes32)')
export const AUTHORIZATION_CANCELED = toEventSelector('AuthorizationCanceled(address,bytes32)')

/** An EIP-3009 transfer; times in Unix seconds, the amount in atomic units. */
export type Transfer = {
  asset: Address
  payer: Address
  recipient: Address
  amountAtomic: bigint
  validAfter: bigint
  validBefore: bigint
  nonce: Hex
  signature: Hex
}

/** A transfer signed by an account: 102,856 gas were measured for a new recipient. */
const ACCOUNT_GAS = 160_000n
/** A wallet contract runs code of its own; the bound keeps it from burning what we pay. */
const CONTRACT_GAS = 500_000n
const ACCOUNT_SIGNATURE_CHARS = 132

/** The gas limit to simulate and to sign with. */
export const transferGas = ({ signature }: Pick<Transfer, 'signature'>): bigint =>
  signature.length === ACCOUNT_SIGNATURE_CHARS ? ACCOUNT_GAS : CONTRACT_GAS

/** Call data of the transfer. The `bytes` form serves accounts and wallet contracts alike. */
export function transferData(transfer: Transfer): Hex {
  return encodeFunctionData({
    abi: TOKEN_ABI,
    functionName: 'transferWithAuthorization',
    args: [
      transfer.payer,
      transfer.recipient,
      transfer.amountAtomic,
      transfer.validAfter,
      transfer.validBefore,
      transfer.nonce,
      transfer.signature,
    ],
  })
}

/** Call data that asks whether an authorization is used or cancelled. */
export function authorizationStateData({ payer, nonce }: Pick<Transfer, 'payer' | 'nonce'>): Hex {
  return encodeFunctionData({
    abi: TOKEN_ABI,
    functionName: 'authorizationState',
    args: [payer, nonce],
  })
}

/** Why the token refuses a transfer, as far as it concerns us. */
export type Refusal = {
  /** `used`: spent or cancelled, by whomever. `expired`, `early`: judged by the time of a block. */
  kind: 'used' | 'expired' | 'early' | 'final'
  reason: X402Reason
  detail: string
}

/** The revert strings of FiatTokenV2_2 and its libraries, and what each means in x402. */
const REVERTS: readonly [RegExp, Refusal['kind'], X402Reason][] = [
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

/** Reads a revert. What we do not know is final too: the chain has said no. */
export function readRefusal({ message, data }: { message: string; data: unknown }): Refusal {
  const detail = (revertString(data) ?? message.replace(/^execution reverted:?\s*/i, '')).slice(
    0,
    DETAIL_CHARS_MAX,
  )
  for (const [pattern, kind, reason] of REVERTS) {
    if (pattern.test(detail)) return { kind, reason, detail }
  }
  return { kind: 'final', reason: 'invalid_transaction_state', detail: detail || 'reverted' }
}

function revertString(data: unknown): string | null {
  if (typeof data !== 'string' || !/^0x08c379a0([0-9a-f]{2})+$/i.test(data)) return null
  try {
    return String(decodeErrorResult({ abi: TOKEN_ABI, data: data as Hex }).args[0])
  } catch {
    return null
  }
}

type Log = { address: Address; topics: readonly Hex[]; data: Hex }

/**
 * Whether these logs of one transaction hold the transfer: a receipt that says "success" proves nothing by itself, for
 * a wallet can be asked to run anything.
 */
export function movedMoney(logs: readonly Log[], transfer: Omit<Transfer, 'signature'>): boolean {
  const own = logs.filter((log) => log.address.toLowerCase() === transfer.asset.toLowerCase())
  const events = parseEventLogs({ abi: TOKEN_ABI, logs: own as never, strict: true })
  const same = (left: string, right: string) => left.toLowerCase() === right.toLowerCase()
  const used = events.some(
    (event) =>
      event.eventName === 'AuthorizationUsed' &&
      same(event.args.authorizer, transfer.payer) &&
      same(event.args.nonce, transfer.nonce),
  )
  const moved = events.some(
    (event) =>
      event.eventName === 'Transfer' &&
      same(event.args.from, transfer.payer) &&
      same(event.args.to, transfer.recipient) &&
      event.args.value === transfer.amountAtomic,
  )
  return used && moved
}
