/**
 * Describes the id of an event in a project's event stream, which consists of the event's number in the project and the
 * event's time. A database that was restored from a backup reuses the numbers of the lost events. The time
 * distinguishes two events with the same number.
 */
export type EventPosition = {
  seq: bigint
  /**
   * Holds the time of the event at this position of the event stream. Null means that the time is unknown, because the
   * position is before the first event, or because the event was deleted.
   */
  at: Date | null
}

/** Sets the length of the longest id of an event in an event stream, in characters. */
export const EVENT_ID_MAX_LENGTH = 34

const FORM = /^(\d{1,18})(?:-(\d{1,15}))?$/

/**
 * Writes the id of an event in an event stream, such as `42-1767605952345`, or `42` without a known time. The time in
 * an event id is in Unix milliseconds.
 */
export const eventId = ({ seq, at }: EventPosition): string =>
  at === null ? String(seq) : `${seq}-${at.getTime()}`

/** Reads the id of an event in an event stream. @returns null if the text is no event id. */
export function parseEventId(text: string): EventPosition | null {
  const [, seq, ms] = FORM.exec(text) ?? []
  if (seq === undefined) return null
  return { seq: BigInt(seq), at: ms === undefined ? null : new Date(Number(ms)) }
}
