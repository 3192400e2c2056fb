/** What a seller says of the settlement: its word, which proves nothing. The chain decides. */
import { z } from 'zod'
import { keptProof } from './offerReceipt.ts'

const HEADER_CHARS_MAX = 16 * 1024

const schema = z.object({
  success: z.boolean().catch(false),
  transaction: z
    .string()
    .regex(/^0x[0-9a-fA-F]{64}$/)
    .nullish()
    .catch(null),
  errorReason: z.string().max(200).nullish().catch(null),
  extensions: z
    .object({
      'offer-receipt': z
        .object({ info: z.object({ receipt: z.unknown() }) })
        .nullish()
        .catch(null),
    })
    .nullish()
    .catch(null),
})

/** The header `PAYMENT-RESPONSE` or `X-PAYMENT-RESPONSE`. */
export type SellerSettlement = {
  success: boolean
  transaction: string | null
  errorReason: string | null
  /** A signed receipt as it is kept (extension `offer-receipt`). */
  receipt: string | null
}

/** @param header base64 of JSON; null: absent. @returns null: absent or malformed. */
export function readSellerSettlement(header: string | null): SellerSettlement | null {
  if (header === null || header.length > HEADER_CHARS_MAX) return null
  let value: unknown
  try {
    value = JSON.parse(Buffer.from(header, 'base64').toString('utf8'))
  } catch {
    return null
  }
  const read = schema.safeParse(value)
  if (!read.success) return null
  return {
    success: read.data.success,
    transaction: read.data.transaction?.toLowerCase() ?? null,
    errorReason: read.data.errorReason ?? null,
    receipt: keptProof(read.data.extensions?.['offer-receipt']?.info.receipt),
  }
}

/**
 * Whether a paid request is sent again, with the same bytes: the seller has not decided, or cannot be reached.
 * @param status null: no answer came.
 */
export const isUndecided = (status: number | null, settlement: SellerSettlement | null): boolean =>
  status === null ||
  status >= 500 ||
  status === 408 ||
  status === 425 ||
  status === 429 ||
  (status === 402 && settlement?.errorReason === 'settlement_pending')
