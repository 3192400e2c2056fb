/**
 * Marks tests that measure time or memory of the service. `test/main.ts` runs each file that imports this module in a
 * separate process, one file after the other, while no other test runs.
 */

/** Is the time within which the service promises to work again, in milliseconds. */
export const RECOVERY_LIMIT_MS = 15_000

/** Is the greatest delay of a scheduled mail, in milliseconds. */
export const SCHEDULE_LATE_MAX_MS = 1_000
