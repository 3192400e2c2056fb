/**
 * The token of a link that decides one request. It is an HMAC under a derived key: a repeated notification has the same
 * link, and the database holds only a hash of it.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { deriveKey, type MasterKey } from './vault/envelope.ts'

/** Makes the token of a request for an address: 256 bits in base64url. */
export type ApprovalTokens = (approvalId: string, address: string) => string

/** Tokens under the first master key. */
export function approvalTokens([first]: readonly MasterKey[]): ApprovalTokens {
  const key = deriveKey(first!.key, 'purser/approval')
  return (approvalId, address) =>
    createHmac('sha256', key)
      .update(JSON.stringify([approvalId, address]))
      .digest('base64url')
}

/** The form of a token. */
export const APPROVAL_TOKEN = /^[A-Za-z0-9_-]{43}$/

/** A page of a held mail, and the SHA-256 of the held mail's bytes (hexadecimal). */
type SeenPage = { approvalId: string; sha256: string; page: number }

/** Seals that the service gives out with each page of a held mail: they prove that the page was asked for. */
export type PageSeals = {
  seal(page: SeenPage): string
  isSeal(page: SeenPage, given: string | undefined): boolean
}

/** Seals under the first master key. */
export function pageSeals([first]: readonly MasterKey[]): PageSeals {
  const key = deriveKey(first!.key, 'purser/approval-page')
  const seal = ({ approvalId, sha256, page }: SeenPage) =>
    createHmac('sha256', key)
      .update(JSON.stringify([approvalId, sha256, page]))
      .digest('base64url')
  return {
    seal,
    isSeal(page, given) {
      const wanted = Buffer.from(seal(page))
      const found = Buffer.from(given ?? '')
      return wanted.length === found.length && timingSafeEqual(wanted, found)
    },
  }
}
