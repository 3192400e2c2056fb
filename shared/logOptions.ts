import type { LoggerOptions } from 'pino'

/**
 * How every process logs: one JSON object a line, ISO 8601 times. Nothing that can hold a secret is ever passed to the
 * log; redaction is the second line of defence, for a field that slips in with an error object.
 */
export function logOptions(service: string, level: string): LoggerOptions {
  return {
    level,
    base: { service },
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
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
