/**
 * The envelope senders of our mail (VERP: variable envelope return paths). Each recipient gets an address of its own, and
 * mail hosts return their reports to it. Only hosts that got that copy know it. A report sent there comes from one of them.
 *
 *   NAME+bHASHMAC@DOMAIN   HASH: 40 bits of the Message-ID's hash. MAC: 80 bits of an HMAC-SHA-256. Both in base 32.
 *
 * The part behind `+` is a tag (RFC 5233): the listener finds the inbox without knowing this form.
 */
import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto'
import { deriveKey, type MasterKey } from '../../vault/envelope.ts'
import { messageIdHash } from '../threading.ts'

/** Keys of the HMAC: the first makes addresses, all recognise them. */
export type BounceKeys = readonly KeyObject[]

/** A copy of a message of ours. */
export type SentCopy = { projectId: string; messageId: string; recipient: string }

const HASH_BYTES = 5
const MAC_BYTES = 10
/** Base 32 in lower case: some hosts lower the case of an address. */
const DIGITS = 'abcdefghijklmnopqrstuvwxyz234567'
const TAG = /^b([a-z2-7]{8})([a-z2-7]{16})$/
/** RFC 5321 §4.5.3.1: octets of a local part, and of a path without its brackets. */
const LOCAL_PART_MAX_LENGTH = 64
const ADDRESS_MAX_LENGTH = 254

/** The keys of bounce addresses. They are derived: who holds them cannot open the vault. */
export const bounceKeys = (keys: readonly MasterKey[]): BounceKeys =>
  keys.map(({ key }) => createSecretKey(deriveKey(key, 'purser/bounce')))

/** The envelope sender of one copy; the plain address where a tag would make it too long. */
export function bounceAddress(keys: BounceKeys, from: string, copy: SentCopy): string {
  const at = from.lastIndexOf('@')
  const tag = `+b${base32(hashOf(copy.messageId))}${base32(macOf(keys[0]!, copy))}`
  const address = `${from.slice(0, at)}${tag}${from.slice(at)}`
  const fits = at + tag.length <= LOCAL_PART_MAX_LENGTH && address.length <= ADDRESS_MAX_LENGTH
  return fits ? address : from
}

/** The two parts of a bounce address; null: another address. */
export type BounceTag = { hash: Buffer; mac: string }

/** Reads the tag of an envelope recipient. It proves nothing before {@link isTagOf}. */
export function readBounceTag(envelopeTo: string): BounceTag | null {
  const local = envelopeTo.slice(0, envelopeTo.lastIndexOf('@')).toLowerCase()
  const [, hash, mac] = TAG.exec(local.slice(local.indexOf('+') + 1)) ?? []
  return hash === undefined || mac === undefined ? null : { hash: fromBase32(hash), mac }
}

/** Whether one of our keys made this tag for this copy. */
export const isTagOf = ({ mac }: BounceTag, keys: BounceKeys, copy: SentCopy): boolean =>
  keys.some((key) => timingSafeEqual(Buffer.from(mac), Buffer.from(base32(macOf(key, copy)))))

const hashOf = (messageId: string): Buffer => messageIdHash(messageId).subarray(0, HASH_BYTES)

function macOf(key: KeyObject, { projectId, messageId, recipient }: SentCopy): Buffer {
  // JSON keeps the parts apart: two lists of parts never encode alike.
  const text = JSON.stringify([projectId, messageId, recipient.toLowerCase()])
  return createHmac('sha256', key).update(text).digest().subarray(0, MAC_BYTES)
}

/** Five bytes are eight digits: no padding occurs. */
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
