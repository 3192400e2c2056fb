/**
 * Tells how a client's operation ended in the chaos run. `lost` means that the client got no response, or only a
 * temporary refusal.
 */
type End = 'accepted' | 'refused' | 'lost'

/** Counts the operations of clients by kind and by outcome. */
export type Tally = {
  count(kind: string, end: End): void
  /** Returns lines of text such as `send: 20 accepted, 1 refused, 3 lost`. */
  lines(): string[]
  sum(end: End): number
}

/** Returns an empty tally of the outcomes of operations. */
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
