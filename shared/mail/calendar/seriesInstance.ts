import ICAL from 'ical.js'
import { lastOf, YEAR_MAX } from './instances.ts'
import type { WrittenTime } from './writeCalendar.ts'
import { FLOATING, UTC, zoneOf } from './zones.ts'

/** Describes a recurring event by its start and its recurrence rule, which `isRule` has accepted. */
type Series = { start: WrittenTime; rule: string }

/**
 * Limits how many days after the start of a series the search counts for a rule with COUNT. A count of 4,000 days takes
 * less than a millisecond.
 */
const DAYS_MAX = 4_000
const DAY_MS = 24 * 60 * 60 * 1000

/**
 * Tells whether a series may have an instance with the given original start. The function does not search the instances:
 * it computes whether the recurrence rule fits the day. If a rule is too complicated for this, or its COUNT ends too
 * late, each day from the start to UNTIL may have an instance.
 */
export function mayStartAt({ start, rule }: Series, atMs: number): boolean {
  const zone = start.zone ?? 'UTC'
  const first = Temporal.PlainDateTime.from(start.local)
  const instantOn = (date: Temporal.PlainDate) =>
    date.toPlainDateTime(first.toPlainTime()).toZonedDateTime(zone).epochMilliseconds
  const startMs = instantOn(first.toPlainDate())
  if (atMs <= startMs) return atMs === startMs
  const recur = ICAL.Recur.fromString(rule)
  if (atMs > lastOf(recur, placed(start))) return false
  const date = Temporal.Instant.fromEpochMilliseconds(atMs).toZonedDateTimeISO(zone).toPlainDate()
  if (date.year > YEAR_MAX) return false
  // If the change to summer time skips the time of an instance, the instance may start on the next day.
  const dates = [date, date.subtract({ days: 1 })].filter((one) => instantOn(one) === atMs)
  const days = dates.map((one) => dayOf(one))
  const fits = dayTest(recur, dayOf(first.toPlainDate()))
  if (fits === null) return days.length > 0
  return days.some((day) => fits(day) && isCounted(recur, fits, [dayOf(first.toPlainDate()), day]))
}

/** Returns the start of a series in the form of the calendar library. */
function placed({ local, zone }: WrittenTime) {
  if (!local.includes('T')) return { value: ICAL.Time.fromDateString(local), zone: FLOATING }
  const value = ICAL.Time.fromDateTimeString(local)
  return { value, zone: zone === null ? UTC : zoneOf(zone, undefined) }
}

/** Returns the number of a day, counted from 1 January 1970. */
const dayOf = ({ year, month, day }: Temporal.PlainDate): number =>
  Date.UTC(year, month - 1, day) / DAY_MS

type DayTest = (day: number) => boolean

/**
 * Tells whether COUNT includes a day of a rule. A day after the last day that the function can count is included. If
 * the start itself does not fit the rule, COUNT is undefined (RFC 5545 §3.8.5.3) and includes each day.
 */
function isCounted({ count }: ICAL.Recur, fits: DayTest, [first, day]: [number, number]): boolean {
  if (!count || day - first > DAYS_MAX || !fits(first)) return true
  let earlier = 0
  for (let one = first; one < day && earlier < count; one++) if (fits(one)) earlier++
  return earlier < count
}

type Day = { year: number; month: number; date: number; weekday: number; length: number }

function partsOf(day: number): Day {
  const at = new Date(day * DAY_MS)
  const [year, month] = [at.getUTCFullYear(), at.getUTCMonth() + 1]
  return {
    ...{ year, month, date: at.getUTCDate(), weekday: at.getUTCDay() },
    length: new Date(Date.UTC(year, month, 0)).getUTCDate(),
  }
}

const WEEKDAYS = ['SU', 'MO', 'TU', 'WE', 'TH', 'FR', 'SA']

/**
 * Returns a function that tells whether a day fits a recurrence rule without its end. @returns null if the rule is too
 * complicated.
 */
function dayTest(rule: ICAL.Recur, first: number): DayTest | null {
  const { freq, interval, parts } = rule
  const { BYMONTH: months, BYMONTHDAY: dates, BYDAY: names, BYSETPOS: positions } = parts
  if (parts.BYYEARDAY !== undefined || parts.BYWEEKNO !== undefined) return null
  // The calendar library, which computes the instances, reads these combinations in its own way.
  if (dates !== undefined && names !== undefined) return null
  if (freq === 'MONTHLY' && interval > 1 && months !== undefined) return null
  if (freq !== 'MONTHLY' && dates?.some((date) => date < 0)) return null
  const dateSet = dates && new Set(dates)
  const nameSet =
    names && new Set(names.map((name) => `${Number(name.slice(0, -2)) || ''}${name.slice(-2)}`))
  const isNth = nameSet !== undefined && [...nameSet].some((name) => name.length > 2)
  const hasDays = dates !== undefined || names !== undefined
  const start = partsOf(first)
  const isInMonth = ({ month }: Day) => months?.includes(month) ?? true
  const isOnDate = ({ date, length }: Day) =>
    dateSet === undefined || dateSet.has(date) || dateSet.has(date - length - 1)
  const isOnWeekday = ({ weekday, date, length }: Day) => {
    if (nameSet === undefined) return true
    const name = WEEKDAYS[weekday]!
    if (!isNth || nameSet.has(name)) return nameSet.has(name)
    return (
      nameSet.has(`${Math.ceil(date / 7)}${name}`) ||
      nameSet.has(`-${Math.ceil((length + 1 - date) / 7)}${name}`)
    )
  }
  const fits = (day: Day) => isInMonth(day) && isOnDate(day) && isOnWeekday(day)
  switch (freq) {
    case 'DAILY':
      if (isNth || positions !== undefined) return null
      return (day) => (day - first) % interval === 0 && fits(partsOf(day))
    case 'WEEKLY': {
      if (isNth || positions !== undefined || dates !== undefined) return null
      // 4 January 1970 was a Sunday, which has the number 1 in the calendar library.
      const weekOf = (day: number) => Math.floor((day - 3 - (rule.wkst - 1)) / 7)
      return (day) => {
        const parts = partsOf(day)
        const isOnDay = names !== undefined || parts.weekday === start.weekday
        return (weekOf(day) - weekOf(first)) % interval === 0 && isOnDay && fits(parts)
      }
    }
    case 'MONTHLY': {
      if (positions !== undefined && isNth) return null
      const isInRule = (day: Day) =>
        ((day.year - start.year) * 12 + day.month - start.month) % interval === 0 &&
        (hasDays || day.date === start.date) &&
        fits(day)
      return positions === undefined
        ? (day) => isInRule(partsOf(day))
        : pickTest(isInRule, new Set(positions))
    }
    case 'YEARLY': {
      if (positions !== undefined || (hasDays && months === undefined)) return null
      return (given) => {
        const day = partsOf(given)
        const isOnMonth = months !== undefined || day.month === start.month
        const isOnDay = hasDays || day.date === start.date
        return (day.year - start.year) % interval === 0 && isOnMonth && isOnDay && fits(day)
      }
    }
    default:
      return null
  }
}

/**
 * Returns a function that tells whether a day has one of the given positions (BYSETPOS) among the days of its month that
 * fit a rule. The function remembers the days of the last month.
 */
function pickTest(isInRule: (day: Day) => boolean, positions: ReadonlySet<number>): DayTest {
  let month = Number.NaN
  let picked = new Set<number>()
  return (day) => {
    const { date, length } = partsOf(day)
    if (month !== day - date) {
      month = day - date
      const days = Array.from({ length }, (_, n) => month + n + 1).filter((one) =>
        isInRule(partsOf(one)),
      )
      picked = new Set(
        days.filter((_, n) => positions.has(n + 1) || positions.has(n - days.length)),
      )
    }
    return picked.has(day)
  }
}
