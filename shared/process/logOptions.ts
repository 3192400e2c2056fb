import type { LoggerOptions } from 'pino'
import { isDatabaseUnavailable } from './databaseAway.ts'
import { databaseOutage } from './outage.ts'
import { workFields } from './workContext.ts'

/**
 * Holds the log level of fatal errors. The service logs a fatal error even during a database outage, when the line
 * about the outage replaces all other database errors.
 */
const FATAL = 60

/**
 * Sends the log to standard output. The logger Pino buffers log lines, so an exit without `flush` loses the last lines.
 * If minLength were 0, `flush` would not wait until the log lines are written.
 */
export const LOG_DESTINATION = { dest: 1, minLength: 1 } as const

/**
 * Sets the log format of every process: one JSON object in each line, with ISO 8601 times. The callers of the logger
 * never log secrets. In addition, the redaction of log fields protects secrets in the fields of error objects.
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
        // PostgreSQL quotes refused values in some fields of its errors, and these values can be mail or secrets.
        // Therefore the log leaves out the error fields in which PostgreSQL quotes values.
        'err.where',
        'err.detail',
        'err.internalQuery',
      ],
      censor: '[redacted]',
    },
  }
}
