/**
 * Makes the envelope senders of sent mail (VERP: variable envelope return paths). Each recipient gets an envelope
 * sender of its own, and mail hosts send bounces to this address. Only mail hosts that got a recipient's copy of the
 * mail know the envelope sender of this copy. So a bounce report to this envelope sender comes from one of the mail
 * hosts that got the copy.
 *
 * In the bounce address NAME+bHASHMAC@DOMAIN, HASH holds 40 bits of the Message-ID's hash. MAC holds 80 bits of an
 * HMAC-SHA-256. HASH and MAC are both in base 32.
 *
 * The part of a bounce address after the `+` is a tag (RFC 5233), so the SMTP listener finds the inbox even though it
 * does not know the format of the tag.
 */
import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto'
import { deriveKey, type MasterKey } from '../../vault/envelope.ts'
import { messageIdHash } from '../threading.ts'

/**
 * Holds the HMAC keys for bounce addresses. The first key makes bounce addresses, and each key recognises the addresses
 * that were made with it.
 */
export type BounceKeys = readonly KeyObject[]

/** Identifies the copy of a sent message for one recipient. */
export type SentCopy = { projectId: string; messageId: string; recipient: string }

const HASH_BYTES = 5
const MAC_BYTES = 10
/**
 * Holds the alphabet of base 32. The alphabet is in lower case, because some mail hosts change an address to lower
 * case.
 */
const DIGITS = 'abcdefghijklmnopqrstuvwxyz234567'
const TAG = /^b([a-z2-7]{8})([a-z2-7]{16})$/
/** RFC 5321 §4.5.3.1 limits the octets of a local part, and of a path without its brackets. */
const LOCAL_PART_MAX_LENGTH = 64
const ADDRESS_MAX_LENGTH = 254

/**
 * Derives the keys of bounce addresses. A derived key for bounce addresses cannot open the vault.
 */
export const bounceKeys = (keys: readonly MasterKey[]): BounceKeys =>
  keys.map(({ key }) => createSecretKey(deriveKey(key, 'purser/bounce')))

/**
 * Returns the envelope sender for the copy of one recipient. If the bounce tag would make the address too long, the
 * function returns the address without a tag.
 */
export function bounceAddress(keys: BounceKeys, from: string, copy: SentCopy): string {
  const at = from.lastIndexOf('@')
  const tag = `+b${base32(hashOf(copy.messageId))}${base32(macOf(keys[0]!, copy))}`
  const address = `${from.slice(0, at)}${tag}${from.slice(at)}`
  const fits = at + tag.length <= LOCAL_PART_MAX_LENGTH && address.length <= ADDRESS_MAX_LENGTH
  return fits ? address : from
}

/** Holds the two parts of the tag in a bounce address. */
export type BounceTag = { hash: Buffer; mac: string }

/** Reads the bounce tag of an envelope recipient. The tag proves nothing until {@link isTagOf} has checked it. */
export function readBounceTag(envelopeTo: string): BounceTag | null {
  const local = envelopeTo.slice(0, envelopeTo.lastIndexOf('@')).toLowerCase()
  const [, hash, mac] = TAG.exec(local.slice(local.indexOf('+') + 1)) ?? []
  return hash === undefined || mac === undefined ? null : { hash: fromBase32(hash), mac }
}

/** Tells whether one of the service's keys made a given bounce tag for a given copy of a sent mail. */
export const isTagOf = ({ mac }: BounceTag, keys: BounceKeys, copy: SentCopy): boolean =>
  keys.some((key) => timingSafeEqual(Buffer.from(mac), Buffer.from(base32(macOf(key, copy)))))

const hashOf = (messageId: string): Buffer => messageIdHash(messageId).subarray(0, HASH_BYTES)

function macOf(key: KeyObject, { projectId, messageId, recipient }: SentCopy): Buffer {
  // The values are joined as JSON, so that two different lists of values never give the same text.
  const text = JSON.stringify([projectId, messageId, recipient.toLowerCase()])
  return createHmac('sha256', key).update(text).digest().subarray(0, MAC_BYTES)
}

/** Encodes bytes in base 32. Five bytes make eight digits, so no padding is needed. */
function base32(bytes: Buffer): string {
  let digits = ''
  for (let at = 0; at < bytes.length; at += HASH_BYTES) {
    let group = BigInt(`0x${bytes.subarray(at, at + HASH_BYTES).toString('hex')}`)
    let part = ''
    for (let n = 0; n < 8; n++, group >>= 5n) part = DIGITS[Number(group & 31n)]! + part
    digits += part
  }
  return digits
}

function fromBase32(digits: string): Buffer {
  let group = 0n
  for (const digit of digits) group = (group << 5n) | BigInt(DIGITS.indexOf(digit))
  return Buffer.from(group.toString(16).padStart(HASH_BYTES * 2, '0'), 'hex')
}
