/**
 * Compares lists of allowed hosts, methods or paths. The function type `Meet` takes two entries and returns the entry
 * that allows exactly the requests that both entries allow. Null means that the two entries have no request in common.
 * If the result equals the first entry, the second entry allows every request that the first entry allows. Both
 * functions of this file use `Meet`, so their results never contradict each other.
 */
export type Meet = (one: string, other: string) => string | null

/** Tells whether the list `present` allows every request that the list `wanted` allows. */
export const isWithin = (
  meet: Meet,
  wanted: readonly string[],
  present: readonly string[],
): boolean => wanted.every((entry) => present.some((other) => meet(entry, other) === entry))

/** Returns a list that allows only the requests that both given lists allow. */
export function common(meet: Meet, one: readonly string[], other: readonly string[]): string[] {
  const both = one.flatMap((entry) => other.map((next) => meet(entry, next)))
  return [...new Set(both.filter((entry) => entry !== null))]
}
