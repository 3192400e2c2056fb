import type { LoggerOptions } from 'pino'
import { isDatabaseUnavailable } from './databaseAway.ts'
import { databaseOutage } from './outage.ts'

/** The database is missed by everybody at once: one line tells it for all. Fatal errors always stand. */
const FATAL = 60

/**
 * The destination of a log: standard output. Pino writes lines later, and an exit would lose the last ones. With a
 * minLength of 0 `flush` would not wait for them.
 */
export const LOG_DESTINATION = { dest: 1, minLength: 1 } as const

/**
 * How every process logs: one JSON object a line, ISO 8601 times. Nothing that can hold a secret is ever passed to the
 * log; redaction is the second line of defence, for a field that slips in with an error object.
 */
export function logOptions(service: string, level: string): LoggerOptions {
  return {
    level,
    base: { service },
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
        // Postgres quotes the values it could not use, mail and secrets among them.
        'err.where',
        'err.detail',
        'err.internalQuery',
      ],
      censor: '[redacted]',
    },
  }
}
