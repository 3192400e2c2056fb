import type { TSchema } from '@sinclair/typebox'
import { nearestName } from '../../../shared/nearestName.ts'
import { type ApiError, badRequest } from '../errors.ts'

/**
 * Limits how many characters of an unknown field name an error message shows, because the caller chooses the length of
 * the name.
 */
const SHOWN_CHARS = 64

/**
 * Refuses unknown fields of a request body at every depth. Otherwise Elysia would drop them, and a mail with a misspelt
 * `sendAt` would be sent at once.
 * @param schema describes the fields that `given` may have. An object whose schema allows additional properties may
 * hold any field.
 * @param path is the path of `given` in the request body. The whole body has an empty path.
 * @throws {ApiError} 400 with the name of the unknown field and the name of the most similar known field.
 */
export function refuseUnknownFields(given: unknown, schema: TSchema | undefined, path = ''): void {
  const type = Array.isArray(given) ? 'array' : 'object'
  const forms: readonly TSchema[] = [schema, ...(schema?.anyOf ?? [])].filter(
    (form: TSchema | undefined) => form?.type === type,
  )
  const [form] = forms
  if (typeof given !== 'object' || given === null || form === undefined) return
  if (Array.isArray(given)) {
    // The function does not check the items of a list in a request body if the list is too long, because a body of 35
    // MB could hold twelve million items. The schema refuses such a list later.
    if (given.length > (form.maxItems ?? 0)) return
    for (const [n, item] of given.entries()) refuseUnknownFields(item, form.items, `${path}[${n}]`)
    return
  }
  // If the schema allows several forms of an object, a field of any form counts as known. The later check by the schema
  // decides which form the object has.
  const known: Record<string, TSchema> = Object.assign({}, ...forms.map((one) => one.properties))
  const isOpen = forms.some(
    (one) => one.patternProperties !== undefined || one.additionalProperties === true,
  )
  for (const [name, value] of Object.entries(given)) {
    if (Object.hasOwn(known, name)) {
      refuseUnknownFields(value, known[name], path === '' ? name : `${path}.${name}`)
    } else if (!isOpen) {
      throw unknownName(path === '' ? 'The body' : path, 'field', name, Object.keys(known))
    }
  }
}

/**
 * Refuses unknown and repeated query parameters. Otherwise a request with a misspelt filter would get an unfiltered
 * list, and of a repeated filter only the last value would count.
 * @throws {ApiError} 400 with the name of the repeated parameter, or of the most similar known parameter.
 */
export function refuseUnknownQuery(given: URLSearchParams, known: readonly string[]): void {
  const seen = new Set<string>()
  for (const name of given.keys()) {
    if (!known.includes(name)) throw unknownName('The query', 'parameter', name, known)
    if (seen.has(name)) throw badRequest(`The query must not set ${name} twice`)
    seen.add(name)
  }
}

function unknownName(
  place: string,
  kind: 'field' | 'parameter',
  name: string,
  known: readonly string[],
): ApiError {
  const shown = name.slice(0, SHOWN_CHARS)
  const nearest = nearestName(shown, known)
  const advice =
    nearest === undefined
      ? `it takes no ${kind}s`
      : `the nearest ${kind} is ${nearest.name}, of ${known.join(', ')}`
  return badRequest(`${place} must not hold ${JSON.stringify(shown)}: ${advice}`)
}
