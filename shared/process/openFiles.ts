import { readdirSync, readFileSync } from 'node:fs'
import type { Logger } from 'pino'

const LOOK_MS = 1_000
/**
 * Sets the lowest limit on file descriptors that is high enough for a process. Under a lower limit, a burst of clients
 * can use up the file descriptors of the process.
 */
const ENOUGH = 1_024
/**
 * Holds the fraction of the limit on file descriptors at which a process counts as short of them. The shortage ends
 * when the process uses less than the fraction `RECOVERED` of the limit.
 */
const SHORT = 0.9
const RECOVERED = 0.8

/**
 * Reads the limit on the file descriptors of this process, and the number of its open descriptors. On a system without
 * /proc, the field `limit` is null.
 */
type OpenFiles = { limit: () => number | null; count: () => number }

const OF_THIS_PROCESS: OpenFiles = {
  limit() {
    try {
      const limits = readFileSync('/proc/self/limits', 'utf8')
      const [, soft] = /^Max open files\s+(\d+)/m.exec(limits) ?? []
      return soft === undefined ? null : Number(soft)
    } catch {
      return null
    }
  },
  count() {
    try {
      return readdirSync('/proc/self/fd').length
    } catch {
      // Counting the open file descriptors itself opens one. If the count fails, all file descriptors are in use, so
      // the count becomes infinite.
      return Number.POSITIVE_INFINITY
    }
  },
}

/**
 * Logs when the process is short of file descriptors. Without a free file descriptor, the runtime accepts no
 * connection, sends no response and reports nothing. The function also logs a warning at the start if the limit on file
 * descriptors is low.
 */
export function watchOpenFiles(log: Logger, files = OF_THIS_PROCESS, everyMs = LOOK_MS): void {
  const limit = files.limit()
  if (limit === null) return
  if (limit < ENOUGH) {
    log.warn({ limit }, `the limit of open files is low: set it to ${ENOUGH} or more (ulimit -n)`)
  }
  let isShort = false
  const timer = setInterval(() => {
    const open = files.count()
    if (!isShort && open >= limit * SHORT) {
      isShort = true
      log.error(
        { open: Number.isFinite(open) ? open : limit, limit },
        'open files run out: connections wait; raise the limit (ulimit -n)',
      )
    } else if (isShort && open < limit * RECOVERED) {
      isShort = false
      log.warn({ open, limit }, 'open files are free again')
    }
  }, everyMs)
  timer.unref()
}
