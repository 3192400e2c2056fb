import { mkdir, statfs } from 'node:fs/promises'
import { openStoreOf } from '../../../shared/blobs/objectStore.ts'
import type { Config } from '../../../shared/config/config.ts'
import { judgeBlobStore, judgeDisk } from '../../../shared/doctor/databaseFindings.ts'
import type { Finding } from '../../../shared/doctor/finding.ts'
import { type DoctorTools, inTime, takeLooks } from './look.ts'

/** Examines the disk that holds DATA_DIR, and the object store. */
export const lookAtStorage = ({ config }: DoctorTools): Promise<Finding[]> =>
  takeLooks('storage', [
    { check: 'disk of DATA_DIR', run: async () => judgeDisk(await diskOf(config.dataDir)) },
    ...(config.blobStore === null
      ? []
      : [{ check: 'BLOB_STORE', run: async () => judgeBlobStore(await tryBlobStore(config)) }]),
  ])

async function diskOf(folder: string): Promise<{ freeBytes: number; totalBytes: number } | null> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const { bavail, blocks, bsize } = await statfs(folder)
    return { freeBytes: bavail * bsize, totalBytes: blocks * bsize }
  } catch {
    return null
  }
}

/**
 * Writes, reads and deletes a small object in the object store. @returns the step that failed, or `null` if no step
 * failed.
 */
async function tryBlobStore({ blobStore }: Config): Promise<Parameters<typeof judgeBlobStore>[0]> {
  const store = openStoreOf(blobStore, fetch, { warn() {} })!
  const name = `doctor-${crypto.randomUUID()}`
  const bytes = Buffer.from(name)
  const steps = [
    ['written', () => store.put(name, bytes)],
    ['read', async () => readBack(await store.get(name, bytes.length), bytes)],
    ['deleted', () => store.remove(name)],
  ] as const
  for (const [step, run] of steps) {
    try {
      await inTime(run())
    } catch (error) {
      return { step, reason: (error as Error).message }
    }
  }
  return null
}

function readBack(read: Buffer | null, bytes: Buffer): void {
  if (read === null || !read.equals(bytes)) throw new Error('other bytes came back')
}
