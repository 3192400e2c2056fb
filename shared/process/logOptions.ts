import type { LoggerOptions } from 'pino'
import { isDatabaseUnavailable } from './databaseAway.ts'
import { databaseOutage } from './outage.ts'
import { workFields } from './workContext.ts'

/**
 * Holds the log level of fatal errors, which are always logged. All other errors that an unavailable database causes
 * are summed up in one log line.
 */
const FATAL = 60

/**
 * Logs go to standard output. The logger Pino buffers lines, so an exit without `flush` loses the last lines. With
 * minLength 0, `flush` would not wait until the log lines are written.
 */
export const LOG_DESTINATION = { dest: 1, minLength: 1 } as const

/**
 * Sets the log format of every process: one JSON object a line, ISO 8601 times. The code that calls the logger never
 * logs secrets. The redaction of log fields is a second line of defence against secrets in the fields of error objects.
 */
export function logOptions(service: string, level: string): LoggerOptions {
  return {
    level,
    base: { service },
    mixin: workFields,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    hooks: {
      logMethod(args, method, level) {
        const { err } = (args[0] ?? {}) as { err?: unknown }
        if (level >= FATAL || !isDatabaseUnavailable(err)) return method.apply(this, args)
        databaseOutage.missed(
          (fields, message) => method.apply(this, [fields, message]),
          (err as Error).message,
        )
      },
    },
    formatters: { level: (label) => ({ level: label }) },
    redact: {
      paths: [
        'authorization',
        '*.authorization',
        'password',
        '*.password',
        'secret',
        '*.secret',
        'masterKeys',
        '*.masterKeys',
        'err.config',
        'err.options',
        // Postgres quotes refused values in some fields of its errors, and the values can be mail or secrets. So the
        // log leaves out the error fields in which Postgres quotes values.
        'err.where',
        'err.detail',
        'err.internalQuery',
      ],
      censor: '[redacted]',
    },
  }
}
