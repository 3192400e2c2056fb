/** Reads times and durations in the form that clients write. */

const DATE = /^\d{4}-\d\d-\d\d$/
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d([.,]\d{1,9})?)?(Z|[+-]\d\d(:?\d\d)?)$/

const TIME_MAX_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/**
 * Reads an ISO 8601 time with a time zone, or a date. A date without a time means 00:00 UTC. The function refuses a
 * time without a zone, because its meaning would depend on the time zone of the machine.
 *
 * @returns null if the text has another form, or names a day that does not exist, such as 30 February.
 *
 * @example
 * parseIsoTime('2026-12-31T23:59:59+01:00')
 */
export function parseIsoTime(text: string): Date | null {
  if (!DATE.test(text) && !TIME.test(text)) return null
  if (!isDay(text.slice(0, 10)) || Number(text.slice(0, 4)) < 1000) return null
  // The function refuses the time 24:00, because ISO 8601-1:2019 does not allow it and Date.parse would turn it into
  // the next day.
  if (Number(text.slice(11, 13)) > 23) return null
  const zoned = text
    .replace(',', '.')
    .replace(/([+-]\d\d)(\d\d)?$/, (whole, hours: string, minutes?: string) =>
      text.includes('T') && !whole.includes(':') ? `${hours}:${minutes ?? '00'}` : whole,
    )
  const at = new Date(zoned)
  return at.getTime() <= TIME_MAX_MS ? at : null
}

/**
 * Tells whether a day of the form YYYY-MM-DD exists. This check is needed, because the function `Date.parse` alone
 * would turn 02-30 into 03-02.
 */
export function isDay(text: string): boolean {
  const day = new Date(text)
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text)
}

const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const
const DURATION_MAX_MS = 3_660 * UNIT_MS.d

/**
 * Reads a duration of at most ten years: a whole number, followed by the unit `s`, `m`, `h`, `d` or `w`.
 * @returns the duration in milliseconds. Null means that the text has another form or names a longer duration.
 */
export function parseDuration(text: string): number | null {
  const match = /^([1-9]\d{0,8})([smhdw])$/.exec(text)
  if (match === null) return null
  const ms = Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS]
  return ms > DURATION_MAX_MS ? null : ms
}

/** Writes a time in ISO 8601, in UTC, without milliseconds. */
export const isoSeconds = (at: Date): string => at.toISOString().replace(/\.\d{3}Z$/, 'Z')
