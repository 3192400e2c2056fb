import ICAL from 'ical.js'
import { FLOATING, ianaName, localOf, UTC, type Zone, zoneOf } from './zones.ts'

/** Describes one instance of a calendar event. The field `local` has the same format as in `CalendarTime`. */
export type Instance = { startMs: number; endMs: number; local: string }

/** Selects at most `max` instances of an event from `fromMs` (inclusive) to `untilMs` (exclusive). */
export type Window = { fromMs: number; untilMs: number; max: number }

/**
 * Sets the maximum number of characters of a stored calendar source. The source holds an event's recurrence rule, its
 * exceptions, and the definitions of its time zones.
 */
const SOURCE_MAX_CHARS = 100_000

/** Sets the last year of a calendar event, because RFC 5545 §3.3.4 writes a year in four digits. */
export const YEAR_MAX = 9_999
const LAST_MS = Date.UTC(YEAR_MAX, 11, 31)

/** Holds a time of a calendar event (such as DTSTART) with its time zone. */
export type PlacedTime = { value: ICAL.Time; zone: Zone }

/** Maps each TZID in a calendar file to the definition of the time zone. */
export type Definitions = ReadonlyMap<string, ICAL.Timezone>

export function definitionsOf(calendar: ICAL.Component): Definitions {
  return new Map(
    calendar.getAllSubcomponents('vtimezone').map((component) => {
      const tzid = String(component.getFirstPropertyValue('tzid') ?? '')
      return [tzid, new ICAL.Timezone({ component, tzid })]
    }),
  )
}

/** Returns the times in a calendar property. The function leaves out values that are no times. */
export function timesOf(property: ICAL.Property | null, definitions: Definitions): PlacedTime[] {
  const tzid = property?.getFirstParameter('tzid') ?? ''
  return (property?.getValues() ?? []).flatMap((given: unknown) => {
    const value = given instanceof ICAL.Period ? given.start : given
    if (!(value instanceof ICAL.Time)) return []
    if (value.zone === ICAL.Timezone.utcTimezone) return [{ value, zone: UTC }]
    const zone = tzid === '' || value.isDate ? FLOATING : zoneOf(tzid, definitions.get(tzid))
    return [{ value, zone }]
  })
}

export const instantOf = ({ value, zone }: PlacedTime): number => zone.instantOf(value)

/**
 * Returns the start and the length of a calendar event (RFC 5545 §3.6.1). @returns null if the calendar event has no
 * start.
 */
export function spanOf(
  event: ICAL.Component,
  definitions: Definitions,
): { start: PlacedTime; end: PlacedTime; lengthMs: number } | null {
  const [start] = timesOf(event.getFirstProperty('dtstart'), definitions)
  if (start === undefined) return null
  const end = endOf(event, start, definitions)
  const lengthMs = instantOf(end) - instantOf(start)
  // A calendar event must end after its start (RFC 5545 §3.8.2.2). An event that ends before its start counts as an
  // event without length.
  return lengthMs < 0 ? { start, end: start, lengthMs: 0 } : { start, end, lengthMs }
}

function endOf(event: ICAL.Component, start: PlacedTime, definitions: Definitions): PlacedTime {
  const [end] = timesOf(event.getFirstProperty('dtend'), definitions)
  if (end !== undefined) return end
  const value = start.value.clone()
  const duration = event.getFirstPropertyValue('duration')
  if (duration instanceof ICAL.Duration) return later(start, duration)
  if (value.isDate) value.adjust(1, 0, 0, 0)
  return { value, zone: start.zone }
}

/**
 * Returns the time that lies a duration after a time. Weeks and days are local days, but hours, minutes and seconds are
 * exact (RFC 5545 §3.3.6), also when the clocks change between both times.
 */
function later({ value, zone }: PlacedTime, duration: ICAL.Duration): PlacedTime {
  const end = value.clone()
  if (value.isDate) {
    end.addDuration(duration)
    return { value: end, zone }
  }
  const { weeks, days, isNegative } = duration
  const wholeDays = (isNegative ? -1 : 1) * (7 * weeks + days)
  end.adjust(wholeDays, 0, 0, 0)
  const restMs = 1_000 * (duration.toSeconds() - 24 * 60 * 60 * wholeDays)
  if (restMs === 0) return { value: end, zone }
  const endMs = zone.instantOf(end) + restMs
  return { value: ICAL.Time.fromDateTimeString(localAt(endMs, { value, zone })), zone }
}

/**
 * Sets the fraction of the `max` instances that stays reserved for the future, even if very many instances lie in the
 * past.
 */
const COMING_PART = 3 / 4

/**
 * Returns the instances of a recurring event in a window of time. If the window has more than `max` instances, the
 * function keeps those around `nowMs`. If the window has no instance, the function returns the first instance after it,
 * so that a series with a pause of years does not end. The function runs in a child process, because an untrusted
 * recurrence rule may have no end, or may match no time at all.
 * @param source is the calendar source of the recurring event, which {@link sourceOf} has written.
 */
export function expand(
  source: string,
  { fromMs, nowMs = fromMs, untilMs, max }: Window & { nowMs?: number },
): Instance[] {
  const calendar = new ICAL.Component(ICAL.parse(source))
  const event = calendar.getFirstSubcomponent('vevent')
  if (event === null) return []
  const definitions = definitionsOf(calendar)
  const until = (window: Partial<Window>) =>
    instancesOf(event, definitions, { fromMs, untilMs, max, ...window })
  const past = until({ untilMs: nowMs, max: Number.POSITIVE_INFINITY })
  const coming = until({ fromMs: nowMs })
    .filter(({ startMs }) => startMs >= nowMs)
    .slice(0, Math.max(Math.ceil(max * COMING_PART), max - past.length))
  const found = [...past.slice(Math.max(0, past.length + coming.length - max)), ...coming]
  if (found.length > 0) return found
  return instancesOf(event, definitions, { fromMs: untilMs, untilMs: LAST_MS, max: 1 })
}

/** Returns the instances of a calendar event in a window of time, in ascending order. */
export function instancesOf(
  event: ICAL.Component,
  definitions: Definitions,
  { fromMs, untilMs, max }: Window,
): Instance[] {
  const span = spanOf(event, definitions)
  if (span === null) return []
  const all = (name: string) =>
    event
      .getAllProperties(name)
      .flatMap((property) => timesOf(property, definitions))
      .map(instantOf)
  const without = new Set(all('exdate'))
  const withoutDays = excludedDays(event, span.start)
  const added = [...all('rdate'), instantOf(span.start)].sort((a, b) => a - b)
  const found: Instance[] = []
  let lastMs = Number.NEGATIVE_INFINITY
  for (const startMs of merged(added, startsByRule(event, span.start))) {
    if (startMs >= untilMs || found.length >= max) break
    if (startMs === lastMs) continue
    lastMs = startMs
    const endMs = startMs + span.lengthMs
    if (endMs <= fromMs && startMs < fromMs) continue
    if (without.has(startMs)) continue
    const local = localAt(startMs, span.start)
    if (!withoutDays.has(local.slice(0, 10))) found.push({ startMs, endMs, local })
  }
  return found
}

/**
 * Returns the local days that a series of timed events excludes. RFC 5545 §3.8.5.1 wants times here, but some programs
 * write dates.
 */
function excludedDays(event: ICAL.Component, { value: start }: PlacedTime): Set<string> {
  const values = start.isDate
    ? []
    : event.getAllProperties('exdate').flatMap((property) => property.getValues())
  return new Set(
    values
      .filter((value) => value instanceof ICAL.Time && value.isDate)
      .map((value) => String(value)),
  )
}

/**
 * Yields the start times of a calendar event according to its recurrence rule. The rule uses local time, so that a
 * meeting stays at ten o'clock when daylight saving time begins or ends. Only UNTIL is an instant (RFC 5545 §3.3.10),
 * so the function compares it as an instant.
 */
function* startsByRule(event: ICAL.Component, start: PlacedTime): Generator<number> {
  const rule = event.getFirstPropertyValue('rrule')
  if (!(rule instanceof ICAL.Recur)) return
  const untilMs = lastOf(rule, start)
  let left = rule.count || Number.POSITIVE_INFINITY
  let lastMs = Number.NEGATIVE_INFINITY
  for (const next of timesByRule(rule, start)) {
    const startMs = start.zone.instantOf(next)
    if (startMs === lastMs) continue
    if (startMs > untilMs || left-- === 0) return
    lastMs = startMs
    yield startMs
  }
}

/** Yields the local start times of a recurrence rule, and ignores the end of the rule. */
function* timesByRule(rule: ICAL.Recur, start: PlacedTime): Generator<ICAL.Time> {
  const fits = dayTest(rule, start)
  const endless = rule.clone()
  endless.until = null
  endless.count = null
  const { BYSETPOS: positions, BYMONTHDAY: days, BYDAY: weekdays } = rule.parts
  const first = start.value.clone()
  // The calendar library ignores BYSETPOS beside BYMONTHDAY, so the function selects the positions itself. The library
  // returns the same time object at each step and changes it, so the function stores a copy.
  const picks = rule.freq === 'MONTHLY' && days !== undefined && weekdays === undefined
  if (picks && positions !== undefined) {
    delete endless.parts.BYSETPOS
    first.day = 1
  }
  const iterator = endless.iterator(first)
  let month: ICAL.Time[] = []
  for (let next = iterator.next(); next !== null && next !== undefined; next = iterator.next()) {
    if (next.year > YEAR_MAX) return
    if (!fits(next)) continue
    if (!picks || positions === undefined) {
      yield next
      continue
    }
    const [before] = month
    if (before !== undefined && (before.month !== next.month || before.year !== next.year)) {
      yield* picked(month, positions).filter((time) => time.compare(start.value) >= 0)
      month = []
    }
    month.push(next.clone())
  }
}

/**
 * Returns the times at the positions that the recurrence rule names (BYSETPOS). The position 1 is the first time, and
 * -1 is the last time.
 */
const picked = (times: readonly ICAL.Time[], positions: readonly number[]): ICAL.Time[] =>
  times.filter((_, n) => positions.includes(n + 1) || positions.includes(n - times.length))

/**
 * Returns a function that tells whether a start time fits the months and days of a recurrence rule. In a year without
 * 29 February, the calendar library moves the instance to 1 March. RFC 5545 §3.3.10 ignores this instance and does not
 * count it.
 */
function dayTest({ freq, parts }: ICAL.Recur, start: PlacedTime): (next: ICAL.Time) => boolean {
  const isOnDayOfStart =
    (freq === 'YEARLY' || freq === 'MONTHLY') && !DAY_PARTS.some((name) => name in parts)
  const days = parts.BYMONTHDAY ?? (isOnDayOfStart ? [start.value.day] : [])
  const testsDays = days.length > 0 && days.every((day) => day > 0)
  return ({ month, day }) =>
    (parts.BYMONTH?.includes(month) ?? true) && (!testsDays || days.includes(day))
}

const DAY_PARTS = ['BYDAY', 'BYMONTHDAY', 'BYYEARDAY', 'BYWEEKNO'] as const

export function lastOf(rule: ICAL.Recur, start: PlacedTime): number {
  const { until } = rule
  if (until === null || until === undefined) return Number.POSITIVE_INFINITY
  if (until.zone === ICAL.Timezone.utcTimezone && !until.isDate) return UTC.instantOf(until)
  const last = until.clone()
  if (until.isDate && !start.value.isDate) {
    last.isDate = false
    Object.assign(last, { hour: 23, minute: 59, second: 59 })
  }
  return start.zone.instantOf(last)
}

/** Merges two ordered lists of times into one ordered list. */
function* merged(some: readonly number[], others: Iterable<number>): Generator<number> {
  let at = 0
  for (const other of others) {
    while (at < some.length && some[at]! <= other) yield some[at++]!
    yield other
  }
  yield* some.slice(at)
}

/**
 * Returns the local time of an instant in the event's time zone. For a time zone without an IANA name, the offset comes
 * from the definition in the calendar file.
 */
export function localAt(atMs: number, { value, zone }: PlacedTime): string {
  if (zone.name !== null || zone === FLOATING) {
    const local = localOf(atMs, zone.name)
    return value.isDate ? local.slice(0, 10) : local
  }
  return localOf(atMs + offsetNear(atMs, zone), null)
}

/**
 * Finds the offset of a time zone that only a calendar file defines. The definition gives the offset of a local time,
 * but the local time depends on the offset. Therefore the function computes the offset twice.
 */
function offsetNear(atMs: number, zone: Zone): number {
  const guess = (shiftMs: number) => {
    const wall = ICAL.Time.fromJSDate(new Date(atMs + shiftMs), true)
    return UTC.instantOf(wall) - zone.instantOf(wall)
  }
  return guess(guess(0))
}

export const recurs = (event: ICAL.Component): boolean =>
  event.hasProperty('rrule') || event.hasProperty('rdate')

/**
 * Tells whether a calendar event repeats every hour or more often. The service refuses such an event, because an event
 * with one instance a second since 1970 would have two thousand million instances.
 */
export function isTooOften(event: ICAL.Component): boolean {
  const rule = event.getFirstPropertyValue('rrule')
  if (!(rule instanceof ICAL.Recur)) return false
  const aDay = TIME_PARTS.reduce((product, name) => product * (rule.parts[name]?.length ?? 1), 1)
  return /^(?:SECONDLY|MINUTELY|HOURLY)$/.test(rule.freq) || aDay >= 24
}

const TIME_PARTS = ['BYHOUR', 'BYMINUTE', 'BYSECOND'] as const

const SOURCE_PROPERTIES = ['dtstart', 'dtend', 'duration', 'rrule', 'rdate', 'exdate']
/**
 * Lists the properties of a time zone that decide its offset from UTC. ZONE_PROPERTIES belong to the whole time zone,
 * and OFFSET_PROPERTIES to each of its rules.
 */
const ZONE_PROPERTIES = ['tzid', 'x-lic-location']
const OFFSET_PROPERTIES = ['dtstart', 'tzoffsetfrom', 'tzoffsetto', 'rrule', 'rdate']

/**
 * Writes the recurrence rule of an event with its exceptions and zones as a separate calendar file. @returns null if
 * the event does not recur, if the event recurs too often, or if the calendar file is too long.
 * @param maxChars sets a further limit on the characters of the written calendar file.
 */
export function sourceOf(
  event: ICAL.Component,
  calendar: ICAL.Component,
  maxChars = SOURCE_MAX_CHARS,
): string | null {
  if (!recurs(event) || isTooOften(event)) return null
  const bare = partOf(event, SOURCE_PROPERTIES)
  const whole = new ICAL.Component('vcalendar')
  for (const zone of neededZones(bare, calendar)) whole.addSubcomponent(zone)
  whole.addSubcomponent(bare)
  const source = whole.toString()
  return source.length > Math.min(maxChars, SOURCE_MAX_CHARS) ? null : source
}

function partOf(component: ICAL.Component, names: readonly string[]): ICAL.Component {
  const part = new ICAL.Component(component.name)
  for (const name of names) {
    for (const property of component.getAllProperties(name)) {
      part.addProperty(new ICAL.Property(property.toJSON()))
    }
  }
  return part
}

/**
 * Returns the definitions of the time zones that an event names. The function omits the definitions that {@link zoneOf}
 * ignores, and all lines that do not decide the offset. Without these omissions, a mail of 73 KB with twenty events
 * became 1.4 MB of stored text.
 */
function neededZones(event: ICAL.Component, calendar: ICAL.Component): ICAL.Component[] {
  const named = new Set(event.getAllProperties().map((one) => one.getFirstParameter('tzid') ?? ''))
  const known = definitionsOf(calendar)
  return [...named].flatMap((tzid) => {
    const definition = ianaName(tzid) === null ? known.get(tzid)?.component : undefined
    if (definition === undefined) return []
    const zone = partOf(definition, ZONE_PROPERTIES)
    for (const offset of definition.getAllSubcomponents()) {
      zone.addSubcomponent(partOf(offset, OFFSET_PROPERTIES))
    }
    return [zone]
  })
}
