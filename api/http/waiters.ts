import type { Logger } from 'pino'
import { createPause, type Pause } from '../../shared/process/pause.ts'
import { CHANGES_CHANNEL } from '../../sql/changes.ts'
import { subscribe } from '../../sql/listen.ts'

/**
 * Waits for changes of one database row. The caller starts to watch the row before it reads the row, so that it misses
 * no change.
 */
type Watch = {
  /**
   * Resolves to `true` if the awaited database row has changed since the last call of this function. Resolves to
   * `false` if the deadline (a value of performance.now()) passes before the row changes.
   */
  changed(deadlineMs: number): Promise<boolean>
  close(): void
}

/**
 * Holds the HTTP requests that wait for the result of a payment or of an endpoint check. One database connection
 * listens for the changes of all awaited rows.
 */
export type Waiters = {
  watch(id: string): Watch
  /** Returns the number of HTTP requests that wait for a change of their database row. */
  size(): number
  /** Ends every wait for a row change when the process stops. Each wait ends as if its deadline had passed. */
  release(): void
  stop(): Promise<void>
}

type Waiting = { dirty: boolean; pause: Pause }

/**
 * Starts to listen for changed rows. After a lost database connection, every waiting request reads its row again, so
 * that it misses no change.
 */
export function startWaiters(databaseUrl: string, log: Logger): Waiters {
  const waiting = new Map<string, Set<Waiting>>()
  let released = false
  const poke = (entry: Waiting) => {
    entry.dirty = true
    entry.pause.wake()
  }
  const pokeAll = () => {
    for (const entries of waiting.values()) for (const entry of entries) poke(entry)
  }
  const subscription = subscribe({
    databaseUrl,
    channel: CHANGES_CHANNEL,
    name: 'purser api (payments)',
    onNotify: (id) => {
      for (const entry of waiting.get(id) ?? []) poke(entry)
    },
    onConnect: pokeAll,
    onError: (error) => log.warn({ err: error }, 'the listener for payments lost its connection'),
  })
  return {
    watch(id) {
      const entry: Waiting = { dirty: false, pause: createPause() }
      const entries = waiting.get(id) ?? new Set()
      waiting.set(id, entries.add(entry))
      return {
        async changed(deadlineMs) {
          const leftMs = deadlineMs - performance.now()
          if (!entry.dirty && !released && leftMs > 0) {
            await entry.pause.sleep(leftMs)
          }
          const { dirty } = entry
          entry.dirty = false
          return dirty && !released
        },
        close() {
          entries.delete(entry)
          if (entries.size === 0 && waiting.get(id) === entries) waiting.delete(id)
        },
      }
    },
    size: () => waiting.values().reduce((sum, entries) => sum + entries.size, 0),
    release() {
      released = true
      pokeAll()
    },
    stop: () => subscription.stop(),
  }
}
