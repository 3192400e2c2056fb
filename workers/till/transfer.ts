/** The token's side of a payment: the call that transfers USDC, and the events that prove the transfer. */
import {
  type Address,
  encodeFunctionData,
  type Hex,
  parseAbi,
  parseEventLogs,
  toEventSelector,
} from 'viem'
import type { Transfer } from '../../shared/till/authorization.ts'
import { deployAndCharge } from './walletDeployment.ts'

const TOKEN_ABI = parseAbi([
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
  'event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)',
])

export const AUTHORIZATION_USED = toEventSelector('AuthorizationUsed(address,bytes32)')
export const AUTHORIZATION_CANCELED = toEventSelector('AuthorizationCanceled(address,bytes32)')

/** An account's transfer: 102,856 gas were measured for a new recipient. */
const ACCOUNT_GAS = 160_000n
/** A wallet contract runs its own code; the limit bounds the gas it can burn at our expense. */
const CONTRACT_GAS = 500_000n
/** A Safe or a Coinbase Smart Wallet is deployed for less than half of it. */
const DEPLOYMENT_GAS = 1_000_000n
const ACCOUNT_SIGNATURE_CHARS = 132

/** The gas limit of simulation and signing. */
export function transferGas(transfer: Pick<Transfer, 'signature' | 'deployment'>): bigint {
  if (transfer.deployment !== null) return CONTRACT_GAS + DEPLOYMENT_GAS
  return transfer.signature.length === ACCOUNT_SIGNATURE_CHARS ? ACCOUNT_GAS : CONTRACT_GAS
}

/**
 * The call that settles a transfer. It is one transaction even when it deploys the payer's wallet first.
 * @param trial the form for a simulation, read by `readSimulation`.
 */
export function transferCall(
  transfer: Transfer,
  { trial = false }: { trial?: boolean } = {},
): { to: Address; data: Hex; gas: bigint } {
  const charge = { to: transfer.asset, data: transferData(transfer) }
  const { deployment } = transfer
  const call = deployment === null ? charge : deployAndCharge(deployment, charge, { trial })
  return { ...call, gas: transferGas(transfer) }
}

/** Call data of the transfer. The `bytes` form serves accounts and wallet contracts alike. */
function transferData(transfer: Transfer): Hex {
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

type Log = { address: Address; topics: readonly Hex[]; data: Hex }

/**
 * Whether the logs of one transaction hold the transfer. A receipt that says "success" proves nothing: a wallet
 * contract can run any code.
 */
export function movedMoney(
  logs: readonly Log[],
  transfer: Omit<Transfer, 'signature' | 'deployment'>,
): boolean {
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
