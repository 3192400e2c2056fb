/**
 * Chooses the piece of work that must end when a limited resource is full. The sharer (such as a network) that holds
 * the most of the resource gives up one piece of its work. So a new sharer is served even if many sharers already hold
 * their full share of the resource.
 * @param held returns the amount of the resource that the sharer of a piece of work holds in total.
 * @param rank returns the rank of a piece of work among the pieces of its sharer. The sharer that must give up work
 * ends the piece of work with the highest rank.
 * @returns null if `works` is empty, so that there is nothing to end.
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
