import { badRequest } from './errors.ts'

/** The shown part of an unknown name. A caller chooses its length. */
const SHOWN_CHARS = 64

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
  const shown = JSON.stringify(unknown.slice(0, SHOWN_CHARS))
  throw badRequest(`${place} must not hold ${shown}: its fields are ${known.join(', ')}`)
}

/**
 * Refuses query parameters that are not known: a misspelt filter would otherwise be a list without that filter.
 * @throws {ApiError} 400 that names the nearest known parameter
 */
export function refuseUnknownQuery(given: URLSearchParams, known: readonly string[]): void {
  for (const name of given.keys()) {
    if (known.includes(name)) continue
    const shown = name.slice(0, SHOWN_CHARS)
    const [nearest] = known.toSorted((one, other) => distance(one, shown) - distance(other, shown))
    const advice =
      nearest === undefined
        ? 'it takes no parameters'
        : `the nearest parameter is ${nearest}, of ${known.join(', ')}`
    throw badRequest(`The query must not hold ${JSON.stringify(shown)}: ${advice}`)
  }
}

/** The edit distance of two words (Levenshtein), whatever their case. */
function distance(one: string, other: string): number {
  const [a, b] = [one.toLowerCase(), other.toLowerCase()]
  let row = Array.from({ length: b.length + 1 }, (_, n) => n)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1))
    }
    row = next
  }
  return row[b.length]!
}
