/**
 * Makes the token of an approval link. With such a link the owner decides one approval request. The token is an HMAC
 * with a derived key and no random value, so that a repeated notification mail contains the same link. The database
 * holds only a hash of the token.
 */
import { createHmac } from 'node:crypto'
import { deriveKey, type MasterKey } from './vault/envelope.ts'
import { macsFor } from './vault/macs.ts'

/**
 * Makes the token of an approval link: 256 bits in base64url. Each pair of an approval request and an email address has
 * a separate token.
 */
export type ApprovalTokens = (approvalId: string, address: string) => string

/** Makes approval tokens with a key that is derived from the first master key. */
export function approvalTokens([first]: readonly MasterKey[]): ApprovalTokens {
  const key = deriveKey(first!.key, 'purser/approval')
  return (approvalId, address) =>
    createHmac('sha256', key)
      .update(JSON.stringify([approvalId, address]))
      .digest('base64url')
}

/** Matches the format of the token in an approval link. */
export const APPROVAL_TOKEN = /^[A-Za-z0-9_-]{43}$/

/**
 * Describes one page of a mail that is held for the owner's approval. The field `sha256` is the SHA-256 of the mail's
 * bytes in hexadecimal.
 */
type SeenPage = { approvalId: string; sha256: string; page: number }

/**
 * Makes and checks page seals. A page seal is a signed proof that somebody has requested one page of a mail that waits
 * for approval. The service sends the seal together with the page.
 */
export type PageSeals = {
  seal(page: SeenPage): string
  isSeal(page: SeenPage, given: string | undefined): boolean
}

/** Makes page seals, which are MACs (message authentication codes) under the master keys. */
export function pageSeals(masterKeys: readonly MasterKey[]): PageSeals {
  const macs = macsFor(masterKeys, 'purser/approval-page')
  const textOf = ({ approvalId, sha256, page }: SeenPage) =>
    JSON.stringify([approvalId, sha256, page])
  return {
    seal: (page) => macs.make(textOf(page)),
    isSeal: (page, given) => macs.isOf(textOf(page), given ?? ''),
  }
}
