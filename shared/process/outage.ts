/**
 * Logs the outage of a dependency, such as the database. The service logs one line at the start of the outage, one line
 * each minute with the number of failures, and one line at the end.
 */

type Write = (fields: object, message: string) => void

/** Tracks whether a dependency of this process (such as the database) is unavailable. */
export type Outage = {
  /**
   * Records that the dependency (such as the database) failed. When the outage ends, the function `write` of the last
   * recorded failure writes the log line about the end.
   */
  missed(write: Write, reason: string): void
  /** Records a successful use of the dependency (such as the database). */
  answered(): void
}

const REMINDER_MS = 60_000
/**
 * Sets the time without failures, in milliseconds, after which an outage counts as ended. A single success does not end
 * an outage, because a full disk, for example, still allows reads.
 */
const QUIET_MS = 2_000

/**
 * Records the outages of one dependency, such as the database.
 * @param what is the subject of the log lines in words, such as `the database`.
 */
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
 * Tracks the outages of this process's database. During an outage, the log lines about the outage replace all other log
 * lines about database errors.
 */
export const databaseOutage = createOutage('the database')
