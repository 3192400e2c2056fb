/** Logs an outage with a line at its start, a line a minute with a count, and a line at its end. */

type Write = (fields: object, message: string) => void

/** Tracks a dependency of this process that can be unavailable. */
export type Outage = {
  /** Reports a failed use of the dependency. The latest `write` also logs the end of the outage. */
  missed(write: Write, reason: string): void
  /** Reports a successful use of the dependency. */
  answered(): void
}

const REMINDER_MS = 60_000
/** A success soon after a failure does not end the outage. For example, a full disk still allows reads. */
const QUIET_MS = 2_000

/** Follows one dependency. @param what the subject of the log lines, e.g. `the database`. */
export function createOutage(what: string, clock = () => performance.now()): Outage {
  let write: Write | null = null
  let missed = 0
  let sinceMs = 0
  let saidMs = 0
  let missedMs = 0
  return {
    missed(writeNow, reason) {
      const nowMs = clock()
      if (write === null) {
        missed = 0
        sinceMs = saidMs = nowMs
        writeNow({ reason }, `${what} is away`)
      } else if (nowMs - saidMs > REMINDER_MS) {
        saidMs = nowMs
        writeNow({ reason, missed, awayMs: Math.round(nowMs - sinceMs) }, `${what} is still away`)
      }
      write = writeNow
      missedMs = nowMs
      missed++
    },
    answered() {
      if (write === null || clock() - missedMs < QUIET_MS) return
      const writeEnd = write
      write = null
      writeEnd({ missed, awayMs: Math.round(clock() - sinceMs) }, `${what} is back`)
    },
  }
}

/**
 * Tracks the database of this process. Its log lines replace every log line about an error of an unavailable database.
 */
export const databaseOutage = createOutage('the database')
