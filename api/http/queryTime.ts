import { parseIsoTime } from '../../shared/isoTime.ts'
import { badRequest } from './errors.ts'

/** Reads a time of a query; undefined: it is absent. @throws {ApiError} 400 */
export function queryTime(field: string, given: string | undefined): Date | undefined {
  if (given === undefined) return undefined
  const at = parseIsoTime(given)
  if (at === null) throw badRequest(`${field} must be an ISO 8601 time with its zone, or a date`)
  return at
}
