/**
 * Envelope encryption of secrets at rest.
 *
 * Every secret has a random data key of its own; the data key is wrapped by a master key, which is named by its id. So a
 * change of the master key touches 61 bytes a secret, and a secret whose row is deleted is lost with its data key.
 *
 * Standards: AES-256-GCM (NIST SP 800-38D), HKDF-SHA-256 (RFC 5869).
 *
 *   box            0x01 ‖ nonce (12 random bytes) ‖ ciphertext ‖ tag (16)
 *   wrapping key   HKDF(master key, no salt, info "purser/wrap")
 *   wrapped key    box(wrapping key, data key, AD("key", key id, …context))
 *   ciphertext     box(data key, plaintext, AD("data", …context))
 *   AD(parts)      of each part its length in bytes (uint32, big endian) and its UTF-8 bytes
 *   context        purpose, project id, name, version (decimal)
 *
 * What is stored for one project, name, version or purpose decrypts for no other. A data key encrypts once; under one
 * master key 2^32 data keys may be wrapped before random nonces come too close (SP 800-38D §8.3), at a thousand writes a
 * second seven weeks without a pause: rotate master keys well before.
 */
import {
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto'

const FORMAT = 1
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16
const BOX_OVERHEAD_BYTES = 1 + NONCE_BYTES + TAG_BYTES

/** A master key. As a KeyObject its bytes show in no log, no JSON and no inspection. */
export type MasterKey = { readonly id: string; readonly key: KeyObject }

/** What a secret is bound to. */
export type SecretContext = {
  purpose: 'credential' | 'webhook-secret' | 'dkim-key'
  /** Empty for a key of a domain, which is of no project. */
  projectId: string
  /** The credential's name, the endpoint's id, or the name of the key's DNS record. */
  name: string
  version: number
}

/** A data key under a master key. */
export type WrappedKey = { keyId: string; wrappedKey: Buffer }

/** A secret as it is stored. */
export type Sealed = WrappedKey & { ciphertext: Buffer }

/** The secret is under a master key that is not at hand. */
export class UnknownMasterKeyError extends Error {
  constructor(keyId: string) {
    super(`MASTER_KEYS lacks the key ${JSON.stringify(keyId)}`)
  }
}

/** What is stored was changed, belongs elsewhere, or is under another key of the same id. */
export class BrokenSealError extends Error {
  constructor() {
    super('what is stored does not decrypt for this project, name, version and purpose')
  }
}

/**
 * Makes a master key.
 *
 * @param bytes 32 secret bytes.
 * @throws RangeError on another length.
 */
export function masterKey(id: string, bytes: Uint8Array): MasterKey {
  if (bytes.length !== KEY_BYTES) {
    throw new RangeError(`a master key must be ${KEY_BYTES} bytes, not ${bytes.length}`)
  }
  return { id, key: createSecretKey(bytes) }
}

/** 32 bytes that tell a master key from any other and reveal nothing of it. */
export const masterKeyCheck = ({ key }: MasterKey): Buffer => derive(key, 'purser/check')

/** The master keys of a process: the first one seals, all of them open. */
export class Keyring {
  readonly #wrapping: ReadonlyMap<string, KeyObject>
  readonly #currentId: string

  /** @throws RangeError without a key, or with two of one id. */
  constructor(keys: readonly MasterKey[]) {
    const first = keys[0]
    if (first === undefined) throw new RangeError('a keyring must hold a key')
    this.#wrapping = new Map(
      keys.map(({ id, key }) => [id, createSecretKey(derive(key, 'purser/wrap'))]),
    )
    if (this.#wrapping.size !== keys.length) throw new RangeError('ids of keys must differ')
    this.#currentId = first.id
  }

  /** The id of the key that seals. */
  get currentId(): string {
    return this.#currentId
  }

  /** Encrypts under a new data key. */
  seal(plaintext: Uint8Array, context: SecretContext): Sealed {
    const dataKey = randomBytes(KEY_BYTES)
    try {
      const ciphertext = encrypt(createSecretKey(dataKey), plaintext, dataAd(context))
      return { ...this.#wrap(dataKey, context), ciphertext }
    } finally {
      dataKey.fill(0)
    }
  }

  /** @throws {UnknownMasterKeyError} {BrokenSealError} */
  open(sealed: Sealed, context: SecretContext): Buffer {
    const dataKey = this.#unwrap(sealed, context)
    try {
      return decrypt(createSecretKey(dataKey), sealed.ciphertext, dataAd(context))
    } finally {
      dataKey.fill(0)
    }
  }

  /**
   * Wraps the same data key under the current master key; the ciphertext stays as it is, unread.
   * @throws {UnknownMasterKeyError} {BrokenSealError}
   */
  rewrap(wrapped: WrappedKey, context: SecretContext): WrappedKey {
    const dataKey = this.#unwrap(wrapped, context)
    try {
      return this.#wrap(dataKey, context)
    } finally {
      dataKey.fill(0)
    }
  }

  #wrap(dataKey: Buffer, context: SecretContext): WrappedKey {
    const keyId = this.#currentId
    const wrappedKey = encrypt(this.#wrapping.get(keyId)!, dataKey, keyAd(keyId, context))
    return { keyId, wrappedKey }
  }

  #unwrap({ keyId, wrappedKey }: WrappedKey, context: SecretContext): Buffer {
    const key = this.#wrapping.get(keyId)
    if (key === undefined) throw new UnknownMasterKeyError(keyId)
    const dataKey = decrypt(key, wrappedKey, keyAd(keyId, context))
    if (dataKey.length !== KEY_BYTES) throw new BrokenSealError()
    return dataKey
  }
}

const derive = (key: KeyObject, info: string): Buffer =>
  Buffer.from(hkdfSync('sha256', key, '', info, KEY_BYTES))

function encrypt(key: KeyObject, plaintext: Uint8Array, ad: Buffer): Buffer {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES })
  cipher.setAAD(ad)
  const body = [cipher.update(plaintext), cipher.final()]
  return Buffer.concat([Uint8Array.of(FORMAT), nonce, ...body, cipher.getAuthTag()])
}

function decrypt(key: KeyObject, box: Buffer, ad: Buffer): Buffer {
  if (box.length < BOX_OVERHEAD_BYTES || box[0] !== FORMAT) throw new BrokenSealError()
  const nonce = box.subarray(1, 1 + NONCE_BYTES)
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES })
  decipher.setAAD(ad)
  decipher.setAuthTag(box.subarray(-TAG_BYTES))
  try {
    const body = decipher.update(box.subarray(1 + NONCE_BYTES, -TAG_BYTES))
    return Buffer.concat([body, decipher.final()])
  } catch {
    throw new BrokenSealError()
  }
}

const dataAd = (context: SecretContext) => associatedData(['data', ...parts(context)])
const keyAd = (keyId: string, context: SecretContext) =>
  associatedData(['key', keyId, ...parts(context)])

const parts = ({ purpose, projectId, name, version }: SecretContext): string[] => [
  purpose,
  projectId,
  name,
  String(version),
]

/** Lengths come first, so that no two lists of parts read alike. */
function associatedData(list: string[]): Buffer {
  return Buffer.concat(
    list.flatMap((part) => {
      const bytes = Buffer.from(part, 'utf8')
      const length = Buffer.alloc(4)
      length.writeUInt32BE(bytes.length)
      return [length, bytes]
    }),
  )
}
