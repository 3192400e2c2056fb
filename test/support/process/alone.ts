/**
 * Marks tests that measure time or memory of the service. `test/main.ts` runs each file that imports this module in a
 * separate process, one file after the other, while no other test runs.
 */

/** Limits the milliseconds until the service works again after a fault, as the documents promise. */
export const RECOVERY_LIMIT_MS = 15_000

/** Is the greatest delay of a scheduled mail, in milliseconds. */
export const SCHEDULE_LATE_MAX_MS = 1_000
