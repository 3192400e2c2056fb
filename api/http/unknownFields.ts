import { badRequest } from './errors.ts'

/**
 * Refuses fields that are not known: a misspelt setting would otherwise be an answer 200 and no change.
 * @throws {ApiError} 400
 */
export function refuseUnknown(
  place: string,
  given: object | undefined,
  known: readonly string[],
): void {
  const unknown = Object.keys(given ?? {}).find((field) => !known.includes(field))
  if (unknown === undefined) return
  const shown = JSON.stringify(unknown.slice(0, 64))
  throw badRequest(`${place} must not hold ${shown}: its fields are ${known.join(', ')}`)
}
