import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'

const CIPHER = 'aes-256-gcm'
const KEY_BYTES = 32
/**
 * Holds the length of a nonce: 96 random bits (NIST SP 800-38D §8.2). A random nonce is safe, because each encryption
 * key encrypts only one content.
 */
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Holds the number of bytes that the encryption adds to a content. */
export const SEAL_BYTES = NONCE_BYTES + TAG_BYTES

/**
 * Holds content that is encrypted under its own key. The field `bytes` holds nonce, ciphertext and tag (AES-256-GCM).
 */
export type SealedBlob = {
  /** Holds the SHA-256 of the encrypted content in `bytes`. */
  hash: Buffer
  key: Buffer
  bytes: Buffer
}

/** Reports that the object store lacks an object, or that the bytes of an object have changed. */
export class LostObjectError extends Error {
  override readonly name = 'LostObjectError'
}

/** Encrypts content for the object store under a new random key. */
export function sealBlob(content: Uint8Array): SealedBlob {
  const key = randomBytes(KEY_BYTES)
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, key, nonce)
  const bytes = Buffer.concat([nonce, cipher.update(content), cipher.final(), cipher.getAuthTag()])
  return { hash: sha256(bytes), key, bytes }
}

/**
 * Decrypts an object that {@link sealBlob} encrypted. @throws {LostObjectError} if the encrypted bytes or the key are
 * wrong.
 */
export function openBlob({ hash, key, bytes }: SealedBlob): Buffer {
  if (bytes.length < SEAL_BYTES || !sha256(bytes).equals(hash)) {
    throw new LostObjectError(`the object ${hash.toString('hex')} is not the one that was written`)
  }
  const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES))
  decipher.setAuthTag(bytes.subarray(bytes.length - TAG_BYTES))
  const sealed = bytes.subarray(NONCE_BYTES, bytes.length - TAG_BYTES)
  try {
    return Buffer.concat([decipher.update(sealed), decipher.final()])
  } catch {
    throw new LostObjectError(`the object ${hash.toString('hex')} does not fit its key`)
  }
}

export const sha256 = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest()
