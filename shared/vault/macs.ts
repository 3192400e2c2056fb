import { createHmac, timingSafeEqual } from 'node:crypto'
import { deriveKey, type MasterKey } from './envelope.ts'

/** Makes the MAC of a text, 256 bits in base64url, and tells whether this service made a given MAC of a text. */
export type Macs = {
  make(text: string): string
  isOf(text: string, given: string): boolean
}

/**
 * Makes MACs with a key that is derived from the first master key. The check of a MAC accepts the MACs of all master
 * keys, because the processes do not change their first master key at the same moment.
 * @param purpose is the label of the derived key. A MAC for one purpose is invalid for every other purpose.
 */
export function macsFor(masterKeys: readonly MasterKey[], purpose: string): Macs {
  const keys = masterKeys.map(({ key }) => deriveKey(key, purpose))
  const macOf = (key: Uint8Array, text: string) =>
    createHmac('sha256', key).update(text).digest('base64url')
  return {
    make: (text) => macOf(keys[0]!, text),
    isOf: (text, given) =>
      keys.some((key) => {
        const wanted = Buffer.from(macOf(key, text))
        const found = Buffer.from(given)
        return wanted.length === found.length && timingSafeEqual(wanted, found)
      }),
  }
}
