/** Signs a text with a signing key from a credential. Standards: HMAC (RFC 2104, FIPS 180-4), Ed25519 (RFC 8032). */
import { createHmac, createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto'
import { type CredentialData, CredentialInputError } from './credential.ts'

export const ENCODINGS = ['utf8', 'base64', 'hex'] as const
export type Encoding = (typeof ENCODINGS)[number]

/**
 * Sets the smallest number of bytes of an HMAC key, because an attacker could guess a shorter HMAC key from one
 * signature.
 */
export const HMAC_KEY_MIN_BYTES = 16
const SEED_BYTES = 32
/**
 * Holds the first bytes of an Ed25519 private key in PKCS #8 (RFC 8410 §7). The 32 bytes of the private key follow
 * SEED_PREFIX.
 */
const SEED_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex')

/**
 * Lists the credential fields that may hold a signing key, the default field first. The list contains no password,
 * because an attacker could test guessed passwords against the signature.
 */
const SIGNING_FIELDS = {
  hmac: {
    API_KEY: ['secret', 'key'],
    OAUTH: ['clientSecret'],
    CUSTOM: ['secret', 'key', 'signingSecret', 'signingKey', 'webhookSecret', 'hmacKey'],
  },
  ed25519: {
    SSH_KEY: ['privateKey'],
    CERTIFICATE: ['privateKey'],
    API_KEY: ['secret', 'key'],
    CUSTOM: ['privateKey', 'secret', 'key', 'signingKey'],
  },
} as const satisfies Record<string, Partial<Record<string, readonly string[]>>>

const fault = (message: string) => new CredentialInputError(message)

/**
 * Returns the text of the credential field that holds the signing key.
 * @throws {CredentialInputError} if the credential has no such field.
 */
export function signingField(
  algorithm: keyof typeof SIGNING_FIELDS,
  { type, data }: { type: string; data: CredentialData },
  wanted: string | undefined,
): string {
  const known: Partial<Record<string, readonly string[]>> = SIGNING_FIELDS[algorithm]
  const fields = known[type] ?? []
  const hasText = (field: string) => Object.hasOwn(data, field) && typeof data[field] === 'string'
  const field = wanted ?? fields.find(hasText)
  if (field === undefined || !fields.includes(field) || !hasText(field)) {
    const names = fields.length === 0 ? 'none' : fields.join(', ')
    throw fault(`field must name a text of the credential that may sign; of ${type}: ${names}`)
  }
  return data[field] as string
}

/** Decodes a text in hexadecimal, base64 or UTF-8 to bytes. @throws {CredentialInputError} if the text is malformed. */
export function readBytes(name: string, text: string, encoding: Encoding): Buffer {
  const compact = text.replace(/\s/g, '')
  const isForm =
    encoding === 'utf8' ||
    (encoding === 'hex' && /^(?:[\da-f]{2})*$/i.test(compact)) ||
    (encoding === 'base64' && /^(?:[\w+/-]{4})*(?:[\w+/-]{2,3}={0,2})?$/.test(compact))
  if (!isForm) throw fault(`${name} must be ${encoding}`)
  return Buffer.from(encoding === 'utf8' ? text : compact, encoding)
}

/** Computes HMAC-SHA256. */
export const hmacSha256 = (key: Uint8Array, message: Uint8Array): Buffer =>
  createHmac('sha256', key).update(message).digest()

/**
 * Reads an Ed25519 private key from PKCS #8 in PEM, or from 32 bytes in hexadecimal or base64.
 * @throws {CredentialInputError} if the text is no such key.
 */
export function readEd25519Key(text: string): KeyObject {
  try {
    const key = createPrivateKey(
      text.includes('-----BEGIN')
        ? text
        : {
            key: Buffer.concat([SEED_PREFIX, readSeed(text.trim())]),
            format: 'der',
            type: 'pkcs8',
          },
    )
    if (key.asymmetricKeyType === 'ed25519') return key
  } catch {
    // The function does not pass the library's error to the caller, because the text of this error could quote the
    // private key.
  }
  throw fault('The field must hold an Ed25519 key: PKCS #8 in PEM, or 32 bytes in hex or base64')
}

function readSeed(text: string): Buffer {
  const seed = Buffer.from(text, /^[\da-f]{64}$/i.test(text) ? 'hex' : 'base64')
  if (seed.length !== SEED_BYTES) throw fault('not 32 bytes')
  return seed
}

/** Signs a message with Ed25519. @returns the signature (64 bytes) and the public key (32 bytes). */
export function signEd25519(
  key: KeyObject,
  message: Uint8Array,
): { signature: Buffer; publicKey: Buffer } {
  const { x } = createPublicKey(key).export({ format: 'jwk' })
  return { signature: sign(null, message, key), publicKey: Buffer.from(x!, 'base64url') }
}
