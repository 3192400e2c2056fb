/**
 * Encrypts stored secrets by envelope encryption.
 *
 * Every secret has its own random data key. A master key with an id encrypts ("wraps") the data key. Therefore, when
 * the master key changes, the service rewrites only 61 bytes of each stored secret. The data key is stored in the
 * secret's own database row. Therefore nobody can recover the secret after the deletion of its row.
 *
 * Standards: AES-256-GCM (NIST SP 800-38D), HKDF-SHA-256 (RFC 5869).
 *
 *   box            0x01 ‖ nonce (12 random bytes) ‖ ciphertext ‖ tag (16)
 *   wrapping key   HKDF(master key, no salt, info "purser/wrap")
 *   wrapped key    box(wrapping key, data key, AD("key", key id, …context))
 *   ciphertext     box(data key, plaintext, AD("data", …context))
 *   AD(parts)      for each part its length in bytes (uint32, big endian) and its UTF-8 bytes
 *   context        purpose, project id, name, version (decimal)
 *
 * A secret decrypts only for its own project, name, version and purpose. A data key encrypts only one secret, and only
 * once. One master key may encrypt 2^32 data keys (SP 800-38D §8.3, random nonces), which is enough for seven weeks at
 * a thousand writes a second. The operator should replace the master key long before this number.
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

/**
 * Describes a master key, which encrypts the data keys of secrets. Node's KeyObject hides the bytes of a key from logs,
 * JSON and inspection.
 */
export type MasterKey = { readonly id: string; readonly key: KeyObject }

/**
 * Describes the owner and the purpose of an encrypted secret: purpose, project, name and version. The encryption uses
 * these values as associated data, so nobody can decrypt a secret for another purpose, project, name or version.
 */
export type SecretContext = {
  purpose: 'credential' | 'webhook-secret' | 'dkim-key' | 'vault-use' | 'purse-key' | 'purchase'
  /**
   * Holds the id of the project. For a DKIM key, the project id is an empty text, because a DKIM key belongs to a
   * domain.
   */
  projectId: string
  /**
   * Holds the unique name of the secret among the secrets of the same purpose. The name is a credential's name, the DNS
   * name of a DKIM key, or a purse's address. For any other secret, the name is the id of an endpoint, a webhook, a
   * request with a secret, or a purchase.
   */
  name: string
  version: number
}

/**
 * Holds the data key of a secret, encrypted by a master key. The field `keyId` is the id of the master key that
 * encrypted the data key.
 */
export type WrappedKey = { keyId: string; wrappedKey: Buffer }

/** Describes the stored form of an encrypted secret. */
export type Sealed = WrappedKey & { ciphertext: Buffer }

/** Reports that the keyring (the master keys of the process) lacks the master key of an encrypted secret. */
export class UnknownMasterKeyError extends Error {
  constructor(keyId: string) {
    super(`MASTER_KEYS lacks the key ${JSON.stringify(keyId)}`)
  }
}

/**
 * Reports that a stored secret cannot be decrypted. The secret was changed, belongs to another context, or was
 * encrypted under a different master key with the same id.
 */
export class BrokenSealError extends Error {
  constructor() {
    super('the stored secret does not decrypt for this project, name, version and purpose')
  }
}

/**
 * Creates a master key from its id and its bytes.
 *
 * @param bytes holds the 32 secret bytes of the master key.
 * @throws RangeError if the master key does not have 32 bytes.
 */
export function masterKey(id: string, bytes: Uint8Array): MasterKey {
  if (bytes.length !== KEY_BYTES) {
    throw new RangeError(`a master key must be ${KEY_BYTES} bytes, not ${bytes.length}`)
  }
  return { id, key: createSecretKey(bytes) }
}

/** Returns 32 bytes that identify a master key without revealing the master key. */
export const masterKeyCheck = ({ key }: MasterKey): Buffer => deriveKey(key, 'purser/check')

/**
 * Holds the master keys of a process. The first master key encrypts new secrets, and every master key can decrypt its
 * own older secrets.
 */
export class Keyring {
  readonly #wrapping: ReadonlyMap<string, KeyObject>
  readonly #currentId: string

  /**
   * Creates a keyring from the given master keys. @throws RangeError if the list of master keys is empty, or if two
   * master keys have the same id.
   */
  constructor(keys: readonly MasterKey[]) {
    const first = keys[0]
    if (first === undefined) throw new RangeError('a keyring must hold a key')
    this.#wrapping = new Map(
      keys.map(({ id, key }) => [id, createSecretKey(deriveKey(key, 'purser/wrap'))]),
    )
    if (this.#wrapping.size !== keys.length) throw new RangeError('ids of keys must differ')
    this.#currentId = first.id
  }

  /** Returns the id of the master key that encrypts new secrets. */
  get currentId(): string {
    return this.#currentId
  }

  /** Encrypts a secret under a new random data key. */
  seal(plaintext: Uint8Array, context: SecretContext): Sealed {
    const dataKey = randomBytes(KEY_BYTES)
    try {
      const ciphertext = encrypt(createSecretKey(dataKey), plaintext, dataAd(context))
      return { ...this.#wrap(dataKey, context), ciphertext }
    } finally {
      dataKey.fill(0)
    }
  }

  /**
   * Decrypts a secret. @throws {UnknownMasterKeyError} if the keyring lacks the master key of the secret. @throws
   * {BrokenSealError} if the secret cannot be decrypted.
   */
  open(sealed: Sealed, context: SecretContext): Buffer {
    const dataKey = this.#unwrap(sealed, context)
    try {
      return decrypt(createSecretKey(dataKey), sealed.ciphertext, dataAd(context))
    } finally {
      dataKey.fill(0)
    }
  }

  /**
   * Encrypts the data key of a secret again under the current master key. The function neither reads nor changes the
   * ciphertext of the secret itself.
   * @throws {UnknownMasterKeyError} if the keyring lacks the old master key.
   * @throws {BrokenSealError} if the encrypted data key was changed.
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
    return decrypt(key, wrappedKey, keyAd(keyId, context))
  }
}

/** Derives a key for one purpose from a master key. */
export const deriveKey = (key: KeyObject, info: string): Buffer =>
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

/**
 * Joins the parts of the associated data of an encrypted secret. The length of each part stands before it, so that two
 * different lists of parts never give the same bytes.
 */
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
