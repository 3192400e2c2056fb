import type { Logger } from 'pino'
import { BlobsAwayError, type ObjectStore } from '../../shared/blobs/objectStore.ts'
import { createPause } from '../../shared/process/pause.ts'
import type { Running } from '../../shared/process/service.ts'
import { buryIdleBlobs, removeAllDeadBlobs } from '../../sql/blobs/sweepBlobs.ts'
import { createPool } from '../../sql/db.ts'

const SWEEP_MS = 30_000

/**
 * Starts the removal of the objects of deleted mail from the object store. Several processes may remove the objects of
 * deleted mail at once. The removal of objects is separate from other housekeeping, so that a slow object store does
 * not delay the other housekeeping.
 */
export function startBlobSweep(databaseUrl: string, store: ObjectStore, log: Logger): Running {
  const pool = createPool({ url: databaseUrl, size: 1, name: 'purser blobs', log })
  const pause = createPause()
  let isStopping = false
  const run = async () => {
    while (!isStopping) {
      try {
        while (!isStopping && (await buryIdleBlobs(pool)) > 0);
        if (!isStopping) await removeAllDeadBlobs(pool, store, () => isStopping)
      } catch (error) {
        if (!(error instanceof BlobsAwayError)) log.warn({ err: error }, 'objects were not removed')
      }
      if (!isStopping) await pause.sleep(SWEEP_MS)
    }
  }
  const done = run()
  return {
    async stop() {
      isStopping = true
      pause.wake()
      await done
      await pool.end()
    },
  }
}
