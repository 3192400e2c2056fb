/**
 * Reads calendar files (RFC 5545, RFC 5546). The reader runs in a child process, because an unauthenticated sender may
 * have written a recurrence rule without end.
 */
import ICAL from 'ical.js'
import { addressKey } from '../address.ts'
import { DocumentError } from '../documents/document.ts'
import { decodeText } from '../documents/plainText.ts'
import { readableText } from '../visibleText/readableText.ts'
import { mendLines, readableLines } from './contentLines.ts'
import {
  type Definitions,
  definitionsOf,
  instancesOf,
  instantOf,
  isTooOften,
  localAt,
  type PlacedTime,
  recurs,
  sourceOf,
  spanOf,
  timesOf,
} from './instances.ts'
import {
  ATTENDEE_STATES,
  ATTENDEES_MAX,
  type Attendee,
  CALENDAR_MAX_CHARS,
  type CalendarTime,
  DESCRIPTION_MAX_LENGTH,
  INVITES_MAX,
  LOCATION_MAX_LENGTH,
  METHODS,
  type Method,
  NEXT_MAX,
  type Person,
  type ReadInvite,
  STATUSES,
  SUMMARY_MAX_LENGTH,
  UID_MAX_LENGTH,
} from './invite.ts'
import { addressOfMailto } from './mailto.ts'
import { meetingLink } from './meetingLink.ts'
import { FLOATING } from './zones.ts'

/** Sets the longest time into the future for which the reader searches instances of a recurring event. */
const AHEAD_MS = 5 * 366 * 24 * 60 * 60 * 1000

/**
 * Limits the characters of all stored series of a calendar file, as a multiple of the file's own characters. The limit
 * exists because the storage quota counts only the file. A series beyond the limit counts as a single event.
 */
const SOURCES_SHARE = 2

/**
 * Reads the events of a calendar file, at most {@link INVITES_MAX}.
 * @param nowMs is the current time. The listed instances of a recurring event start later than this time.
 * @throws {DocumentError} if the calendar file is malformed or too large.
 */
export function readCalendar(bytes: Uint8Array, nowMs: number): ReadInvite[] {
  const text = decodeText(bytes, CALENDAR_MAX_CHARS)
  if (text.length >= CALENDAR_MAX_CHARS) throw new DocumentError('too_large')
  let sourceChars = SOURCES_SHARE * text.length
  return calendarsOf(text)
    .flatMap((calendar) =>
      calendar.getAllSubcomponents('vevent').map((event) => ({ calendar, event })),
    )
    .slice(0, INVITES_MAX)
    .flatMap(({ calendar, event }) => {
      const invite = readEvent(calendar, event, { nowMs, sourceChars })
      sourceChars -= invite?.source?.length ?? 0
      return invite ?? []
    })
}

function calendarsOf(text: string): ICAL.Component[] {
  try {
    // The code skips a VCARD in front of the calendar. Otherwise the calendar library would read every date as a text.
    const begin = text.search(/^BEGIN:VCALENDAR/im)
    const lines = mendLines(
      text
        .slice(Math.max(0, begin))
        .replace(/^\ufeff/, '')
        // The function removes U+0000, because PostgreSQL would refuse it in the stored source of a series.
        .replaceAll('\u0000', '')
        .trim(),
    )
    const parsed = parse(lines) ?? (ICAL.parse(readableLines(lines)) as unknown[])
    const roots = typeof parsed[0] === 'string' ? [parsed] : parsed
    const components = roots
      .map((root) => new ICAL.Component(root as never))
      .filter(({ name }) => name === 'vcalendar')
    if (components.length > 0) return components
  } catch {
    // The calendar library throws many kinds of errors. All of them mean that the file is malformed.
  }
  throw new DocumentError('malformed')
}

/** Parses the lines of a calendar file. @returns null if the calendar library cannot read a line of the file. */
function parse(lines: string): unknown[] | null {
  try {
    return ICAL.parse(lines)
  } catch {
    return null
  }
}

/** Lists the methods whose events may leave out the start (RFC 5546 §3.2.3, §3.2.5). */
const UNTIMED_METHODS: readonly Method[] = ['REPLY', 'CANCEL']

/**
 * Reads one event of a calendar file. @returns null if the event has no UID, or lacks a start although its method
 * requires a start.
 */
function readEvent(
  calendar: ICAL.Component,
  event: ICAL.Component,
  { nowMs, sourceChars }: { nowMs: number; sourceChars: number },
): ReadInvite | null {
  try {
    const definitions = definitionsOf(calendar)
    const uid = textOf(event, 'uid', UID_MAX_LENGTH + 1)
    const method = methodOf(calendar)
    const span = spanOf(event, definitions)
    const mayLackSpan = UNTIMED_METHODS.includes(method) && !event.hasProperty('dtstart')
    if (uid === '' || uid.length > UID_MAX_LENGTH || (span === null && !mayLackSpan)) return null
    const source = sourceOf(event, calendar, sourceChars)
    const description = textOf(event, 'description', DESCRIPTION_MAX_LENGTH)
    const location = textOf(event, 'location', LOCATION_MAX_LENGTH)
    const comment = textOf(event, 'comment', DESCRIPTION_MAX_LENGTH)
    return {
      method,
      uid,
      sequence: sequenceOf(event),
      stamp: stampOf(event, definitions) ?? new Date(nowMs).toISOString(),
      recurrenceId: recurrenceIdOf(event, definitions),
      status: method === 'CANCEL' ? 'cancelled' : statusOf(event),
      summary: oneLine(textOf(event, 'summary', SUMMARY_MAX_LENGTH)),
      description,
      location: location === '' ? null : location,
      meetingLink: meetingLink(linkFields(event), [
        textOf(event, 'url', LOCATION_MAX_LENGTH),
        location,
        description,
      ]),
      allDay: span?.start.value.isDate ?? false,
      start: span === null ? null : timeOf(span.start),
      end: span === null ? null : timeOf(span.end),
      recurrence: recurs(event)
        ? {
            rule: String(event.getFirstPropertyValue('rrule') ?? ''),
            next: nextOf(event, definitions, nowMs),
          }
        : null,
      organizer: personOf(event.getFirstProperty('organizer')),
      attendees: attendeesOf(event),
      comment: comment === '' ? null : comment,
      source,
    }
  } catch {
    // If the calendar library cannot read a value of the event, the function leaves out the event.
    return null
  }
}

/**
 * Returns the method of a calendar file from the METHOD property in the file (RFC 6047 §2.4). A calendar file without
 * METHOD is no invitation.
 */
function methodOf(calendar: ICAL.Component): Method {
  const given = String(calendar.getFirstPropertyValue('method') ?? '').toUpperCase()
  return METHODS.find((method) => method === given) ?? 'PUBLISH'
}

function textOf(event: ICAL.Component, name: string, maxLength: number): string {
  const value: unknown = event.getFirstPropertyValue(name)
  if (typeof value !== 'string') return ''
  return clean(value, maxLength)
}

const clean = (text: string, maxLength: number): string =>
  readableText(text.slice(0, maxLength).replaceAll('\u0000', '').toWellFormed())
    .replace(/\r\n?/g, '\n')
    .trim()

/**
 * Joins the lines of a text into one line. Otherwise a line break in a name could forge a line in the text of the
 * calendar event.
 */
const oneLine = (text: string): string => text.replace(/\s+/g, ' ')

const SEQUENCE_MAX = 2_147_483_647

function sequenceOf(event: ICAL.Component): number {
  const value = Number(event.getFirstPropertyValue('sequence') ?? 0)
  return Number.isInteger(value) && value >= 0 ? Math.min(value, SEQUENCE_MAX) : 0
}

const stampOf = (event: ICAL.Component, definitions: Definitions): string | null => {
  const [stamp] = timesOf(event.getFirstProperty('dtstamp'), definitions)
  return stamp === undefined ? null : isoOf(instantOf(stamp))
}

const recurrenceIdOf = (event: ICAL.Component, definitions: Definitions): string | null => {
  const [first] = timesOf(event.getFirstProperty('recurrence-id'), definitions)
  return first === undefined ? null : isoOf(instantOf(first))
}

function statusOf(event: ICAL.Component): ReadInvite['status'] {
  const given = String(event.getFirstPropertyValue('status') ?? '').toLowerCase()
  return STATUSES.find((status) => status === given) ?? 'confirmed'
}

function timeOf(time: PlacedTime): CalendarTime {
  const atMs = instantOf(time)
  const { zone, value } = time
  const named = value.isDate || zone === FLOATING ? null : zone.name
  return { at: isoOf(atMs), local: localAt(atMs, time), zone: named }
}

const FIRST_MS = Date.parse('0001-01-01T00:00:00Z')
const LAST_MS = Date.parse('9999-12-31T23:59:59Z')

/**
 * Writes a time in ISO 8601. @throws if the year is not from 1 to 9999. ISO 8601 writes other years in a form that
 * PostgreSQL refuses.
 */
function isoOf(ms: number): string {
  if (ms < FIRST_MS || ms > LAST_MS) throw new RangeError('the year must be from 1 to 9999')
  return new Date(ms).toISOString()
}

function nextOf(event: ICAL.Component, definitions: Definitions, nowMs: number): string[] {
  if (isTooOften(event)) return []
  const window = { fromMs: nowMs, untilMs: nowMs + AHEAD_MS, max: NEXT_MAX + 1 }
  return instancesOf(event, definitions, window)
    .filter(({ startMs }) => startMs >= nowMs)
    .slice(0, NEXT_MAX)
    .map(({ startMs }) => isoOf(startMs))
}

/**
 * Lists the calendar fields that can hold the link of an online meeting. RFC 7986 §5.11 defines CONFERENCE, and large
 * calendar programs define the other fields.
 */
const LINK_FIELDS = [
  'x-google-conference',
  'x-microsoft-skypeteamsmeetingurl',
  'x-microsoft-onlinemeetingexternallink',
  'conference',
]

const linkFields = (event: ICAL.Component): string[] =>
  LINK_FIELDS.map((name) => String(event.getFirstPropertyValue(name) ?? ''))

const NAME_MAX_LENGTH = 200
/**
 * Sets the maximum number of characters of an address, because the database refuses an event with a longer stored
 * address.
 */
const ADDRESS_MAX_LENGTH = 320

/**
 * Reads the email address and the name of a calendar user. @returns null if the calendar user has no email address, or
 * an address that is too long.
 */
function personOf(property: ICAL.Property | null): Person | null {
  if (property === null) return null
  const value = String(property.getFirstValue() ?? '')
  const mailto = addressOfMailto(value.trim()) ?? parameter(property, 'email')
  const given = mailto.trim()
  if (!/^\S+@\S+$/.test(given) || given.length > ADDRESS_MAX_LENGTH) return null
  const address = clean(given, ADDRESS_MAX_LENGTH)
  // The function also checks the length of the stored form, which may be longer than the received address. For example,
  // 305 characters of `ü.ü.ü.com` become 1,205 characters in ASCII.
  if (addressKey(address).length > ADDRESS_MAX_LENGTH) return null
  const name = oneLine(clean(parameter(property, 'cn'), NAME_MAX_LENGTH))
  return { address, name: name === '' ? null : name }
}

function parameter(property: ICAL.Property, name: string): string {
  const value: unknown = property.getFirstParameter(name)
  return typeof value === 'string' ? value : ''
}

const ROLES: Readonly<Record<string, Attendee['role']>> = {
  CHAIR: 'chair',
  'OPT-PARTICIPANT': 'optional',
  'NON-PARTICIPANT': 'information',
}

function attendeesOf(event: ICAL.Component): Attendee[] {
  return event
    .getAllProperties('attendee')
    .slice(0, ATTENDEES_MAX)
    .flatMap((property) => {
      const person = personOf(property)
      if (person === null) return []
      const given = parameter(property, 'partstat').toLowerCase()
      const state = ATTENDEE_STATES.find((known) => known === given) ?? 'needs-action'
      const role = ROLES[parameter(property, 'role').toUpperCase()] ?? 'required'
      return [{ ...person, state, role }]
    })
}
