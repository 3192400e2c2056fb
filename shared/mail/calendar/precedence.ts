/** Which of two statements about an event counts (RFC 5546 §2.1.5). */

/** A revision of an event. */
export type Revision = { sequence: number; stampMs: number }

/** What is known of an event. */
export type KnownRevision = Revision & { isProven: boolean }

/**
 * The effect of a message on an event. `proposal`: it changes nothing, because its sender is not proven to be the organizer.
 */
export type Effect = 'new' | 'updated' | 'same' | 'outdated' | 'proposal'

/** @returns below 0: the first is older. A later SEQUENCE counts before a later DTSTAMP. */
export const compareRevisions = (a: Revision, b: Revision): number =>
  a.sequence - b.sequence || a.stampMs - b.stampMs

/** The series of an instance. */
export type KnownSeries = KnownRevision & { isCancelled: boolean }

/**
 * Decides about a request or a cancellation. A stranger may announce an event that nobody knows: the organizer's own word
 * replaces it, whatever its SEQUENCE. An instance of a known series is no such event.
 * @param series that of an instance; null: it is unknown, or the invite is about a whole event
 */
export function effectOf(
  known: KnownRevision | null,
  given: Revision,
  {
    isProven,
    isCancellation,
    series,
  }: { isProven: boolean; isCancellation: boolean; series: KnownSeries | null },
): Effect {
  if (!isProven) return known === null && series === null && !isCancellation ? 'new' : 'proposal'
  const isOver = series?.isProven && series.isCancelled
  if (isOver && compareRevisions(given, series) < 0) return 'outdated'
  if (known === null) return 'new'
  if (!known.isProven) return 'updated'
  const order = compareRevisions(given, known)
  if (order === 0) return 'same'
  return order > 0 ? 'updated' : 'outdated'
}
