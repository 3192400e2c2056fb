/**
 * Lists of entries that allow something. `Meet` is what two entries both allow, as an entry; null: nothing. An entry is
 * within another one exactly when it is what both allow, so narrowing and intersection cannot disagree.
 */
export type Meet = (one: string, other: string) => string | null

/** Whether `wanted` allows nothing that `present` does not allow. */
export const isWithin = (
  meet: Meet,
  wanted: readonly string[],
  present: readonly string[],
): boolean => wanted.every((entry) => present.some((other) => meet(entry, other) === entry))

/** What both lists allow. */
export function common(meet: Meet, one: readonly string[], other: readonly string[]): string[] {
  const both = one.flatMap((entry) => other.map((next) => meet(entry, next)))
  return [...new Set(both.filter((entry) => entry !== null))]
}
