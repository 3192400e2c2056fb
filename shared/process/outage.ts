/** An outage in the log: a line when it begins, a line when it ends, and between them a line a minute with a count. */

type Write = (fields: object, message: string) => void

/** Something that this process depends on, and that can be away. */
export type Outage = {
  /** A use failed. `write` logs; the last one given tells the end, too. */
  missed(write: Write, reason: string): void
  /** A use succeeded. */
  answered(): void
}

const REMINDER_MS = 60_000
/** Uses that succeed between others that fail are no end: a disk that is full still lets rows be read. */
const QUIET_MS = 2_000

/** Follows one dependency. @param what begins the log lines, e.g. `the database`. */
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

/** The database of this process. Every log line about an error of a database that is away is folded into it. */
export const databaseOutage = createOutage('the database')
