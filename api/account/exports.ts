import type { Logger } from 'pino'
import type { Actor } from '../../sql/account/audit.ts'
import {
  EXPORTS_MAX,
  EXPORTS_PER_KEY_MAX,
  openExport,
  type ProjectExport,
} from '../../sql/account/projects/exportProject.ts'
import type { Blobs } from '../../sql/blobs/blobs.ts'
import type { Pool } from '../../sql/db.ts'
import { ApiError } from '../http/errors.ts'

/**
 * Sets the maximum duration of one export of a project's data, in milliseconds. A longer export would be harmful,
 * because PostgreSQL cannot remove old rows while the export's database snapshot is open.
 */
const LIMIT_MS = 6 * 60 * 60_000
/** Sets the interval in milliseconds at which a running export checks its platform key again. */
const CHECK_MS = 2_000
/**
 * Sets the lowest speed at which a client may read an export, in bytes a second, and the time for which a client may be
 * slower. Without these limits, a client that reads a chunk a minute would keep the database snapshot for six hours.
 * The service counts only the time in which it waits for the client.
 */
const LOWEST_SPEED = 64 * 1024
const SLOW_MAX_MS = 5 * 60_000
/** Sets the approximate number of bytes of each chunk of an export. */
const CHUNK_BYTES = 64 * 1024

/** Holds the open exports of this process. */
export type Exports = {
  /**
   * Opens a database snapshot of a project for an export. @throws {ApiError} 429 if too many exports run. @returns
   * `null` if the project does not exist.
   */
  open(projectId: string, entry: { actor: Actor; part: string }): Promise<ProjectExport | null>
  /**
   * Streams the pieces of an export as fast as the client reads them. Closes the database snapshot at the end of the
   * export, and after an error or an abort.
   * @param reader.admitAgain throws an ApiError if the platform key is revoked. The export then ends early.
   */
  stream(
    taken: ProjectExport,
    pieces: AsyncGenerator<Uint8Array>,
    reader: { signal: AbortSignal; admitAgain: () => Promise<void> },
  ): ReadableStream<Uint8Array>
  /** Returns the number of exports that are running in this process. */
  size(): number
  /** Ends all exports when the process stops. */
  stop(): Promise<void>
}

/**
 * Creates the store of open exports.
 * @param stores holds the store of large mail contents, and `pool`, whose connections only exports use. The pool has
 * one connection more than the maximum number of exports. With this additional connection, the service can refuse a
 * further export at once.
 */
export function createExports(
  stores: { pool: Pool; blobs: Blobs },
  log: Logger,
  { limitMs = LIMIT_MS, slowMaxMs = SLOW_MAX_MS } = {},
): Exports {
  const open = new Set<() => Promise<void>>()
  return {
    async open(projectId, entry) {
      const taken = await openExport(stores, projectId, entry)
      if (taken !== 'busy' && taken !== 'key busy') return taken
      const message =
        taken === 'busy'
          ? `At most ${EXPORTS_MAX} exports may run at once`
          : `At most ${EXPORTS_PER_KEY_MAX} exports of a platform key may run at once`
      throw new ApiError(429, 'rate_limited', message, { 'retry-after': '30' })
    },
    stream(taken, pieces, { signal, admitAgain }) {
      const deadlineMs = performance.now() + limitMs
      let checkMs = performance.now() + CHECK_MS
      let sentMs = performance.now()
      let slowMs = 0
      const check = async () => {
        if (performance.now() < checkMs) return
        checkMs = performance.now() + CHECK_MS
        // If the database is unreachable while the code checks the platform key again, the export continues, and the
        // next check decides whether the export must end.
        await admitAgain().catch((error: unknown) => {
          if (error instanceof ApiError) throw error
        })
      }
      const end = async () => {
        open.delete(end)
        signal.removeEventListener('abort', end)
        // The generator's `return` resolves only after the running SQL statement of the export has ended. Only then is
        // the database connection free.
        await pieces.return(undefined).catch(() => {})
        await taken.close()
      }
      open.add(end)
      signal.addEventListener('abort', end)
      if (signal.aborted) void end()
      return new ReadableStream(
        {
          async pull(controller) {
            try {
              const nowMs = performance.now()
              if (nowMs > deadlineMs) throw new Error('the export took too long')
              slowMs += nowMs - sentMs
              if (slowMs > slowMaxMs) throw new Error('the client reads the export too slowly')
              await check()
              const { chunk, done } = await nextChunk(pieces)
              slowMs = Math.max(0, slowMs - (chunk.length / LOWEST_SPEED) * 1_000)
              sentMs = performance.now()
              if (chunk.length > 0) controller.enqueue(chunk)
              if (!done) return
              // The code ends the stream of an aborted export with an error. The export lacks its last line, so it must
              // not look complete to the client.
              if (!open.has(end)) throw new Error('the export was aborted')
              await end()
              controller.close()
            } catch (error) {
              if (open.has(end)) log.warn({ err: error }, 'an export ended early')
              await end()
              // If an export ends early, the code breaks the client's connection. Otherwise the client would take the
              // incomplete file for a complete one. The error that breaks the connection also appears in the output of
              // the runtime.
              controller.error(new Error('an export ended early'))
            }
          },
          cancel: end,
        },
        { highWaterMark: 1 },
      )
    },
    size: () => open.size,
    async stop() {
      await Promise.all([...open].map((end) => end()))
      await stores.pool.end()
    },
  }
}

async function nextChunk(
  pieces: AsyncGenerator<Uint8Array>,
): Promise<{ chunk: Uint8Array; done: boolean }> {
  const parts: Uint8Array[] = []
  let bytes = 0
  while (bytes < CHUNK_BYTES) {
    const { value, done } = await pieces.next()
    if (done) return { chunk: Buffer.concat(parts), done: true }
    parts.push(value)
    bytes += value.length
  }
  return { chunk: Buffer.concat(parts), done: false }
}
