import type { Pool } from '../../sql/db.ts'
import { type DueRows, findDue, removeExpired, WALK_START } from '../../sql/operations/retention.ts'

/** One query reads this many projects. It takes about 20 ms. */
const PROJECTS_AT_ONCE = 200
/** Limits the part of a sweep that removes rows, because other housekeeping waits meanwhile. */
const TURN_MS = 1_000
/** Walks over all projects begin at least this far apart. */
const WALK_EVERY_MS = 300_000

/**
 * Removes rows by age. Each call reads the next projects, then takes one batch of each project in turn, so that a large
 * tenant does not delay the others. Several processes share the work: each process skips the rows that another process
 * has locked.
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
      // Until the last project, the walk continues without a pause.
      restMs = next === null ? startedMs + WALK_EVERY_MS : startedMs
    }
    while (waiting.length > 0 && performance.now() - startedMs < TURN_MS) {
      const one = waiting.shift()!
      if ((await removeExpired(pool, one)) > 0) waiting.push(one)
    }
  }
}
