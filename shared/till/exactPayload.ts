/** Reads the inner payload of the scheme `exact` on EVM. This payload is the same in both versions of x402. */
import { type Address, getAddress, type Hex } from 'viem'
import { z } from 'zod'

/**
 * Sets the maximum number of characters of a signature. An ERC-6492 signature with a large factory call has about 6 KB
 * of hexadecimal digits.
 */
const SIGNATURE_CHARS_MAX = 8192

const UINT256_MAX = 2n ** 256n - 1n

const addressSchema = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/)
  // The case of the letters in an address encodes only a checksum. The chain ignores the case, but the library viem
  // throws an error on a wrong checksum. Therefore the code also ignores the case.
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
    // The service stores the nonce in lower case, so that the unique key on the nonce prevents double payment in either
    // spelling.
    .transform((text) => text.toLowerCase() as Hex)

/**
 * Describes an EIP-3009 authorization. The numbers of the authorization are decimal strings in JSON, and the schema
 * parses them into bigints. The times of the authorization are in Unix seconds.
 */
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

/** Describes a signed EIP-3009 authorization. */
export const exactPayloadSchema = z.object({
  signature: hexSchema(/^0x(?:[0-9a-fA-F]{2})+$/),
  authorization: authorizationSchema,
})

export type ExactPayload = z.output<typeof exactPayloadSchema>
