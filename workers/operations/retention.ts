import type { Pool } from '../../sql/db.ts'
import { type DueRows, findDue, removeExpired, WALK_START } from '../../sql/operations/retention.ts'

/**
 * Limits how many projects one query of the retention sweep reads. A query for this many projects takes about 20 ms.
 */
const PROJECTS_AT_ONCE = 200
/**
 * Limits the milliseconds for which one retention sweep removes rows, because other housekeeping waits for the end of
 * the sweep.
 */
const TURN_MS = 1_000
/**
 * Sets the minimum number of milliseconds between the starts of two passes over all projects.
 */
const WALK_EVERY_MS = 300_000

/**
 * Removes the expired rows of each project. Each call continues with the next projects, and removes one batch of rows
 * of each project in rotation, so that a large tenant does not delay others. Several processes share this work, because
 * each process skips the rows that another process has locked.
 */
export function createRetention(pool: Pool): () => Promise<void> {
  let after = WALK_START
  let restMs = Number.NEGATIVE_INFINITY
  let waiting: DueRows[] = []
  return async () => {
    const startedMs = performance.now()
    if (waiting.length === 0 && startedMs >= restMs) {
      const { due, next } = await findDue(pool, after, PROJECTS_AT_ONCE)
      waiting = due
      after = next ?? WALK_START
      // Once begun, a pass over all projects continues without a pause up to the last project.
      restMs = next === null ? startedMs + WALK_EVERY_MS : startedMs
    }
    while (waiting.length > 0 && performance.now() - startedMs < TURN_MS) {
      const one = waiting.shift()!
      if ((await removeExpired(pool, one)) > 0) waiting.push(one)
    }
  }
}
