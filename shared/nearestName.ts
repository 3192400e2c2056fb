/**
 * Returns the known name that is most similar to the given name, and the number of characters that differ.
 * @returns undefined if the list of known names is empty.
 */
export function nearestName(
  name: string,
  known: readonly string[],
): { name: string; distance: number } | undefined {
  const [nearest] = known
    .map((one) => ({ name: one, distance: distance(one, name) }))
    .toSorted((one, other) => one.distance - other.distance)
  return nearest
}

/** Returns the edit distance of two words (Levenshtein). Upper and lower case count as equal. */
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
