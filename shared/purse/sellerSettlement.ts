/**
 * Reads from a seller's HTTP response what the seller says about the settlement. This statement proves no payment,
 * because only the chain shows a transfer.
 */
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

/** Describes the content of the header `PAYMENT-RESPONSE` or `X-PAYMENT-RESPONSE`. */
export type SellerSettlement = {
  success: boolean
  transaction: string | null
  errorReason: string | null
  /** Holds the stored text of the seller's signed receipt (extension `offer-receipt`). */
  receipt: string | null
}

/**
 * Reads the settlement header of a seller's response. @param header is the value of the settlement header: base64 of
 * JSON. Null means that the settlement header is absent.
 * @returns null if the settlement header is absent or malformed.
 */
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
 * Tells whether the buyer must send a paid request again with the same bytes. A repetition is needed if the seller is
 * unreachable or has not decided about the payment.
 * @param status is the HTTP status of the seller's response. Null means that the seller sent no response.
 */
export const isUndecided = (status: number | null, settlement: SellerSettlement | null): boolean =>
  status === null ||
  status >= 500 ||
  status === 408 ||
  status === 425 ||
  status === 429 ||
  (status === 402 && settlement?.errorReason === 'settlement_pending')
