import type { LoggerOptions } from 'pino'
import { isDatabaseUnavailable } from './databaseAway.ts'
import { databaseOutage } from './outage.ts'
import { workFields } from './workContext.ts'

/**
 * Holds the log level of fatal errors. During a database outage, one log line replaces the log lines of all database
 * errors except fatal errors.
 */
const FATAL = 60

/**
 * Sends the log to standard output. The logger Pino buffers log lines, so the process must call `flush` before an exit.
 * The value of minLength is 1, because with 0, `flush` would not wait until Pino has written the lines.
 */
export const LOG_DESTINATION = { dest: 1, minLength: 1 } as const

/**
 * Sets the log format of every process: one JSON object in each line, with ISO 8601 times. The code never passes
 * secrets to the logger. In addition, the logger removes fields of error objects that may hold secrets.
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
        // PostgreSQL quotes refused values in some fields of its errors. These values can be mail or secrets, so the
        // log leaves out these fields.
        'err.where',
        'err.detail',
        'err.internalQuery',
      ],
      censor: '[redacted]',
    },
  }
}
