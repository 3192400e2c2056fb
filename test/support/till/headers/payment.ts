/** Makes a signed payment of the devnet’s payer account, and rewrites its signature in other forms. */
import {
  type Hex,
  parseSignature,
  serializeCompactSignature,
  signatureToCompactSignature,
} from 'viem'
import { mnemonicToAccount } from 'viem/accounts'
import { authorizationTypedData } from '../../../../shared/till/authorization.ts'
import { USDC_NETWORKS, type UsdcNetwork } from '../../../../shared/till/usdc.ts'
import {
  type Authorization,
  buildChallenge,
  type PaymentPayload,
  type PaymentRequirements,
} from '../../../../shared/till/x402.ts'

export const SEPOLIA = USDC_NETWORKS['base-sepolia']
export const NOW_S = 1_800_000_000
export const GROUP_ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
export const MAGIC: Hex = `0x${'6492'.repeat(16)}`
export const payer = mnemonicToAccount(
  'test test test test test test test test test test test junk',
  {
    addressIndex: 1,
  },
)
export const payTo = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC'

export const requirement = buildChallenge({
  network: 'base-sepolia',
  amountAtomic: 10_000n,
  resource: 'https://api.example.com/a',
  payTo,
}).accepts[0] as PaymentRequirements

export const authorization: Authorization = {
  from: payer.address,
  to: payTo,
  value: 10_000n,
  validAfter: BigInt(NOW_S - 600),
  validBefore: BigInt(NOW_S + 60),
  nonce: `0x${'5a'.repeat(32)}`,
}

export async function payment(
  changes: Partial<Authorization> = {},
  network: UsdcNetwork = SEPOLIA,
): Promise<PaymentPayload> {
  const changed = { ...authorization, ...changes }
  const signature = await payer.signTypedData(authorizationTypedData(changed, network))
  return {
    x402Version: 1,
    scheme: 'exact',
    network: 'base-sepolia',
    payload: { signature, authorization: changed },
  }
}

export const withSignature = (payload: PaymentPayload, signature: Hex): PaymentPayload => ({
  ...payload,
  payload: { ...payload.payload, signature },
})

export function pack(r: bigint, s: bigint, v: number): Hex {
  const word = (value: bigint) => value.toString(16).padStart(64, '0')
  return `0x${word(r)}${word(s)}${v.toString(16).padStart(2, '0')}`
}

export const split = (signature: Hex) => ({
  r: BigInt(signature.slice(0, 66)),
  s: BigInt(`0x${signature.slice(66, 130)}`),
  v: Number(`0x${signature.slice(130)}`),
})

export function highS(signature: Hex): Hex {
  const { r, s, v } = split(signature)
  return pack(r, GROUP_ORDER - s, v === 27 ? 28 : 27)
}

export const compact = (signature: Hex) =>
  serializeCompactSignature(signatureToCompactSignature(parseSignature(signature)))
