/** Writes calendar files for mail (RFC 5545, RFC 5546, RFC 6047). */
import ICAL from 'ical.js'
import { tzlib_get_ical_block, tzlib_get_timezones } from 'timezones-ical-library'
import type { AttendeeState, CalendarTime, Person, Role } from './invite.ts'
import { mailtoOf } from './mailto.ts'

/**
 * Describes a time in a written calendar file. For an event of whole days, `local` is a date without a time. If `zone`
 * is null, `local` is in UTC.
 */
export type WrittenTime = Pick<CalendarTime, 'local' | 'zone'>

type Described = {
  uid: string
  sequence: number
  stamp: Date
  summary: string
  start: WrittenTime
  end: WrittenTime
  /**
   * Names one instance of a recurring event by the original start of the instance. Null means that the calendar file
   * concerns all instances.
   */
  recurrenceId: WrittenTime | null
  organizer: Person
}

/** Describes an event that an organizer announces or cancels. */
export type WrittenEvent = Described & {
  description: string
  location: string | null
  url: string | null
  rule: string | null
  attendees: readonly (Person & { role: Role })[]
}

/** Describes an attendee's reply to an invitation. */
export type WrittenAnswer = Described & {
  attendee: Person
  answer: Exclude<AttendeeState, 'needs-action' | 'delegated'>
  comment: string | null
}

/**
 * Writes a meeting request. A text of the API's caller cannot add a property to the calendar file. The functions
 * `plainText` and `lineText` remove the control characters that the calendar library does not escape.
 */
export function writeRequest(event: WrittenEvent): string {
  return calendarOf('REQUEST', componentOf(event), [event.start, event.end])
}

export function writeCancellation(event: WrittenEvent): string {
  const component = componentOf(event)
  component.updatePropertyWithValue('status', 'CANCELLED')
  return calendarOf('CANCEL', component, [event.start, event.end])
}

/**
 * Writes an attendee's reply to an invitation. The reply names only the attendee who sends the reply (RFC 5546 §3.2.3).
 */
export function writeAnswer({ attendee, answer, comment, ...event }: WrittenAnswer): string {
  const component = described(event)
  const property = person('attendee', attendee)
  property.setParameter('partstat', answer.toUpperCase())
  component.addProperty(property)
  if (comment !== null) component.addPropertyWithValue('comment', plainText(comment))
  return calendarOf('REPLY', component, [event.start, event.end])
}

/**
 * Prepares a text for the calendar library. Each line end becomes a newline, and other control characters except tab
 * disappear. The library escapes a newline but not a CR, and some programs end a line at CR.
 */
const plainText = (text: string): string =>
  text.replace(/\r\n?|[\u2028\u2029\u0085]/g, '\n').replace(/(?![\n\t])\p{Cc}/gu, '')

/**
 * Removes all control characters from a URL or an address, because the calendar library does not escape such values.
 */
const lineText = (text: string): string => text.replace(/[\p{Cc}\u2028\u2029]/gu, '')

const PRODUCT = '-//Purser//Purser//EN'

function calendarOf(method: string, event: ICAL.Component, times: readonly WrittenTime[]): string {
  const calendar = new ICAL.Component('vcalendar')
  calendar.addPropertyWithValue('prodid', PRODUCT)
  calendar.addPropertyWithValue('version', '2.0')
  calendar.addPropertyWithValue('method', method)
  for (const name of new Set(times.flatMap(({ zone }) => zone ?? []))) {
    const definition = definitionOf(name)
    if (definition !== null) calendar.addSubcomponent(definition)
  }
  calendar.addSubcomponent(event)
  return `${calendar.toString()}\r\n`
}

const WRITABLE_ZONES: ReadonlySet<string> = new Set(tzlib_get_timezones() as string[])

/**
 * Returns the definition of a time zone for a calendar file, under the same name that the file uses, because a calendar
 * file must define each time zone that it names (RFC 5545 §3.2.19).
 */
function definitionOf(name: string): ICAL.Component | null {
  if (!WRITABLE_ZONES.has(name)) return null
  const [block] = tzlib_get_ical_block(name) as [string, string]
  const definition = new ICAL.Component(ICAL.parse(block))
  definition.updatePropertyWithValue('tzid', name)
  return definition
}

/** Tells whether the service can write a calendar file with the given time zone. */
export const isWritableZone = (name: string): boolean => WRITABLE_ZONES.has(name)

function componentOf(event: WrittenEvent): ICAL.Component {
  const component = described(event)
  if (event.description !== '')
    component.addPropertyWithValue('description', plainText(event.description))
  if (event.location !== null) component.addPropertyWithValue('location', plainText(event.location))
  if (event.url !== null) component.addPropertyWithValue('url', lineText(event.url))
  if (event.rule !== null) {
    component.addPropertyWithValue('rrule', ICAL.Recur.fromString(event.rule))
  }
  component.addPropertyWithValue('status', 'CONFIRMED')
  component.addPropertyWithValue('transp', 'OPAQUE')
  for (const attendee of event.attendees) {
    const property = person('attendee', attendee)
    property.setParameter('role', ROLE_NAMES[attendee.role])
    property.setParameter('partstat', 'NEEDS-ACTION')
    property.setParameter('rsvp', 'TRUE')
    component.addProperty(property)
  }
  return component
}

const ROLE_NAMES: Readonly<Record<Role, string>> = {
  required: 'REQ-PARTICIPANT',
  optional: 'OPT-PARTICIPANT',
  chair: 'CHAIR',
  information: 'NON-PARTICIPANT',
}

function described(event: Described): ICAL.Component {
  const component = new ICAL.Component('vevent')
  component.addPropertyWithValue('uid', plainText(event.uid))
  component.addPropertyWithValue('dtstamp', utcTime(event.stamp))
  component.addPropertyWithValue('sequence', event.sequence)
  component.addProperty(time('dtstart', event.start))
  component.addProperty(time('dtend', event.end))
  if (event.recurrenceId !== null) component.addProperty(time('recurrence-id', event.recurrenceId))
  component.addPropertyWithValue('summary', plainText(event.summary))
  component.addProperty(person('organizer', event.organizer))
  return component
}

function person(kind: 'organizer' | 'attendee', { address, name }: Person): ICAL.Property {
  const property = new ICAL.Property(kind)
  property.setValue(mailtoOf(lineText(address)))
  // Double quotes in a person's name become single quotes, because a parameter must not hold double quotes (RFC 5545
  // §3.2).
  if (name !== null) property.setParameter('cn', plainText(name).replaceAll('"', "'"))
  return property
}

const utcTime = (at: Date): ICAL.Time =>
  ICAL.Time.fromJSDate(new Date(Math.floor(at.getTime() / 1000) * 1000), true)

function time(name: string, { local, zone }: WrittenTime): ICAL.Property {
  const property = new ICAL.Property(name)
  const isDate = !local.includes('T')
  const value = isDate ? ICAL.Time.fromDateString(local) : ICAL.Time.fromDateTimeString(local)
  if (isDate) property.resetType('date')
  if (!isDate && zone === null) value.zone = ICAL.Timezone.utcTimezone
  property.setValue(value)
  if (!isDate && zone !== null) property.setParameter('tzid', zone)
  return property
}

const PAIR = /^([A-Z]{4,10})=([A-Z0-9,+-]{1,200})$/
const FREQUENCIES = ['DAILY', 'WEEKLY', 'MONTHLY', 'YEARLY']
/**
 * Lists the parts of a recurrence rule that a sent invitation may have. Parts that state a time of day are not allowed.
 */
const RULE_PARTS = new Set(
  'FREQ UNTIL COUNT INTERVAL BYDAY BYMONTHDAY BYYEARDAY BYWEEKNO BYMONTH BYSETPOS WKST'.split(' '),
)

/**
 * Tells whether a sent invitation may have this recurrence rule (RFC 5545 §3.3.10). Each part may occur only once in
 * the rule. The function refuses rules that repeat every second, minute or hour.
 */
export function isRule(text: string): boolean {
  const pairs = text.split(';').map((pair) => PAIR.exec(pair))
  const parts = new Map(pairs.map((pair) => [pair?.[1] ?? '', pair?.[2] ?? '']))
  const isCount = (name: string) => /^[1-9]\d{0,5}$/.test(parts.get(name) ?? '1')
  if (
    !text.startsWith('FREQ=') ||
    parts.size < pairs.length ||
    ![...parts.keys()].every((name) => RULE_PARTS.has(name)) ||
    !FREQUENCIES.includes(parts.get('FREQ')!) ||
    !(isCount('COUNT') && isCount('INTERVAL')) ||
    (parts.has('COUNT') && parts.has('UNTIL'))
  )
    return false
  try {
    ICAL.Recur.fromString(text)
    return true
  } catch {
    return false
  }
}
