/** Tests which instances a recurring or single calendar event has. */
import { describe, expect, test } from 'bun:test'
import ICAL from 'ical.js'
import {
  definitionsOf,
  expand,
  instancesOf,
  isTooOften,
  localAt,
  recurs,
  sourceOf,
  spanOf,
  timesOf,
} from '../../../../shared/mail/calendar/instances.ts'

const DAY_MS = 86_400_000
const ZONE = [
  'BEGIN:VTIMEZONE',
  'TZID:Our office',
  'BEGIN:STANDARD',
  'DTSTART:19701025T030000',
  'RRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU',
  'TZOFFSETFROM:+0200',
  'TZOFFSETTO:+0100',
  'END:STANDARD',
  'BEGIN:DAYLIGHT',
  'DTSTART:19700329T020000',
  'RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU',
  'TZOFFSETFROM:+0100',
  'TZOFFSETTO:+0200',
  'END:DAYLIGHT',
  'END:VTIMEZONE',
]

/** Reads a calendar whose event consists of the given lines. */
function read(...lines: string[]) {
  const text = ['BEGIN:VCALENDAR', ...ZONE, 'BEGIN:VEVENT', ...lines, 'END:VEVENT', 'END:VCALENDAR']
  const calendar = new ICAL.Component(ICAL.parse(text.join('\r\n')))
  return { calendar, event: calendar.getFirstSubcomponent('vevent')! }
}

const ms = (iso: string) => Date.parse(`${iso}${iso.includes('T') ? '' : 'T00:00:00'}Z`)
const WINDOW = { fromMs: ms('2026-01-01'), untilMs: ms('2027-01-01'), max: 100 }

/** Returns the instances of an event, each as its local time. */
function locals(lines: string[], window: Partial<typeof WINDOW> = {}): string[] {
  const { calendar, event } = read(...lines)
  const found = instancesOf(event, definitionsOf(calendar), { ...WINDOW, ...window })
  return found.map(({ local }) => local.replace(/^2026-/, '').replace(/:00:00$/, ''))
}
const span = (...lines: string[]) => {
  const { calendar, event } = read(...lines)
  return spanOf(event, definitionsOf(calendar))
}

describe('an event without a recurrence rule has one instance', () => {
  const once = ['DTSTART:20260302T100000Z', 'DTEND:20260302T110000Z']

  test('a calendar event without a recurrence rule has only one instance, at its start', () => {
    const { calendar, event } = read(...once)
    expect(instancesOf(event, definitionsOf(calendar), WINDOW)).toEqual([
      {
        startMs: ms('2026-03-02T10:00:00'),
        endMs: ms('2026-03-02T11:00:00'),
        local: '2026-03-02T10:00:00',
      },
    ])
  })

  test('a search finds a calendar event only if the search window begins before the event’s end', () => {
    expect(locals(once, { fromMs: ms('2026-03-02T10:59:59') })).toEqual(['03-02T10'])
    expect(locals(once, { fromMs: ms('2026-03-02T11:00:00') })).toEqual([])
  })

  test('a search finds a calendar event only if the event starts before the search window ends', () => {
    expect(locals(once, { untilMs: ms('2026-03-02T10:00:01') })).toEqual(['03-02T10'])
    expect(locals(once, { untilMs: ms('2026-03-02T10:00:00') })).toEqual([])
  })

  test('a calendar event without a duration is found only if its start is inside the search window', () => {
    const moment = ['DTSTART:20260302T100000Z']
    expect(locals(moment, { fromMs: ms('2026-03-02T10:00:00') })).toEqual(['03-02T10'])
    expect(locals(moment, { fromMs: ms('2026-03-02T10:00:01') })).toEqual([])
  })

  test('a calendar event without a start has no instances', () => {
    expect(locals(['SUMMARY:x'])).toEqual([])
  })
})

describe('an event with a recurrence rule has the instances of the rule, without excluded instances (EXDATE) and with added instances (RDATE)', () => {
  const daily = ['DTSTART:20260302T100000Z', 'RRULE:FREQ=DAILY;COUNT=4']

  test('a recurring event has the instances of its rule, but at most as many as the caller requests', () => {
    expect(locals(daily)).toEqual(['03-02T10', '03-03T10', '03-04T10', '03-05T10'])
    expect(locals(daily, { max: 3 })).toEqual(['03-02T10', '03-03T10', '03-04T10'])
  })

  test('if summer time makes two local times the same instant, the event has one instance at this instant', () => {
    const rule = 'RRULE:FREQ=DAILY;BYHOUR=2,3;COUNT=3'
    expect(locals(['DTSTART;TZID=Europe/Berlin:20260329T020000', rule])).toEqual([
      '03-29T03',
      '03-30T02',
      '03-30T03',
    ])
  })

  test('a recurring event lacks the instances that EXDATE excludes', () => {
    expect(locals([...daily, 'EXDATE:20260303T100000Z,20260304T100000Z'])).toEqual([
      '03-02T10',
      '03-05T10',
    ])
  })

  test('an EXDATE without a time of day excludes the whole local day of a timed event', () => {
    const late = ['DTSTART;TZID=America/New_York:20260302T210000', 'RRULE:FREQ=DAILY;COUNT=4']
    expect(locals([...late, 'EXDATE;VALUE=DATE:20260303,20260304'])).toEqual([
      '03-02T21',
      '03-05T21',
    ])
  })

  test('a recurring event also has the instances that RDATE adds, sorted by time and without repetition', () => {
    const added = 'RDATE:20260306T100000Z,20260303T120000Z,20260304T100000Z,20260302T100000Z'
    expect(locals([...daily, added])).toEqual([
      '03-02T10',
      '03-03T10',
      '03-03T12',
      '03-04T10',
      '03-05T10',
      '03-06T10',
    ])
  })

  test('if RDATE adds a period to an event, the event has an instance at the start of the period', () => {
    expect(
      locals(['DTSTART:20260302T100000Z', 'RDATE;VALUE=PERIOD:20260305T100000Z/PT1H']),
    ).toEqual(['03-02T10', '03-05T10'])
  })

  test.each([
    ['RRULE:FREQ=YEARLY;COUNT=3', ['2024-02-29', '2028-02-29', '2032-02-29']],
    ['RRULE:FREQ=YEARLY;BYMONTH=2;UNTIL=20290101', ['2024-02-29', '2028-02-29']],
    [
      'RRULE:FREQ=YEARLY;BYMONTH=2,3;BYMONTHDAY=1,29;COUNT=5',
      ['2024-02-29', '2024-03-01', '2024-03-29', '2025-02-01', '2025-03-01'],
    ],
    ['RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=-1;COUNT=2', ['2024-02-29', '2025-02-28']],
  ])(
    'an event with the rule %s skips a day that a month does not have (RFC 5545 §3.3.10)',
    (rule, days) => {
      const window = { fromMs: ms('2024-01-01'), untilMs: ms('2040-01-01') }
      expect(locals(['DTSTART;VALUE=DATE:20240229', rule], window)).toEqual(days)
    },
  )

  test.each([
    ['BYMONTHDAY=28,29,30,31;BYSETPOS=-1', ['01-31', '02-28', '03-31', '04-30']],
    ['BYMONTHDAY=31,30,15;BYSETPOS=2,1', ['01-31', '02-15', '03-15', '03-30']],
    ['INTERVAL=2;BYMONTHDAY=28,29,30,31;BYSETPOS=-1', ['01-31', '03-31', '05-31', '07-31']],
    [
      'INTERVAL=12;BYMONTHDAY=30,31;BYSETPOS=-1',
      ['01-31', '2027-01-31', '2028-01-31', '2029-01-31'],
    ],
  ])(
    'an event with the rule part %s takes place on the days at these positions in each month',
    (rule, days) => {
      const lines = ['DTSTART;VALUE=DATE:20260131', `RRULE:FREQ=MONTHLY;COUNT=4;${rule}`]
      expect(locals(lines, { untilMs: ms('2030-01-01') }).slice(0, 4)).toEqual(days)
    },
  )

  test('the start of an event is an instance, even if the recurrence rule does not produce it', () => {
    expect(locals(['DTSTART:20260302T100000Z', 'RRULE:FREQ=WEEKLY;BYDAY=TU;COUNT=1'])).toEqual([
      '03-02T10',
      '03-03T10',
    ])
  })

  test('an event keeps its local time when daylight saving time begins or ends', () => {
    const weekly = ['DTSTART;TZID=Europe/Berlin:20260323T100000', 'RRULE:FREQ=WEEKLY;COUNT=2']
    const { calendar, event } = read(...weekly)
    expect(
      instancesOf(event, definitionsOf(calendar), WINDOW).map(({ startMs }) => startMs),
    ).toEqual([ms('2026-03-23T09:00:00'), ms('2026-03-30T08:00:00')])
    expect(locals(weekly)).toEqual(['03-23T10', '03-30T10'])
  })

  test('an event keeps its local time even in a time zone that only the calendar file defines', () => {
    const weekly = ['DTSTART;TZID=Our office:20260323T100000', 'RRULE:FREQ=WEEKLY;COUNT=2']
    expect(locals(weekly)).toEqual(['03-23T10', '03-30T10'])
  })

  test('the instances of a whole-day event are dates', () => {
    expect(locals(['DTSTART;VALUE=DATE:20260302', 'RRULE:FREQ=DAILY;COUNT=2'])).toEqual([
      '03-02',
      '03-03',
    ])
  })
})

describe('the UNTIL part of a recurrence rule ends a series', () => {
  const until = (text: string, start = 'DTSTART;TZID=Europe/Berlin:20260302T100000') =>
    locals([start, `RRULE:FREQ=DAILY;UNTIL=${text}`]).length

  test('an UNTIL in UTC is an exact time, and an instance at exactly this time still belongs to the series', () => {
    expect(until('20260304T090000Z')).toBe(3)
    expect(until('20260304T085959Z')).toBe(2)
  })

  test('an UNTIL without a time zone is read in the time zone of the event’s start', () => {
    expect(until('20260304T100000')).toBe(3)
    expect(until('20260304T095959')).toBe(2)
  })

  test('an UNTIL that is a date includes the whole of this day', () => {
    expect(until('20260304')).toBe(3)
    expect(until('20260304', 'DTSTART;TZID=Europe/Berlin:20260302T235959')).toBe(3)
    expect(until('20260304', 'DTSTART;VALUE=DATE:20260302')).toBe(3)
  })
})

describe('the length of an event comes from DTEND or DURATION', () => {
  test('an event ends at DTEND, which overrides DURATION', () => {
    const lines = ['DTSTART:20260302T100000Z', 'DTEND:20260302T113000Z']
    expect(span(...lines)!.lengthMs).toBe(5_400_000)
    expect(span(...lines, 'DURATION:PT3H')!.lengthMs).toBe(5_400_000)
  })

  test('the length of an event is its DURATION, even if its start is a date', () => {
    expect(span('DTSTART:20260302T100000Z', 'DURATION:PT3H')!.lengthMs).toBe(10_800_000)
    expect(span('DTSTART;VALUE=DATE:20260302', 'DURATION:P2D')!.lengthMs).toBe(2 * DAY_MS)
  })

  test('an event without DTEND and DURATION lasts one day if its start is a date, and otherwise has no length', () => {
    expect(span('DTSTART;VALUE=DATE:20260302')!.lengthMs).toBe(DAY_MS)
    expect(span('DTSTART:20260302T100000Z')!.lengthMs).toBe(0)
  })

  test('the length of an event is never negative', () => {
    expect(span('DTSTART:20260302T100000Z', 'DTEND:20260302T090000Z')!.lengthMs).toBe(0)
  })

  test('the length of an event is unknown if it has no start', () => {
    expect(span('DTEND:20260302T100000Z')).toBeNull()
  })
})

describe('each time in a property of a calendar file is read with its time zone', () => {
  const zones = (line: string) => {
    const { calendar, event } = read(line)
    return timesOf(event.getFirstProperty('rdate'), definitionsOf(calendar)).map(
      ({ zone }) => zone.name,
    )
  }

  test('a calendar property’s times are in UTC, in the time zone of TZID, or without a time zone', () => {
    expect(zones('RDATE:20260302T100000Z,20260303T100000')).toEqual(['UTC', null])
    expect(zones('RDATE;TZID=Europe/Berlin:20260302T100000')).toEqual(['Europe/Berlin'])
    expect(zones('RDATE;TZID=Europe/Berlin;VALUE=DATE:20260302')).toEqual([null])
  })

  test('the times of a calendar property leave out values that are not times', () => {
    const { event } = read('SUMMARY:x')
    expect(timesOf(event.getFirstProperty('summary'), new Map())).toEqual([])
    expect(timesOf(null, new Map())).toEqual([])
  })
})

test('the local time of a calendar instance is the time in the time zone of the event', () => {
  const at = ms('2026-07-01T10:00:00')
  const local = (line: string) => localAt(at, span(line)!.start)
  expect(local('DTSTART;TZID=Europe/Berlin:20260302T100000')).toBe('2026-07-01T12:00:00')
  expect(local('DTSTART;TZID=Our office:20260302T100000')).toBe('2026-07-01T12:00:00')
  expect(local('DTSTART:20260302T100000')).toBe('2026-07-01T10:00:00')
  expect(local('DTSTART;VALUE=DATE:20260302')).toBe('2026-07-01')
})

test('an event counts as recurring if it has a recurrence rule or added times (RDATE)', () => {
  expect(recurs(read('RRULE:FREQ=DAILY').event)).toBe(true)
  expect(recurs(read('RDATE:20260302T100000Z').event)).toBe(true)
  expect(recurs(read('DTSTART:20260302T100000Z').event)).toBe(false)
})

test('an event that repeats every hour or more often counts as recurring too often to list its instances', () => {
  const often = (line: string) => isTooOften(read(line).event)
  const hours = Array.from({ length: 24 }, (_, hour) => hour).join()
  expect(often(`RRULE:FREQ=DAILY;BYHOUR=${hours}`)).toBe(true)
  expect(often('RRULE:FREQ=DAILY;BYHOUR=9,12,15;BYMINUTE=0,30')).toBe(false)
  expect(often('RRULE:FREQ=DAILY;BYHOUR=9,12;BYMINUTE=0,15,30,45;BYSECOND=0,20,40')).toBe(true)
  for (const freq of ['HOURLY', 'MINUTELY', 'SECONDLY'])
    expect(often(`RRULE:FREQ=${freq}`)).toBe(true)
  for (const freq of ['DAILY', 'YEARLY']) expect(often(`RRULE:FREQ=${freq}`)).toBe(false)
  expect(often('SUMMARY:x')).toBe(false)
})

describe('the service stores only the calendar lines that define the instances of an event', () => {
  const series = ['DTSTART;TZID=Our office:20260323T100000', 'RRULE:FREQ=WEEKLY;COUNT=3']
  const source = (...lines: string[]) => {
    const { calendar, event } = read(...lines)
    return sourceOf(event, calendar)
  }

  test('the calendar lines that the service stores give the same instances as the whole file, with EXDATE, RDATE and time zones', () => {
    const lines = [
      ...series,
      'DTEND;TZID=Our office:20260323T113000',
      'EXDATE;TZID=Our office:20260330T100000',
      'RDATE;TZID=Our office:20260401T100000',
    ]
    const { calendar, event } = read(...lines)
    const expanded = expand(source(...lines)!, WINDOW)
    expect(expanded).toEqual(instancesOf(event, definitionsOf(calendar), WINDOW))
    expect(expanded.map(({ local }) => local.slice(0, 10))).toEqual([
      '2026-03-23',
      '2026-04-01',
      '2026-04-06',
    ])
    expect(expanded[0]!.endMs - expanded[0]!.startMs).toBe(5_400_000)
    const timed = expand(source(...series, 'DURATION:PT2H')!, WINDOW)
    expect(timed[0]!.endMs - timed[0]!.startMs).toBe(7_200_000)
  })

  test('a recurring event with a long pause shows its next instance, even if the search window contains no instance', () => {
    const years = (...lines: string[]) =>
      expand(source(...lines)!, WINDOW).map(({ local }) => local.slice(0, 10))
    const leapDay = 'DTSTART;VALUE=DATE:20240229'
    expect(years(leapDay, 'RRULE:FREQ=YEARLY')).toEqual(['2028-02-29'])
    expect(years(leapDay, 'RRULE:FREQ=YEARLY', 'EXDATE;VALUE=DATE:20280229')).toEqual([
      '2032-02-29',
    ])
    expect(years(leapDay, 'RRULE:FREQ=YEARLY;UNTIL=20270101')).toEqual([])
    expect(years(leapDay, 'RRULE:FREQ=YEARLY;INTERVAL=9999')).toEqual([])
    expect(years(leapDay, 'RRULE:FREQ=YEARLY;BYMONTH=3;BYMONTHDAY=1')).toEqual(['2026-03-01'])
  })

  test('if a recurring event has too many instances, the service keeps the instances around the present time', () => {
    const rule = 'RRULE:FREQ=DAILY;BYHOUR=8,10,12,14,16,18'
    const often = source('DTSTART:20200101T080000Z', 'DURATION:PT1H', rule)!
    const nowMs = ms('2026-07-01T09:00:00')
    const found = expand(often, { ...WINDOW, nowMs }).map(({ startMs }) => startMs)
    expect(found).toHaveLength(100)
    expect(found.filter((startMs) => startMs >= nowMs)).toHaveLength(75)
    expect(found).toContain(ms('2026-07-01T08:00:00'))
    expect(found).toEqual(found.toSorted((one, other) => one - other))
    const begun = expand(often, { ...WINDOW, nowMs: ms('2026-07-01T08:00:00') })
    expect(begun.map(({ startMs }) => startMs)).toContain(ms('2026-07-01T08:00:00'))
    const short = expand(often, { ...WINDOW, nowMs: ms('2026-01-02T09:00:00') })
    expect([short.length, short[0]!.startMs]).toEqual([100, ms('2026-01-01T08:00:00')])
  })

  test('the calendar lines that the service stores contain neither the title nor other texts of the event', () => {
    expect(source(...series, 'SUMMARY:Tide tables')).not.toContain('Tide')
  })

  test('the calendar lines that the service stores define a time zone only if the event uses the time zone and its TZID is no IANA name', () => {
    const zone = (...lines: string[]) => ['BEGIN:VTIMEZONE', ...lines, ...ZONE.slice(2)]
    const text = [
      'BEGIN:VCALENDAR',
      ...zone('TZID:Europe/Berlin'),
      ...zone('TZID:Unnamed'),
      ...zone('TZID:Our office', `COMMENT:${'x'.repeat(1_000)}`),
      ...zone('TZID:Known place', 'X-LIC-LOCATION:Asia/Tokyo'),
      ...['BEGIN:VEVENT', 'DTSTART;TZID=Our office:20260323T100000', 'RRULE:FREQ=DAILY;COUNT=9'],
      'EXDATE;TZID=Known place:20260324T180000',
      'RDATE;TZID=Europe/Berlin:20260501T100000',
      ...['END:VEVENT', 'END:VCALENDAR'],
    ]
    const calendar = new ICAL.Component(ICAL.parse(text.join('\r\n')))
    const event = calendar.getFirstSubcomponent('vevent')!
    const stored = sourceOf(event, calendar)!
    expect([...stored.matchAll(/^TZID:(.*)\r$/gm)].map(([, name]) => name)).toEqual([
      'Our office',
      'Known place',
    ])
    expect(stored.length).toBeLessThan(900)
    const expanded = expand(stored, WINDOW)
    expect(expanded).toEqual(instancesOf(event, definitionsOf(calendar), WINDOW))
    expect(expanded.map(({ local }) => local.slice(5, 10))).toContain('05-01')
    expect(expanded.map(({ local }) => local.slice(5, 10))).not.toContain('03-24')
  })

  test('the service stores no calendar lines if the event does not recur or recurs too often', () => {
    expect(source('DTSTART:20260302T100000Z')).toBeNull()
    expect(source('DTSTART:20260302T100000Z', 'RRULE:FREQ=HOURLY')).toBeNull()
  })

  test('the calendar lines that the service stores have at most 100,000 characters', () => {
    const added = 'RDATE:20260302T100000Z'
    const start = ['DTSTART:20260302T100000Z', ...Array(4_000).fill(added)]
    const room = 100_000 - source(...start)!.length
    // The last RDATE line gets a long parameter, because a whole additional line would not end exactly at the limit of
    // 100,000 characters.
    const filled = (length: number) => added.replace(':', `;X-A=${'x'.repeat(length - 5)}:`)
    const lineLength = added.length + 2
    const lines = [...start, ...Array(Math.floor(room / lineLength) - 2).fill(added)]
    const left = 100_000 - source(...lines)!.length - lineLength
    expect(source(...lines, filled(left))).toHaveLength(100_000)
    expect(source(...lines, filled(left + 1))).toBeNull()
  })

  test('a calendar without an event has no instances', () => {
    expect(expand('BEGIN:VCALENDAR\r\nEND:VCALENDAR', WINDOW)).toEqual([])
  })
})
