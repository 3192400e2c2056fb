import { createHmac, timingSafeEqual } from 'node:crypto'
import { deriveKey, type MasterKey } from '../vault/envelope.ts'

/**
 * Makes and checks the proof that a person with an email address has signed in with a browser. The proof of an email
 * address holds 256 bits in base64url. Strangers can use up the sign-in mails of an email address, but not those for a
 * browser with this proof.
 */
export type BrowserProofs = {
  prove(email: string): string
  isProof(email: string, given: string): boolean
}

/** Makes proofs with a key that is derived from the first master key. A check accepts the proofs of all master keys. */
export function browserProofs(masterKeys: readonly MasterKey[]): BrowserProofs {
  const keys = masterKeys.map(({ key }) => deriveKey(key, 'purser/browser'))
  const proofWith = (key: Uint8Array, email: string) =>
    createHmac('sha256', key).update(email).digest('base64url')
  return {
    prove: (email) => proofWith(keys[0]!, email),
    isProof: (email, given) =>
      keys.some((key) => {
        const wanted = Buffer.from(proofWith(key, email))
        const found = Buffer.from(given)
        return wanted.length === found.length && timingSafeEqual(wanted, found)
      }),
  }
}
