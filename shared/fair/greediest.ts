/**
 * When a limited resource is used up, chooses the piece of work that must end. The choice falls on the sharer (such as
 * a network) that holds the most of the resource. Therefore a new sharer gets a part of the resource, even if many
 * sharers already use all of it.
 * @param held returns the total amount of the resource that the sharer of a piece of work holds.
 * @param rank returns the rank of a piece of work among the pieces of work of the same sharer (such as a network). The
 * function chooses the piece of work with the highest rank.
 * @returns null if `works` is empty.
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
