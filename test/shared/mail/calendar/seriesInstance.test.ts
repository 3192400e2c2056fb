/** Tests which times may be starts of instances of a series. */
import { describe, expect, test } from 'bun:test'
import ICAL from 'ical.js'
import { instancesOf } from '../../../../shared/mail/calendar/instances.ts'
import { mayStartAt } from '../../../../shared/mail/calendar/seriesInstance.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const START = { local: '2030-01-29T10:00:00', zone: 'Europe/Berlin' }

/** Returns the local days, among the next 800, on which a series from START may have an instance. */
const daysOf = (rule: string, start: { local: string; zone: string | null } = START): string[] => {
  const first = Temporal.PlainDateTime.from(start.local)
  return Array.from({ length: 800 }, (_, n) => first.add({ days: n }))
    .filter((at) =>
      mayStartAt({ start, rule }, at.toZonedDateTime(start.zone ?? 'UTC').epochMilliseconds),
    )
    .map((at) => at.toPlainDate().toString())
}

/** Returns the local days, among the next 800, on which the calendar shows an instance. */
const shownDaysOf = (rule: string): string[] => {
  const event = new ICAL.Component('vevent')
  const start = new ICAL.Property('dtstart')
  start.setValue(ICAL.Time.fromDateTimeString(START.local))
  start.setParameter('tzid', START.zone)
  event.addProperty(start)
  event.addPropertyWithValue('rrule', ICAL.Recur.fromString(rule))
  const fromMs = Date.parse('2030-01-01')
  const untilMs = Date.parse('2030-01-29T12:00:00Z') + 799 * DAY_MS
  return instancesOf(event, new Map(), { fromMs, untilMs, max: 1_000 }).map(({ local }) =>
    local.slice(0, 10),
  )
}

describe('the instances of a simple recurrence rule are those that the calendar shows', () => {
  test.each([
    ...['FREQ=DAILY', 'FREQ=DAILY;INTERVAL=3;COUNT=7', 'FREQ=DAILY;UNTIL=20300401T070000Z'],
    ...['FREQ=DAILY;UNTIL=20300401', 'FREQ=DAILY;BYDAY=MO,TU,WE,TH,FR', 'FREQ=DAILY;BYMONTH=3'],
    ...['FREQ=DAILY;BYMONTHDAY=1,15', 'FREQ=WEEKLY', 'FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU'],
    ...['FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU;WKST=SU', 'FREQ=WEEKLY;BYDAY=TU,TH;COUNT=12'],
    ...['FREQ=WEEKLY;BYMONTH=5,6', 'FREQ=MONTHLY', 'FREQ=MONTHLY;BYMONTHDAY=31'],
    ...['FREQ=MONTHLY;INTERVAL=3;BYMONTHDAY=-1,29', 'FREQ=MONTHLY;BYDAY=5TU,-1FR;COUNT=9'],
    ...['FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1', 'FREQ=MONTHLY;BYDAY=-1TU;BYMONTH=1,2'],
    ...['FREQ=MONTHLY;BYMONTHDAY=29,30,31;BYSETPOS=-1', 'FREQ=YEARLY', 'FREQ=YEARLY;COUNT=2'],
    ...['FREQ=YEARLY;BYMONTH=1,7', 'FREQ=YEARLY;BYMONTH=11;BYDAY=4TH'],
  ])('%s', (rule) => {
    expect(daysOf(rule)).toEqual(shownDaysOf(rule))
  })
})

test('an instance starts at the time of the series, and also after a local time that summer time skips', () => {
  const start = { local: '2030-03-24T02:30:00', zone: 'Europe/Berlin' }
  const mayStart = (at: string) => mayStartAt({ start, rule: 'FREQ=DAILY' }, Date.parse(at))
  expect(mayStart('2030-03-30T01:30:00Z')).toBe(true)
  // On 31 March the local time 2:30 does not exist. The instance starts at 3:30.
  expect(mayStart('2030-03-31T01:30:00Z')).toBe(true)
  expect(mayStart('2030-03-31T00:30:00Z')).toBe(false)
  expect(mayStart('2030-04-01T00:30:00Z')).toBe(true)
  expect(mayStart('2030-04-01T01:30:00Z')).toBe(false)
})

test('a recurrence rule that is too complicated to evaluate may have an instance on each day from its start to its end', () => {
  for (const part of ['BYYEARDAY=1', 'BYWEEKNO=2;BYDAY=MO', 'BYDAY=1MO', 'BYMONTHDAY=-1']) {
    expect(daysOf(`FREQ=YEARLY;${part}`)).toHaveLength(800)
    expect(daysOf(`FREQ=YEARLY;${part};UNTIL=20300302T100000Z`)).toHaveLength(33)
  }
})

test('a series of whole days has its instances on dates', () => {
  const start = { local: '2030-01-29', zone: null }
  expect(daysOf('FREQ=WEEKLY;COUNT=2', start)).toEqual(['2030-01-29', '2030-02-05'])
})
