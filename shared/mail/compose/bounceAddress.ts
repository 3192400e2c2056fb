/**
 * Makes the envelope senders of sent mail (VERP: variable envelope return paths). The copy for each recipient has a
 * different envelope sender, to which mail hosts send bounces. Only mail hosts that got a recipient's copy know its
 * envelope sender. Therefore a bounce to this address comes from one of these mail hosts.
 *
 * In the bounce address NAME+bHASHMAC@DOMAIN, HASH is 40 bits of the Message-ID's hash, and MAC is 80 bits of an
 * HMAC-SHA-256. HASH and MAC are in base 32.
 *
 * The part of a bounce address after the `+` is a tag (RFC 5233). Therefore the SMTP listener finds the inbox without
 * knowing the format of the tag.
 */
import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto'
import { deriveKey, type MasterKey } from '../../vault/envelope.ts'
import { messageIdHash } from '../threading.ts'

/**
 * Holds the HMAC keys for bounce addresses. The first key makes new bounce addresses, and every key recognises its own
 * older bounce addresses.
 */
export type BounceKeys = readonly KeyObject[]

/** Identifies the copy of a sent message for one recipient. */
export type SentCopy = { projectId: string; messageId: string; recipient: string }

const HASH_BYTES = 5
const MAC_BYTES = 10
/** Holds the base 32 alphabet in lower case, because some mail hosts change an address to lower case. */
const DIGITS = 'abcdefghijklmnopqrstuvwxyz234567'
const TAG = /^b([a-z2-7]{8})([a-z2-7]{16})$/
/**
 * Sets the maximum number of octets of a local part. ADDRESS_MAX_LENGTH is the maximum of a path without its brackets
 * (RFC 5321 §4.5.3.1).
 */
const LOCAL_PART_MAX_LENGTH = 64
const ADDRESS_MAX_LENGTH = 254

/**
 * Derives the HMAC keys for bounce addresses from the master keys. Nobody can decrypt secrets of the vault with a
 * derived key.
 */
export const bounceKeys = (keys: readonly MasterKey[]): BounceKeys =>
  keys.map(({ key }) => createSecretKey(deriveKey(key, 'purser/bounce')))

/**
 * Returns the envelope sender for the copy of one recipient. If the address would become too long with the bounce tag,
 * the function returns the sender's address without a tag.
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

/**
 * Reads the bounce tag of an envelope recipient. A bounce tag proves nothing until {@link isTagOf} has checked the tag.
 */
export function readBounceTag(envelopeTo: string): BounceTag | null {
  const local = envelopeTo.slice(0, envelopeTo.lastIndexOf('@')).toLowerCase()
  const [, hash, mac] = TAG.exec(local.slice(local.indexOf('+') + 1)) ?? []
  return hash === undefined || mac === undefined ? null : { hash: fromBase32(hash), mac }
}

/** Tells whether the service made the bounce tag for this sent copy, with any of its keys. */
export const isTagOf = ({ mac }: BounceTag, keys: BounceKeys, copy: SentCopy): boolean =>
  keys.some((key) => timingSafeEqual(Buffer.from(mac), Buffer.from(base32(macOf(key, copy)))))

const hashOf = (messageId: string): Buffer => messageIdHash(messageId).subarray(0, HASH_BYTES)

function macOf(key: KeyObject, { projectId, messageId, recipient }: SentCopy): Buffer {
  // The function joins the values as JSON. In this way, two different lists of values never give the same text.
  const text = JSON.stringify([projectId, messageId, recipient.toLowerCase()])
  return createHmac('sha256', key).update(text).digest().subarray(0, MAC_BYTES)
}

/** Encodes bytes in base 32. Five bytes make eight digits, so base 32 needs no padding here. */
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
