/**
 * For tests that hold the service to a time, or to an amount of memory. `test/main.ts` runs the files that import this one in a
 * process of their own, one after the other, without others beside them.
 */

/** The service promises to work again within this time, milliseconds. */
export const RECOVERY_LIMIT_MS = 15_000

/** A scheduled mail leaves within this time after its time, milliseconds. */
export const SCHEDULE_LATE_MAX_MS = 1_000
