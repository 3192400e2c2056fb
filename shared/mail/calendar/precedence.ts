/** Decides which of two messages about a calendar event takes effect (RFC 5546 §2.1.5). */

/** Identifies a revision of a calendar event by its SEQUENCE and its DTSTAMP. */
export type Revision = { sequence: number; stampMs: number }

/**
 * Describes the latest known revision of a calendar event. The field `isProven` tells whether the organizer is proven
 * to have sent this revision.
 */
export type KnownRevision = Revision & { isProven: boolean }

/**
 * Describes the effect of a message on a calendar event. A `proposal` does not change the event, because its sender is
 * not proven to be the organizer.
 */
export type Effect = 'new' | 'updated' | 'same' | 'outdated' | 'proposal'

/**
 * Compares two revisions of a calendar event. The SEQUENCE decides which revision is later, and the DTSTAMP decides
 * only between equal SEQUENCE values. @returns a number below 0 if the first revision is older.
 */
export const compareRevisions = (a: Revision, b: Revision): number =>
  a.sequence - b.sequence || a.stampMs - b.stampMs

/** Describes the series to which an instance of a calendar event belongs. */
export type KnownSeries = KnownRevision & { isCancelled: boolean }

/**
 * Decides the effect of an invite (a meeting request or a cancellation) on the calendar. An unproven sender may add an
 * event that the calendar does not have yet. A later message of the proven organizer replaces this event, whatever its
 * SEQUENCE. If the calendar already has the series, an unproven sender may not add an instance of it.
 * @param series is the series of the instance in the invite. Null means that the series is unknown, or that the invite
 * concerns a whole event.
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
