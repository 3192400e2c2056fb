import type { Blobs } from '../../../sql/blobs/blobs.ts'

/** Keeps all contents of mails in the database, without an object store. */
export const noBlobs: Blobs = {
  keep: async () => null,
  read: async ({ bytes, blob }) => {
    if (blob !== null) throw new Error('there is no object store')
    return bytes
  },
  of: () => noBlobs,
}
