import { expect, test } from 'bun:test'
import { randomBytes, webcrypto } from 'node:crypto'
import {
  BrokenSealError,
  Keyring,
  masterKey,
  masterKeyCheck,
  type SecretContext,
  UnknownMasterKeyError,
} from '../../../shared/vault/envelope.ts'

const { subtle } = webcrypto
const OLD = randomBytes(32)
const NEW = randomBytes(32)
const oldRing = new Keyring([masterKey('old', OLD)])
const bothRing = new Keyring([masterKey('new', NEW), masterKey('old', OLD)])
const newRing = new Keyring([masterKey('new', NEW)])
const context: SecretContext = {
  purpose: 'credential',
  projectId: 'prj_1',
  name: 'ключ/🔑',
  version: 3,
}
const PLAINTEXT = Buffer.from('{"password":"correct horse"}')

/** Decrypts a sealed (encrypted) secret with WebCrypto, by using only the documented layout. */
async function openByTheBook(
  master: Buffer,
  sealed: { keyId: string; wrappedKey: Buffer; ciphertext: Buffer },
  { purpose, projectId, name, version }: SecretContext,
): Promise<Buffer> {
  const ad = (parts: string[]) =>
    Buffer.concat(
      parts.flatMap((part) => {
        const bytes = Buffer.from(part)
        return [Buffer.from(bytes.length.toString(16).padStart(8, '0'), 'hex'), bytes]
      }),
    )
  const unbox = async (key: ArrayBuffer | Buffer, box: Buffer, additionalData: Buffer) => {
    expect(box[0]).toBe(1)
    const aes = await subtle.importKey('raw', key, 'AES-GCM', false, ['decrypt'])
    const iv = box.subarray(1, 13)
    return Buffer.from(
      await subtle.decrypt({ name: 'AES-GCM', iv, additionalData }, aes, box.subarray(13)),
    )
  }
  const hkdf = await subtle.importKey('raw', master, 'HKDF', false, ['deriveBits'])
  const info = Buffer.from('purser/wrap')
  const wrapping = await subtle.deriveBits(
    { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(), info },
    hkdf,
    256,
  )
  const bound = [purpose, projectId, name, String(version)]
  const dataKey = await unbox(wrapping, sealed.wrappedKey, ad(['key', sealed.keyId, ...bound]))
  return unbox(dataKey, sealed.ciphertext, ad(['data', ...bound]))
}

test('a sealed (encrypted) secret can be decrypted, even by a program that knows only the documented layout', async () => {
  for (const plaintext of [PLAINTEXT, Buffer.alloc(0), randomBytes(64 * 1024)]) {
    const sealed = oldRing.seal(plaintext, context)
    expect(oldRing.open(sealed, context)).toEqual(plaintext)
    expect(await openByTheBook(OLD, sealed, context)).toEqual(plaintext)
    expect(sealed.ciphertext).toHaveLength(plaintext.length + 29)
    expect(sealed.wrappedKey).toHaveLength(61)
  }
})

test('each encryption of the same secret has a different nonce and different bytes', () => {
  const seals = Array.from({ length: 100 }, () => oldRing.seal(PLAINTEXT, context))
  for (const part of ['ciphertext', 'wrappedKey'] as const) {
    const nonces = seals.map((sealed) => sealed[part].subarray(1, 13).toString('hex'))
    expect(new Set(nonces).size).toBe(100)
    expect(new Set(seals.map((sealed) => sealed[part].toString('hex'))).size).toBe(100)
  }
})

test('a sealed (encrypted) secret cannot be decrypted for another project, name, version or purpose', () => {
  const sealed = oldRing.seal(PLAINTEXT, context)
  const others: Partial<SecretContext>[] = [
    { projectId: 'prj_2' },
    { name: 'ключ' },
    { version: 4 },
    { purpose: 'webhook-secret' },
    // The project id and the name together have the same characters as those of the sealed secret, but the boundary
    // between them is at another position. The service must not accept them, because the context is different.
    { projectId: 'prj_1ключ', name: '/🔑' },
    { projectId: '', name: 'prj_1ключ/🔑' },
  ]
  for (const other of others) {
    expect(() => oldRing.open(sealed, { ...context, ...other })).toThrow(BrokenSealError)
    expect(() => oldRing.rewrap(sealed, { ...context, ...other })).toThrow(BrokenSealError)
  }
})

test('a sealed (encrypted) secret cannot be decrypted if a bit is changed, or if bytes are missing or added', () => {
  const sealed = oldRing.seal(PLAINTEXT, context)
  for (const part of ['ciphertext', 'wrappedKey'] as const) {
    const changed = (bytes: Buffer) => () => oldRing.open({ ...sealed, [part]: bytes }, context)
    for (let n = 0; n < sealed[part].length; n++) {
      const bytes = Buffer.from(sealed[part])
      bytes[n]! ^= 1 << (n % 8)
      expect(changed(bytes)).toThrow(BrokenSealError)
    }
    for (const length of [0, 1, 13, 28, sealed[part].length - 1]) {
      expect(changed(sealed[part].subarray(0, length))).toThrow(BrokenSealError)
    }
    expect(changed(Buffer.concat([sealed[part], Buffer.alloc(1)]))).toThrow(BrokenSealError)
  }
  const other = oldRing.seal(PLAINTEXT, context)
  expect(() => oldRing.open({ ...sealed, ciphertext: other.ciphertext }, context)).toThrow(
    BrokenSealError,
  )
})

test('if a master key is missing, the error names the id of the key, and a wrong key with this id decrypts no secret', () => {
  const sealed = oldRing.seal(PLAINTEXT, context)
  expect(() => newRing.open(sealed, context)).toThrow(UnknownMasterKeyError)
  expect(() => newRing.open(sealed, context)).toThrow('MASTER_KEYS lacks the key "old"')
  const wrong = new Keyring([masterKey('old', NEW)])
  expect(() => wrong.open(sealed, context)).toThrow(BrokenSealError)
  // The authenticated data contain the id of the master key, so a different id must cause an error.
  const twin = new Keyring([masterKey('twin', OLD)])
  expect(() => twin.open({ ...sealed, keyId: 'twin' }, context)).toThrow(BrokenSealError)
})

test('if a data key is encrypted with a new master key, only the new key opens the secret, and the ciphertext stays the same', async () => {
  const sealed = oldRing.seal(PLAINTEXT, context)
  expect(bothRing.open(sealed, context)).toEqual(PLAINTEXT)
  const moved = { ...sealed, ...bothRing.rewrap(sealed, context) }
  expect(moved.keyId).toBe('new')
  expect(moved.ciphertext).toBe(sealed.ciphertext)
  expect(newRing.open(moved, context)).toEqual(PLAINTEXT)
  expect(await openByTheBook(NEW, moved, context)).toEqual(PLAINTEXT)
  expect(() => oldRing.open(moved, context)).toThrow(UnknownMasterKeyError)
})

test('the check value of a master key identifies this key, but it cannot be used as the key that encrypts data keys', async () => {
  const check = masterKeyCheck(masterKey('any', OLD))
  expect(check).toEqual(masterKeyCheck(masterKey('id', OLD)))
  expect(check).not.toEqual(masterKeyCheck(masterKey('any', NEW)))
  expect(check).toHaveLength(32)
  const sealed = oldRing.seal(PLAINTEXT, context)
  await expect(openByTheBook(check, sealed, context)).rejects.toThrow()
})

test('master keys have 32 bytes and distinct ids, and a keyring hides their bytes', () => {
  expect(() => masterKey('a', randomBytes(31))).toThrow(RangeError)
  expect(() => new Keyring([])).toThrow(RangeError)
  expect(() => new Keyring([masterKey('a', OLD), masterKey('a', NEW)])).toThrow(RangeError)
  for (const shown of [JSON.stringify(oldRing), Bun.inspect(oldRing, { depth: 9 })]) {
    expect(shown).not.toContain(OLD.toString('hex').slice(0, 16))
    expect(shown).not.toContain(OLD.toString('base64').slice(0, 16))
  }
})
