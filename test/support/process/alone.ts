/**
 * Marks test files that measure time or memory of the service. `test/main.ts` runs each of these files in a separate
 * process, one after another, while no other test runs.
 */

/**
 * Sets the maximum number of milliseconds until the service works again after a fault, as the documentation promises.
 */
export const RECOVERY_LIMIT_MS = 15_000
