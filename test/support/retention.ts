import type { Pool } from '../../sql/db.ts'
import { findDue, removeExpired, WALK_START } from '../../sql/operations/retention.ts'

/**
 * Removes every database row whose retention period has ended, as the workers do. @returns how many milliseconds the
 * slowest batch took
 */
export async function expireAll(pool: Pool): Promise<number> {
  let slowestMs = 0
  for (let after: bigint | null = WALK_START; after !== null; ) {
    const { due, next } = await findDue(pool, after, 50)
    for (const one of due) {
      for (let removed = 1; removed > 0; ) {
        const startedMs = performance.now()
        removed = await removeExpired(pool, one)
        slowestMs = Math.max(slowestMs, performance.now() - startedMs)
      }
    }
    after = next
  }
  return slowestMs
}
