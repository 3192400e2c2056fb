import type ICAL from 'ical.js'
import { findIana } from 'windows-iana'

/**
 * Converts local times of one time zone. The field `name` is the IANA name of the time zone. The name is null for a
 * time zone that only the calendar file defines.
 */
export type Zone = {
  name: string | null
  /** Converts a local time of the time zone to an instant. @returns the milliseconds since 1970. */
  instantOf(local: ICAL.Time): number
}

const UTC_NAMES = /^(?:utc|gmt|z|etc\/utc|etc\/gmt|zulu|tzone:\/\/microsoft\/utc)$/i
/** Matches an IANA zone name at the end of longer identifiers, such as `/freeassociation.example/Europe/Berlin`. */
const IANA_END = /(?:^|\/)([A-Z][A-Za-z_]+(?:\/[A-Z][A-Za-z0-9_+-]+){1,2})$/

const DAY_S = 86_400

/** Matches old zone names of the IANA time zone database, such as CET and EST5EDT. */
const SHORT_NAME = /^[A-Z]{3}(?:\d[A-Z]{3})?$/

export const UTC: Zone = { name: 'UTC', instantOf: utcOf }
/**
 * Converts times without a time zone. Such a time is the same local time everywhere (RFC 5545 §3.3.5). In lists of
 * events it counts as UTC, so that the list can be sorted.
 */
export const FLOATING: Zone = { name: null, instantOf: utcOf }

/**
 * Returns the time zone of a TZID (RFC 5545 §3.2.19). If the zone name is known, the function ignores the definition in
 * the calendar file, which often covers only one year. Calendar programs do the same.
 */
export function zoneOf(tzid: string, definition: ICAL.Timezone | undefined): Zone {
  const name = ianaName(tzid) ?? ianaName(locationOf(definition))
  if (name !== null) return name === 'UTC' ? UTC : ianaZone(name)
  if (definition !== undefined) return definedZone(definition)
  const short = SHORT_NAME.test(tzid) ? canonical(tzid) : null
  return short === null ? FLOATING : ianaZone(short)
}

/**
 * Returns the IANA zone name for a TZID of a calendar file. The TZID may be the zone name itself, end with the zone
 * name, or be a Windows zone name (CLDR). @returns null if the TZID names no IANA zone.
 */
export function ianaName(tzid: string): string | null {
  const text = tzid.trim()
  if (text === '' || text.length > 200) return null
  if (UTC_NAMES.test(text)) return 'UTC'
  return canonical(IANA_END.exec(text)?.[1] ?? '') ?? canonical(findIana(text)[0] ?? '')
}

/**
 * Returns a zone name in the spelling of the time zone database. @returns null if the time zone database does not know
 * the name.
 */
function canonical(name: string): string | null {
  if (name === '') return null
  try {
    return Temporal.ZonedDateTime.from(`2026-01-01T00:00[${name}]`).timeZoneId
  } catch {
    return null
  }
}

const locationOf = (definition: ICAL.Timezone | undefined): string =>
  String(definition?.component?.getFirstPropertyValue('x-lic-location') ?? '')

const ianaZone = (name: string): Zone => ({
  name,
  instantOf: (local) => plainOf(local).toZonedDateTime(name).epochMilliseconds,
})

const definedZone = (definition: ICAL.Timezone): Zone => ({
  name: null,
  instantOf: (local) => utcOf(local) - offsetOf(definition, local) * 1_000,
})

/**
 * Returns the offset from UTC in seconds. The change to summer time skips some local times. Such a time has the offset
 * before the change (RFC 5545 §3.3.5).
 */
function offsetOf(definition: ICAL.Timezone, local: ICAL.Time): number {
  const offset = definition.utcOffset(local)
  const before = definition.utcOffset(earlier(local, DAY_S))
  const isSkipped =
    offset > before && definition.utcOffset(earlier(local, offset - before)) === before
  return isSkipped ? before : offset
}

function earlier(local: ICAL.Time, seconds: number): ICAL.Time {
  const time = local.clone()
  time.adjust(0, 0, 0, -seconds)
  return time
}

function utcOf(local: ICAL.Time): number {
  return plainOf(local).toZonedDateTime('UTC').epochMilliseconds
}

function plainOf({ year, month, day, hour, minute, second }: ICAL.Time): Temporal.PlainDateTime {
  return new Temporal.PlainDateTime(year, month, day, hour, minute, second)
}

/** Returns the local time of an instant in a time zone, such as `2026-03-02T10:00:00`. */
export const localOf = (atMs: number, zone: string | null): string =>
  Temporal.Instant.fromEpochMilliseconds(atMs)
    .toZonedDateTimeISO(zone ?? 'UTC')
    .toPlainDateTime()
    .toString({ smallestUnit: 'second' })
