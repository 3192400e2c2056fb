/**
 * Encrypts the content of a purchase in three versions: the request, the request with its signed payment header, and
 * the seller's response.
 */
import type { PaymentHeader } from '../../../shared/purse/paymentHeader.ts'
import type { PurchaseAnswer } from '../../../shared/purse/purchaseAnswer.ts'
import type { Keyring, Sealed, SecretContext } from '../../../shared/vault/envelope.ts'
import type { UseRequest } from '../../../shared/vault/useRequest.ts'

/** Sets the time for which the service keeps the seller's response after the end of a purchase. */
export const ANSWER_KEPT = '10 minutes'

/** Lists the values of the column `content_version`, which names the kind of encrypted content in a purchase's row. */
export const CONTENT = { request: 1, signed: 2, answer: 3 } as const

/**
 * Describes a purchase request with the signed payment header that pays for it. The header must stay secret, because
 * anyone who has it can settle the payment and so move the money.
 */
export type SignedRequest = { request: UseRequest; header: PaymentHeader }

/** Lists the columns of a purchase's row that hold encrypted content. */
export type ContentRow = {
  project_id: string
  id: string
  content_version: number
  key_id: string | null
  wrapped_key: Buffer | null
  ciphertext: Buffer | null
}

/** Returns the encryption context (associated data) with which a purchase's content is encrypted. */
export const purchaseContext = (projectId: string, id: string, version: number): SecretContext => ({
  purpose: 'purchase',
  projectId,
  name: id,
  version,
})

/** Encrypts one version of a purchase's content. */
export const sealContent = (
  keyring: Keyring,
  { projectId, id }: { projectId: string; id: string },
  version: number,
  content: UseRequest | SignedRequest | PurchaseAnswer,
): Sealed =>
  keyring.seal(Buffer.from(JSON.stringify(content)), purchaseContext(projectId, id, version))

/**
 * Decrypts the content of a purchase. @returns null if the purchase's row has no encrypted content, or content of
 * another version.
 */
export function openContent<Content>(
  keyring: Keyring,
  row: ContentRow,
  version: number,
): Content | null {
  const { key_id: keyId, wrapped_key: wrappedKey, ciphertext } = row
  if (row.content_version !== version) return null
  if (keyId === null || wrappedKey === null || ciphertext === null) return null
  const context = purchaseContext(row.project_id, row.id, version)
  return JSON.parse(keyring.open({ keyId, wrappedKey, ciphertext }, context).toString())
}
