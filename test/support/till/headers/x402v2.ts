/** Makes payments and challenges of x402 version 2. */
import { payTo, SEPOLIA, type SignedPayment } from '../till.ts'

export const NETWORK = SEPOLIA.caip2

/** Returns the payment requirement that a typical seller sends. */
export const requirementV2 = (changes: Record<string, unknown> = {}) => ({
  scheme: 'exact',
  network: NETWORK,
  amount: '10000',
  asset: SEPOLIA.usdcAddress,
  payTo,
  maxTimeoutSeconds: 300,
  extra: { name: 'USDC', version: '2' } as Record<string, unknown> | null,
  ...changes,
})

/** Returns the payload of the header `PAYMENT-SIGNATURE` for a signed payment. */
export function payloadV2(
  { authorization, signature }: Pick<SignedPayment, 'authorization' | 'signature'>,
  changes: Record<string, unknown> = {},
) {
  const { from, to, nonce } = authorization
  const [value, validAfter, validBefore] = [
    authorization.value,
    authorization.validAfter,
    authorization.validBefore,
  ].map(String)
  return {
    x402Version: 2,
    payload: { signature, authorization: { from, to, value, validAfter, validBefore, nonce } },
    accepted: requirementV2(),
    ...changes,
  }
}

/** Decodes a payment header of x402 version 1 or 2. */
export const decodeHeader = (header: string): any =>
  JSON.parse(Buffer.from(header, 'base64').toString())

export const encodeHeader = (value: unknown): string =>
  Buffer.from(JSON.stringify(value)).toString('base64')
