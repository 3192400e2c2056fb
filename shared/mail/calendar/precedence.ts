/** Decides which of two messages about an event takes effect (RFC 5546 §2.1.5). */

/** Identifies a revision of a calendar event. */
export type Revision = { sequence: number; stampMs: number }

/**
 * Describes the known revision of a calendar event. `isProven` tells whether the organizer was proven to have sent it.
 */
export type KnownRevision = Revision & { isProven: boolean }

/**
 * Is the effect of a message on a calendar event. A `proposal` changes nothing, because nothing proves that its sender
 * is the organizer.
 */
export type Effect = 'new' | 'updated' | 'same' | 'outdated' | 'proposal'

/**
 * Compares two revisions of a calendar event. A later SEQUENCE counts before a later DTSTAMP. @returns a number below 0
 * if the first revision is older.
 */
export const compareRevisions = (a: Revision, b: Revision): number =>
  a.sequence - b.sequence || a.stampMs - b.stampMs

/** Describes the series that an instance of a calendar event belongs to. */
export type KnownSeries = KnownRevision & { isCancelled: boolean }

/**
 * Decides the effect of an invite (a meeting request or a cancellation) on the calendar. If the calendar lacks the
 * event, a stranger may announce the event. A later message of the proven organizer replaces the stranger's event,
 * whatever its SEQUENCE is. If the calendar has a series, a stranger may not announce an instance of the series.
 * @param series is the series of an instance. Null means that the series is unknown, or that the invite is about a
 * whole event.
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
