/**
 * The id of an event: its number in its project, and when it happened. A database that was restored from a backup gives
 * the numbers of lost events to others; the time tells them apart.
 */
export type EventPosition = {
  seq: bigint
  /** Null where the time is not known: before the first event, or where the event is no longer kept. */
  at: Date | null
}

/** The longest id. */
export const EVENT_ID_MAX_LENGTH = 34

const FORM = /^(\d{1,18})(?:-(\d{1,15}))?$/

/** Writes an id: `42-1767605952345`, or `42` without a time. The time is Unix milliseconds. */
export const eventId = ({ seq, at }: EventPosition): string =>
  at === null ? String(seq) : `${seq}-${at.getTime()}`

/** Reads an id; null where it is none. */
export function parseEventId(text: string): EventPosition | null {
  const [, seq, ms] = FORM.exec(text) ?? []
  if (seq === undefined) return null
  return { seq: BigInt(seq), at: ms === undefined ? null : new Date(Number(ms)) }
}
