import type { z } from 'zod'
import { type BlobPlace, parseBlobStore } from './blobPlace.ts'
import type { variables } from './variables.ts'

/** Describes an S3-compatible bucket with the credentials for the bucket. */
export type BlobStoreSettings = BlobPlace & { accessKeyId: string; secretAccessKey: string }

/**
 * Returns the bucket of the settings with its credentials. @returns null if the settings name no bucket, or lack the
 * credentials for the bucket.
 */
export function blobStoreSettings(
  values: z.output<typeof variables>,
  name: 'BLOB_STORE' | 'INBOUND_SES_BUCKET' = 'BLOB_STORE',
): BlobStoreSettings | null {
  const text = values[name]
  const { S3_ACCESS_KEY_ID: accessKeyId, S3_SECRET_ACCESS_KEY: secretAccessKey } = values
  const place = text === undefined ? null : parseBlobStore(text)
  if (place === null || accessKeyId === undefined || secretAccessKey === undefined) return null
  return { ...place, accessKeyId, secretAccessKey }
}
