/**
 * The id of an event: its number in its project, and its time. A database restored from a backup assigns the numbers of
 * lost events again; the time tells the two events apart.
 */
export type EventPosition = {
  seq: bigint
  /** Null: unknown. The position is before the first event, or the event was deleted. */
  at: Date | null
}

/** The longest id. */
export const EVENT_ID_MAX_LENGTH = 34

const FORM = /^(\d{1,18})(?:-(\d{1,15}))?$/

/** Writes an id: `42-1767605952345`, or `42` without a time. The time is Unix milliseconds. */
export const eventId = ({ seq, at }: EventPosition): string =>
  at === null ? String(seq) : `${seq}-${at.getTime()}`

/** Reads an id; null: the text is no id. */
export function parseEventId(text: string): EventPosition | null {
  const [, seq, ms] = FORM.exec(text) ?? []
  if (seq === undefined) return null
  return { seq: BigInt(seq), at: ms === undefined ? null : new Date(Number(ms)) }
}
