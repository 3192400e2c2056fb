/**
 * The rule for a scarce thing that is full: the sharer that holds most gives up one of its works. So a newcomer is served, also
 * beside many that hold their share.
 * @param held what the sharer of a work holds, with all its works
 * @param rank the work of that sharer with the highest rank ends
 * @returns null: there is no work
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
