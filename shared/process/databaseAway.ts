import { errorCode } from '../errorCode.ts'

/** Lists Node's error codes for a failed or broken network connection. */
const NETWORK_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOENT',
])
/**
 * Matches the SQLSTATE codes of an unavailable database: class 08 (connection), 53 (resources), 57P0x (shutdown, crash,
 * starting), and 25006 (the server is a standby).
 */
const UNAVAILABLE_STATE = /^(08|53|57P0|25006)/
const UNAVAILABLE_MESSAGE =
  /timeout exceeded when trying to connect|connection terminated|client has encountered a connection error|not queryable|connection timeout|timeout expired|query read timeout/i

/**
 * Tells whether an error of the database driver means that the database is unavailable. An error that concerns only one
 * SQL statement is no such error.
 */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = errorCode(error)
  return (
    NETWORK_CODES.has(code) ||
    UNAVAILABLE_STATE.test(code) ||
    UNAVAILABLE_MESSAGE.test(error.message)
  )
}

/**
 * Matches the SQLSTATE codes of a refused row: class 22 (invalid data), 23 (constraint) and 54 (limit of PostgreSQL).
 */
const REFUSED_STATE = /^(22|23|54)/

/** Tells whether PostgreSQL refused a row because of its values. A retry with the same values would fail again. */
export const isRefusedRow = (error: unknown): boolean => REFUSED_STATE.test(errorCode(error))
