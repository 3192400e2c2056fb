import { Type as t } from '@sinclair/typebox'
import { parseIsoTime } from '../../../shared/isoTime.ts'
import { badRequest } from '../errors.ts'

/**
 * Reads a time in a query parameter. Returns `undefined` if the query parameter is absent. @throws {ApiError} 400 for
 * an invalid time.
 */
export function queryTime(field: string, given: string | undefined): Date | undefined {
  if (given === undefined) return undefined
  const at = parseIsoTime(given)
  if (at === null) throw badRequest(`${field} must be an ISO 8601 time with its zone, or a date`)
  return at
}

const Instant = (description: string) =>
  t.Optional(
    t.String({
      minLength: 1,
      maxLength: 40,
      description,
      examples: ['2026-01-31T09:30:00Z', '2026-01-31'],
    }),
  )

/** Describes the period of time in the query of a list. */
export const RangeQuery = t.Object({
  after: Instant('The list holds only entries that were created at this ISO 8601 time or later.'),
  before: Instant('The list holds only entries that were created before this ISO 8601 time.'),
})

/** Reads the period of time in the query of a list. @throws {ApiError} 400 for an invalid time. */
export function readRange(query: { after?: string; before?: string }): {
  after?: Date
  before?: Date
} {
  const [after, before] = [queryTime('after', query.after), queryTime('before', query.before)]
  return { ...(after === undefined ? {} : { after }), ...(before === undefined ? {} : { before }) }
}
