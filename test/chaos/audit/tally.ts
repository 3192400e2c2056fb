/**
 * Tells how an operation of a client ended in the chaos run. The value `lost` means that the client got no answer, or
 * only a temporary refusal.
 */
type End = 'accepted' | 'refused' | 'lost'

/** Counts the operations of clients by their kind and their end. */
export type Tally = {
  count(kind: string, end: End): void
  /** Returns lines of text such as `send: 20 accepted, 1 refused, 3 lost`. */
  lines(): string[]
  sum(end: End): number
}

/** Returns an empty tally, which counts how the operations of clients ended. */
export function newTally(): Tally {
  const counts = new Map<string, Record<End, number>>()
  return {
    count(kind, end) {
      const kept = counts.get(kind) ?? { accepted: 0, refused: 0, lost: 0 }
      kept[end]++
      counts.set(kind, kept)
    },
    lines: () =>
      [...counts].map(
        ([kind, { accepted, refused, lost }]) =>
          `${kind}: ${accepted} accepted, ${refused} refused, ${lost} lost`,
      ),
    sum: (end) => [...counts.values()].reduce((sum, kept) => sum + kept[end], 0),
  }
}
