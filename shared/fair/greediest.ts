/**
 * Chooses what must end when a limited resource is full. The sharer that holds the most gives up one of its items. So a
 * newcomer is served even beside many sharers that hold their full share.
 * @param held how much the sharer of an item holds with all its items
 * @param rank the item of that sharer with the highest rank is chosen
 * @returns null if there is no item
 */
export function workOfGreediest<Work>(
  works: Iterable<Work>,
  { held, rank }: { held: (work: Work) => number; rank: (work: Work) => number },
): Work | null {
  let found: { work: Work; held: number; rank: number } | null = null
  for (const work of works) {
    const one = { work, held: held(work), rank: rank(work) }
    const isMore =
      found === null || one.held > found.held || (one.held === found.held && one.rank > found.rank)
    if (isMore) found = one
  }
  return found?.work ?? null
}
