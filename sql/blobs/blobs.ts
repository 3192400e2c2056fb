import {
  BlobsAwayError,
  type ObjectStore,
  ObjectTooLargeError,
} from '../../shared/blobs/objectStore.ts'
import { FairTurns } from '../../shared/fair/fairTurns.ts'
import type { Queryable } from '../db.ts'
import { LostObjectError, openBlob, SEAL_BYTES, sealBlob, sha256 } from './sealedBlob.ts'

/** Sets the size in bytes above which a mail's content is stored in the object store. */
export const BLOB_BYTES = 64 * 1024

/**
 * Describes a mail's content in the form that a database row holds: either the bytes themselves, or the hash of an
 * object in the object store.
 */
export type StoredContent = { bytes: Buffer; blob: Buffer | null }

/** Stores contents of mail that are too large for the database in an object store. */
export type Blobs = {
  /**
   * Writes large content to the object store. The caller then stores a database row with the hash of the object. If no
   * database row names an object, a sweep job removes it after an hour.
   * @returns the hash that names the object. Null means that the caller stores the content in the database row. The
   * content is then small, or the object store does not take objects of this size.
   * @throws {BlobsAwayError} if the object store is unavailable.
   */
  keep(content: Uint8Array): Promise<Buffer | null>
  /**
   * Returns the content that a database row holds or names, and reads the object store if necessary. @throws
   * {BlobsAwayError} if the object store is unavailable.
   */
  read(stored: StoredContent): Promise<Buffer>
  /**
   * Returns the same store of mail contents with a separate queue for one project. Large contents of one project then
   * wait for each other, but never for those of other projects.
   */
  of(projectId: string): Blobs
}

/**
 * Sets the maximum number of mail contents that one project may hold in memory at once. The SMTP listener also writes
 * at most this many mails at once from its spool (the file of accepted mail) to the object store.
 */
export const OWN_AT_ONCE = 3
/**
 * Sets the maximum number of mail contents in memory at once, because a content has up to 35 MB, and the object store
 * may be slow.
 */
const AT_ONCE = { total: 12, perSharer: OWN_AT_ONCE }

/**
 * Creates the store for mail contents. @param store is the object store. Without an object store (null), every content
 * stays in the database.
 */
export function createBlobs(db: Queryable, store: ObjectStore | null): Blobs {
  const turns = new FairTurns(AT_ONCE)
  const inTurn = async <Result>(owner: string, work: () => Promise<Result>): Promise<Result> => {
    const leave = await turns.enter(owner)
    try {
      return await work()
    } finally {
      leave()
    }
  }
  const of = (owner: string): Blobs => ({
    keep: async (content) =>
      store === null || content.length <= BLOB_BYTES
        ? null
        : await inTurn(owner, () => writeBlob(db, store, content)),
    read: async ({ bytes, blob }) =>
      blob === null ? bytes : await inTurn(owner, () => readBlob(db, store, blob)),
    of,
  })
  return of('service')
}

/**
 * Encrypts content and writes the ciphertext to the object store. The function first stores the database row of the
 * object, so that every object has a row. @returns the object's hash, or null if the object store does not take an
 * object of this size.
 */
export async function writeBlob(
  db: Queryable,
  store: ObjectStore,
  content: Uint8Array,
): Promise<Buffer | null> {
  const { hash, key, bytes } = sealBlob(content)
  await db.query({
    name: 'insert-blob',
    text: 'insert into blobs (hash, key, size, content_hash) values ($1, $2, $3, $4)',
    values: [hash, key, content.length, sha256(content)],
  })
  try {
    await store.put(hash.toString('hex'), bytes)
  } catch (error) {
    if (error instanceof ObjectTooLargeError) return null
    throw error
  }
  return hash
}

/** Returns the decrypted content of an object in the object store. */
export async function readBlob(
  db: Queryable,
  store: ObjectStore | null,
  hash: Buffer,
): Promise<Buffer> {
  const { rows } = await db.query<{ key: Buffer; size: number }>({
    name: 'find-blob',
    text: 'select key, size from blobs where hash = $1',
    values: [hash],
  })
  if (store === null) throw new BlobsAwayError('BLOB_STORE is not set, and a row names an object')
  const row = rows[0]
  const name = hash.toString('hex')
  const bytes = row === undefined ? null : await store.get(name, row.size + SEAL_BYTES)
  if (row === undefined || bytes === null)
    throw new LostObjectError(`the object ${name} is missing`)
  return openBlob({ hash, key: row.key, bytes })
}
