import type { UseAnswer } from '../vault/useAnswer.ts'

/** Describes the seller's response to a purchase request. */
export type PurchaseAnswer = UseAnswer & {
  /**
   * Holds the bytes of a body that is not text, in base64. The field is null or absent if the body is text, if the body
   * was too large, or if the purchase request contained a secret.
   */
  bodyBase64?: string | null
}
