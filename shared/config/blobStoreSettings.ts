import type { z } from 'zod'
import { type BlobPlace, parseBlobStore } from './blobPlace.ts'
import { ConfigError } from './configError.ts'
import type { variables } from './variables.ts'

/** An S3-compatible bucket, with the credentials for it. */
export type BlobStoreSettings = BlobPlace & { accessKeyId: string; secretAccessKey: string }

/** The bucket of the settings; null: none. @throws {ConfigError} for a bucket without credentials */
export function blobStoreSettings(values: z.output<typeof variables>): BlobStoreSettings | null {
  const {
    BLOB_STORE: text,
    S3_ACCESS_KEY_ID: accessKeyId,
    S3_SECRET_ACCESS_KEY: secretAccessKey,
  } = values
  const place = text === undefined ? null : parseBlobStore(text)
  if (place === null) return null
  if (accessKeyId === undefined) {
    throw new ConfigError('S3_ACCESS_KEY_ID: it is missing, and must be set with BLOB_STORE')
  }
  if (secretAccessKey === undefined) {
    throw new ConfigError('S3_SECRET_ACCESS_KEY: it is missing, and must be set with BLOB_STORE')
  }
  return { ...place, accessKeyId, secretAccessKey }
}
