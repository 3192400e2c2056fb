import { nearestName } from '../../../shared/nearestName.ts'
import { badRequest } from '../errors.ts'

/**
 * Is the maximum number of characters of an unknown field name in an error message, because a caller chooses the length
 * of the name.
 */
const SHOWN_CHARS = 64

/**
 * Is the option in a body's schema that lets {@link refuseUnknown} see unknown fields. Without this option Elysia would
 * drop the fields that the schema does not name. A misspelt setting would then be ignored instead of causing an error.
 */
export const KEEPS_UNKNOWN = { additionalProperties: true }

/**
 * Refuses unknown fields of a request body. Without this refusal, a request with a misspelt setting would get a 200
 * although the service ignores the setting.
 * @throws {ApiError} 400 with the name of the unknown field.
 */
export function refuseUnknown(
  place: string,
  given: object | undefined,
  known: readonly string[],
): void {
  const unknown = Object.keys(given ?? {}).find((field) => !known.includes(field))
  if (unknown === undefined) return
  const shown = JSON.stringify(unknown.slice(0, SHOWN_CHARS))
  throw badRequest(`${place} must not hold ${shown}: its fields are ${known.join(', ')}`)
}

/**
 * Refuses unknown query parameters. Without this refusal, a request with a misspelt filter would return an unfiltered
 * list.
 * @throws {ApiError} 400 with the name of the most similar known parameter.
 */
export function refuseUnknownQuery(given: URLSearchParams, known: readonly string[]): void {
  for (const name of given.keys()) {
    if (known.includes(name)) continue
    const shown = name.slice(0, SHOWN_CHARS)
    const nearest = nearestName(shown, known)
    const advice =
      nearest === undefined
        ? 'it takes no parameters'
        : `the nearest parameter is ${nearest.name}, of ${known.join(', ')}`
    throw badRequest(`The query must not hold ${JSON.stringify(shown)}: ${advice}`)
  }
}
