/** Calls the token contract from accounts that do not belong to the till (the seller’s part of the service). */
import { type Address, encodeFunctionData, type Hex, parseAbi, parseGwei } from 'viem'
import type { PrivateKeyAccount } from 'viem/accounts'
import { DEVNET_ACCOUNTS } from '../../../shared/till/devnetAccounts.ts'
import type { DevnetClient } from '../../../workers/devnet/contracts.ts'
import { SEPOLIA, type SignedPayment } from './till.ts'

const ABI = parseAbi([
  'function transferWithAuthorization(address, address, uint256, uint256, uint256, bytes32, bytes)',
  'function cancelAuthorization(address, bytes32, bytes)',
  'function blacklist(address)',
  'function unBlacklist(address)',
  'function pause()',
  'function unpause()',
  'function transfer(address, uint256)',
])

/** Holds the owner of the devnet’s token contract, who acts as any third party. */
export const stranger = DEVNET_ACCOUNTS.tokenOwner.address

type TokenCall =
  | { functionName: 'blacklist' | 'unBlacklist'; args: readonly [Address] }
  | { functionName: 'pause' | 'unpause' }
  | { functionName: 'transfer'; args: readonly [Address, bigint] }
  | { functionName: 'cancelAuthorization'; args: readonly [Address, Hex, Hex] }

/**
 * Calls the token contract with a higher tip (priority fee) than any transaction of a gas wallet, because a gas wallet
 * pays at most 100 gwei.
 */
export function callToken(
  client: DevnetClient,
  call: TokenCall | Hex,
  from: Address = stranger,
): Promise<Hex> {
  return client.sendTransaction({
    account: from,
    chain: null,
    to: SEPOLIA.usdcAddress,
    data: typeof call === 'string' ? call : encodeFunctionData({ abi: ABI, ...call }),
    gas: 300_000n,
    maxPriorityFeePerGas: parseGwei('110'),
    maxFeePerGas: parseGwei('200'),
  })
}

/** Broadcasts the authorization of a payment, as any account may. */
export const broadcastPayment = (
  client: DevnetClient,
  { authorization: a, signature }: SignedPayment,
): Promise<Hex> =>
  callToken(
    client,
    encodeFunctionData({
      abi: ABI,
      functionName: 'transferWithAuthorization',
      args: [a.from, a.to, a.value, a.validAfter, a.validBefore, a.nonce, signature],
    }),
  )

/** Cancels the authorization of a payment in the name of its payer, as EIP-3009 allows. */
export async function cancelPayment(
  client: DevnetClient,
  payer: PrivateKeyAccount,
  nonce: Hex,
): Promise<Hex> {
  const signature = await payer.signTypedData({
    domain: {
      name: 'USDC',
      version: '2',
      chainId: SEPOLIA.chainId,
      verifyingContract: SEPOLIA.usdcAddress,
    },
    types: {
      CancelAuthorization: [
        { name: 'authorizer', type: 'address' },
        { name: 'nonce', type: 'bytes32' },
      ],
    },
    primaryType: 'CancelAuthorization',
    message: { authorizer: payer.address, nonce },
  })
  const args = [payer.address, nonce, signature] as const
  return callToken(client, { functionName: 'cancelAuthorization', args })
}
