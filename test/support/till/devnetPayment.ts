/** Makes payments on a devnet (a local test chain), and tells how the contracts of the devnet judge them. */
import {
  createWalletClient,
  encodeFunctionData,
  type Hex,
  http,
  pad,
  parseAbi,
  parseSignature,
} from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { authorizationTypedData, verifyAuthorization } from '../../../shared/till/authorization.ts'
import { DEVNET_ACCOUNTS } from '../../../shared/till/devnetAccounts.ts'
import { USDC_NETWORKS, type UsdcNetwork } from '../../../shared/till/usdc.ts'
import {
  type Authorization,
  buildChallenge,
  type PaymentPayload,
  type PaymentRequirements,
} from '../../../shared/till/x402.ts'
import { type DevnetClient, devnetClient } from '../../../workers/devnet/contracts.ts'
import type { Devnet } from '../../../workers/devnet/devnet.ts'

export const SEPOLIA = USDC_NETWORKS['base-sepolia']
export const ABI = parseAbi([
  'function name() view returns (string)',
  'function symbol() view returns (string)',
  'function version() view returns (string)',
  'function decimals() view returns (uint8)',
  'function DOMAIN_SEPARATOR() view returns (bytes32)',
  'function balanceOf(address) view returns (uint256)',
  'function authorizationState(address, bytes32) view returns (bool)',
  'function blacklist(address)',
  'function transfer(address, uint256) returns (bool)',
  'function transferWithAuthorization(address, address, uint256, uint256, uint256, bytes32, bytes)',
  'function transferWithAuthorization(address, address, uint256, uint256, uint256, bytes32, uint8, bytes32, bytes32)',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
])
export const usdc = { address: SEPOLIA.usdcAddress, abi: ABI } as const
export const payer = privateKeyToAccount(DEVNET_ACCOUNTS.payer.privateKey)
export const gasWallet = privateKeyToAccount(DEVNET_ACCOUNTS.gasWallet.privateKey)
export const payTo = DEVNET_ACCOUNTS.payTo.address

let nonces = 0
/** Makes an authorization to pay 0.01 USDC. The authorization expires in a minute. */
export function authorize(changes: Partial<Authorization> = {}): Authorization {
  const nowS = BigInt(Math.floor(Date.now() / 1000))
  nonces += 1
  return {
    from: payer.address,
    to: payTo,
    value: 10_000n,
    validAfter: nowS - 600n,
    validBefore: nowS + 60n,
    nonce: pad(`0x${nonces.toString(16)}`),
    ...changes,
  }
}

export const signed = (authorization: Authorization, network: UsdcNetwork = SEPOLIA) =>
  payer.signTypedData(authorizationTypedData(authorization, network))

const transferArguments = (a: Authorization) =>
  [a.from, a.to, a.value, a.validAfter, a.validBefore, a.nonce] as const

/** Tells whether the chain would accept an authorization in the next block. */
export async function chainAccepts(
  client: DevnetClient,
  authorization: Authorization,
  signature: Hex,
) {
  const data = encodeFunctionData({
    abi: ABI,
    functionName: 'transferWithAuthorization',
    args: [...transferArguments(authorization), signature],
  })
  try {
    // With the block tag `latest`, the call would use the time of the last block, which an idle devnet mined long ago.
    // Therefore the call uses the tag `pending`.
    await client.call({ to: usdc.address, data, blockTag: 'pending' })
    return true
  } catch {
    return false
  }
}

export async function settle(
  devnet: Pick<Devnet, 'rpcUrl'>,
  authorization: Authorization,
  signature: Hex,
) {
  const client = devnetClient(devnet.rpcUrl)
  const wallet = createWalletClient({ account: gasWallet, transport: http(devnet.rpcUrl) })
  const { r, s, v } = parseSignature(signature)
  const hash = await wallet.writeContract({
    ...usdc,
    chain: null,
    gas: 150_000n,
    functionName: 'transferWithAuthorization',
    args: [...transferArguments(authorization), Number(v), r, s],
  })
  return client.waitForTransactionReceipt({ hash })
}

const requirement = buildChallenge({
  network: 'base-sepolia',
  amountAtomic: 10_000n,
  resource: 'https://api.example.com/a',
  payTo,
}).accepts[0] as PaymentRequirements

export function judge(
  authorization: Authorization,
  signature: Hex,
  changes: Partial<PaymentRequirements> = {},
) {
  const { network = 'base-sepolia', scheme = 'exact', ...required } = changes
  const payload: PaymentPayload = {
    x402Version: 1,
    scheme,
    network,
    payload: { signature, authorization },
  }
  return verifyAuthorization({
    payload,
    requirement: { ...requirement, ...required },
    nowS: Math.floor(Date.now() / 1000),
  })
}
