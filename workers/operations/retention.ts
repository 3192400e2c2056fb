import type { Pool } from '../../sql/db.ts'
import { type DueRows, findDue, removeExpired, WALK_START } from '../../sql/operations/retention.ts'

/** Projects that one look reads: about 20 ms. */
const PROJECTS_AT_ONCE = 200
/** The part of a sweep that removes rows. Other housekeeping waits meanwhile. */
const TURN_MS = 1_000
/** The least time from one walk over all projects to the next. */
const WALK_EVERY_MS = 300_000

/**
 * Removes rows by age. Each call takes a turn: the next projects, then batches of theirs by turns, so that a large tenant
 * delays no other. Several processes share the work: each skips the rows that another holds.
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
      // The walk goes on at once until its last project.
      restMs = next === null ? startedMs + WALK_EVERY_MS : startedMs
    }
    while (waiting.length > 0 && performance.now() - startedMs < TURN_MS) {
      const one = waiting.shift()!
      if ((await removeExpired(pool, one)) > 0) waiting.push(one)
    }
  }
}
