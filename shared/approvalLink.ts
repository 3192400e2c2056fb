/**
 * The token of a link that decides one request. It is an HMAC under a derived key: a repeated notification has the same
 * link, and the database holds only a hash of it.
 */
import { createHmac } from 'node:crypto'
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
