import pino from 'pino'

const LINES_MAX = 40
const lines: string[] = []

/**
 * Keeps the last warnings of the services in this process, so that a failed wait can print them. If TEST_LOG_LEVEL is
 * set, the log prints all entries of this level at once instead.
 */
export const silentLog =
  process.env.TEST_LOG_LEVEL === undefined
    ? pino(
        { level: 'warn' },
        {
          write(line: string) {
            lines.push(line)
            if (lines.length > LINES_MAX) lines.shift()
          },
        },
      )
    : pino({ level: process.env.TEST_LOG_LEVEL })

/** Returns the last warnings of the services in this process, one on each line. */
export const lastWarnings = (): string => lines.join('')
