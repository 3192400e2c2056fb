/** The inner payload of the scheme `exact` on EVM. Both versions of x402 carry the same. */
import { type Address, getAddress, type Hex } from 'viem'
import { z } from 'zod'

/** An ERC-6492 signature with a large factory call has ~6 KB of hexadecimal digits. */
const SIGNATURE_CHARS_MAX = 8192

const UINT256_MAX = 2n ** 256n - 1n

const addressSchema = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/)
  // Case carries only a checksum. viem throws on a wrong one; the chain ignores case.
  .transform((text): Address => getAddress(text.toLowerCase()))

const uint256Schema = z
  .string()
  .regex(/^\d{1,78}$/)
  .transform((text) => BigInt(text))
  .refine((value) => value <= UINT256_MAX)

const hexSchema = (pattern: RegExp) =>
  z
    .string()
    .max(SIGNATURE_CHARS_MAX)
    .regex(pattern)
    // One spelling: the nonce is part of the unique key that stops double payment.
    .transform((text) => text.toLowerCase() as Hex)

/** EIP-3009 authorization: decimal strings on the wire, parsed into bigints. Times are Unix seconds. */
const authorizationSchema = z.object({
  from: addressSchema,
  to: addressSchema,
  value: z
    .string()
    .regex(/^\d{1,18}$/)
    .transform((text) => BigInt(text)),
  validAfter: uint256Schema,
  validBefore: uint256Schema,
  nonce: hexSchema(/^0x[0-9a-fA-F]{64}$/),
})

/** A signed authorization. */
export const exactPayloadSchema = z.object({
  signature: hexSchema(/^0x(?:[0-9a-fA-F]{2})+$/),
  authorization: authorizationSchema,
})

export type ExactPayload = z.output<typeof exactPayloadSchema>
