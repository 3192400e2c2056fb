/** Encodes the call that transfers USDC, and reads the events that prove this transfer. */
import {
  type Address,
  encodeFunctionData,
  type Hex,
  pad,
  parseAbi,
  prepareEncodeFunctionData,
  toEventSelector,
} from 'viem'
import type { Transfer } from '../../../shared/till/authorization.ts'
import { deployAndCharge } from '../wallets/walletDeployment.ts'

const TOKEN_ABI = parseAbi([
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
  'function cancelAuthorization(address authorizer, bytes32 nonce, bytes signature)',
  'function balanceOf(address account) view returns (uint256)',
])

/**
 * Holds the selector of the contract function `transferWithAuthorization`. The selector is computed only once, because
 * its hash takes 0.03 ms of the 0.05 ms that encoding the call data takes.
 */
const TRANSFER_FUNCTION = prepareEncodeFunctionData({
  abi: TOKEN_ABI,
  functionName: 'transferWithAuthorization',
})

export const AUTHORIZATION_USED = toEventSelector('AuthorizationUsed(address,bytes32)')
export const TRANSFER = toEventSelector('Transfer(address,address,uint256)')
export const AUTHORIZATION_CANCELED = toEventSelector('AuthorizationCanceled(address,bytes32)')

/**
 * Limits the gas of a USDC transfer from an account without code. A USDC transfer to a new recipient was measured at
 * 102,856 gas.
 */
const ACCOUNT_GAS = 160_000n
/**
 * Limits the gas of a USDC transfer from a wallet contract, because the wallet contract runs its own code, and can use
 * up gas at the operator's expense.
 */
const CONTRACT_GAS = 500_000n
/**
 * Limits the gas for deploying the wallet contract of a payer. The deployment of a Safe or a Coinbase Smart Wallet
 * needs less than half of this limit.
 */
const DEPLOYMENT_GAS = 1_000_000n
const ACCOUNT_SIGNATURE_CHARS = 132

/** Returns the gas limit with which a USDC transfer is simulated and signed. */
export function transferGas(transfer: Pick<Transfer, 'signature' | 'deployment'>): bigint {
  if (transfer.deployment !== null) return CONTRACT_GAS + DEPLOYMENT_GAS
  return transfer.signature.length === ACCOUNT_SIGNATURE_CHARS ? ACCOUNT_GAS : CONTRACT_GAS
}

/**
 * Returns the contract call that settles a USDC transfer. The settlement is one transaction, even if the contract call
 * first deploys the wallet of the payer.
 * @param trial selects a variant of the contract call that the service only simulates and never sends. The function
 * `readSimulation` reads the result of the simulation.
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

/**
 * Returns the call data of a USDC transfer. The variant of `transferWithAuthorization` with a `bytes` parameter accepts
 * signatures of accounts and of wallet contracts.
 */
export function transferData(transfer: Transfer): Hex {
  return encodeFunctionData({
    ...TRANSFER_FUNCTION,
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

/** Returns call data that asks the token contract whether a payment authorization is used or cancelled. */
export function authorizationStateData({ payer, nonce }: Pick<Transfer, 'payer' | 'nonce'>): Hex {
  return encodeFunctionData({
    abi: TOKEN_ABI,
    functionName: 'authorizationState',
    args: [payer, nonce],
  })
}

/** Returns call data that cancels a payment authorization. */
export const cancellationData = ({
  payer,
  nonce,
  signature,
}: Pick<Transfer, 'payer' | 'nonce' | 'signature'>): Hex =>
  encodeFunctionData({
    abi: TOKEN_ABI,
    functionName: 'cancelAuthorization',
    args: [payer, nonce, signature],
  })

/** Returns call data that asks the token contract for the balance of an address. */
export const balanceData = (address: Address): Hex =>
  encodeFunctionData({ abi: TOKEN_ABI, functionName: 'balanceOf', args: [address] })

type Log = { address: Address; topics: readonly Hex[]; data: Hex; logIndex: bigint }

/**
 * Holds the USDC transfers in one transaction receipt, by payment authorization. The key of a transfer is the payer
 * together with the nonce of the authorization.
 */
export type Transfers = ReadonlyMap<
  string,
  { recipient: string; amountAtomic: bigint; logIndex: number }
>

const sameText = (left: string, right: string) => left.toLowerCase() === right.toLowerCase()
const keyOf = (payerTopic: Hex, nonce: Hex) => `${payerTopic}${nonce.slice(2)}`.toLowerCase()

/**
 * Reads the transfers of a transaction receipt once, for all payments in the transaction. The token contract logs the
 * use of a payment authorization, and directly afterwards its transfer. Therefore the function accepts only the next
 * log entry as the transfer, because a later transfer may belong to another payment authorization. The logs may be only
 * those of one payer.
 */
export function readTransfers(logs: readonly Log[], asset: Address): Transfers {
  const transfers = new Map<string, { recipient: string; amountAtomic: bigint; logIndex: number }>()
  for (const [n, used] of logs.entries()) {
    const moved = logs[n + 1]
    if (moved === undefined || !isEvent(used, asset, AUTHORIZATION_USED)) continue
    if (!isEvent(moved, asset, TRANSFER) || !/^0x[0-9a-f]{64}$/i.test(moved.data)) continue
    if (moved.logIndex !== used.logIndex + 1n) continue
    const [, payer, nonce] = used.topics
    const [, from, recipient] = moved.topics
    if (!sameText(payer!, from!)) continue
    transfers.set(keyOf(payer!, nonce!), {
      recipient: recipient!,
      amountAtomic: BigInt(moved.data),
      logIndex: Number(moved.logIndex),
    })
  }
  return transfers
}

/** Returns the nonces of the payment authorizations that caused transfers, by the log index of the Transfer event. */
export const noncesByLog = (logs: readonly Log[], asset: Address): ReadonlyMap<number, Hex> =>
  new Map(
    [...readTransfers(logs, asset)].map(([key, { logIndex }]): [number, Hex] => [
      logIndex,
      `0x${key.slice(-64)}`,
    ]),
  )

/**
 * Tells whether a log entry is the wanted event of the token contract. Both `AuthorizationUsed` and `Transfer` have two
 * indexed parameters.
 */
const isEvent = ({ address, topics }: Log, asset: Address, selector: Hex): boolean =>
  sameText(address, asset) && topics.length === 3 && sameText(topics[0]!, selector)

/**
 * Returns the log index of the Transfer event of a payment, or `null` if the receipt does not contain this event. The
 * receipt's status "success" proves nothing about a payment. A wallet contract can run any code, and in a transaction
 * with several payments, one payment may have failed.
 */
export function transferIndex(
  transfers: Transfers,
  { payer, nonce, recipient, amountAtomic }: Omit<Transfer, 'signature' | 'deployment'>,
): number | null {
  const found = transfers.get(keyOf(pad(payer), nonce))
  const isOurs =
    found !== undefined &&
    sameText(found.recipient, pad(recipient)) &&
    found.amountAtomic === amountAtomic
  return isOurs ? found.logIndex : null
}

/**
 * Returns the log indexes of transfers of one amount between two addresses. Any contract call may have caused these
 * transfers.
 */
export const plainTransfers = (
  logs: readonly Log[],
  wanted: { asset: Address; payer: Address; payTo: Address; amountAtomic: bigint },
): number[] =>
  logs
    .filter(
      (log) =>
        isEvent(log, wanted.asset, TRANSFER) &&
        sameText(log.topics[1]!, pad(wanted.payer)) &&
        sameText(log.topics[2]!, pad(wanted.payTo)) &&
        /^0x[0-9a-f]{64}$/i.test(log.data) &&
        BigInt(log.data) === wanted.amountAtomic,
    )
    .map(({ logIndex }) => Number(logIndex))
