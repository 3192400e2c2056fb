/**
 * Tests calendar files in the layouts of common calendar programs, and the exchange of calendar files with other
 * libraries.
 */
import { describe, expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import ICAL from 'ical.js'
import ical, { type VEvent } from 'node-ical'
import {
  definitionsOf,
  expand,
  instancesOf,
  recurs,
  sourceOf,
} from '../../../../shared/mail/calendar/instances.ts'
import {
  CALENDAR_MAX_CHARS,
  INVITES_MAX,
  type ReadInvite,
} from '../../../../shared/mail/calendar/invite.ts'
import { readCalendar } from '../../../../shared/mail/calendar/readCalendar.ts'
import {
  type WrittenEvent,
  writeAnswer,
  writeCancellation,
  writeRequest,
} from '../../../../shared/mail/calendar/writeCalendar.ts'
import '../../../support/long.ts'

const NOW_MS = Date.parse('2030-01-01T00:00:00Z')
const WINDOW = { fromMs: NOW_MS, untilMs: Date.parse('2032-01-01T00:00:00Z'), max: 100 }

const bytesOf = (name: string) => Bun.file(`test/fixtures/calendar/${name}.ics`).bytes()
const layout = async (name: string) => readCalendar(await bytesOf(name), NOW_MS)

test('a weekly meeting from Google Calendar is read with its meeting link and its local times', async () => {
  const [invite] = await layout('google')
  expect(invite).toMatchObject({
    method: 'REQUEST',
    uid: '0a1b2c3d4e5f@google.com',
    start: { at: '2030-03-06T19:30:00.000Z', zone: 'America/New_York' },
    meetingLink: 'https://meet.google.com/abc-defg-hij',
    description: 'Which holds are free, and which are not.\n\nSee you there.',
    location: null,
    organizer: { address: 'mira@shipyard.example', name: 'Mira Holt' },
  })
  expect(invite!.attendees.map(({ state }) => state)).toEqual(['accepted', 'needs-action'])
  // Daylight saving time in New York begins on 10 March 2030, so the second instance is an hour earlier in UTC.
  expect(invite!.recurrence!.next.slice(0, 2)).toEqual([
    '2030-03-06T19:30:00.000Z',
    '2030-03-13T18:30:00.000Z',
  ])
})

test('a meeting from Outlook is read with its Windows time zone, its attendees’ roles and its Teams link', async () => {
  const [invite] = await layout('outlook')
  expect(invite).toMatchObject({
    summary: 'Übergabe der Ladung',
    sequence: 2,
    start: { at: '2030-03-05T08:00:00.000Z', zone: 'Europe/Berlin' },
    meetingLink: 'https://teams.microsoft.com/l/meetup-join/19%3ameeting_abc%40thread.v2/0',
    organizer: { address: 'jonas@reederei.example', name: 'Brandt, Jonas' },
  })
  expect(invite!.attendees.map(({ role, state }) => [role, state])).toEqual([
    ['required', 'needs-action'],
    ['optional', 'tentative'],
    ['information', 'needs-action'],
  ])
})

test('a recurring Outlook event in a custom time zone is read without its excluded day and with its rescheduled instance', async () => {
  const [series, moved] = await layout('outlookSeries')
  expect(series!.start).toEqual({
    at: '2030-03-04T04:00:00.000Z',
    local: '2030-03-04T09:30:00',
    zone: null,
  })
  expect(series!.recurrence!.next).toEqual([
    '2030-03-04T04:00:00.000Z',
    '2030-03-05T04:00:00.000Z',
    '2030-03-07T04:00:00.000Z',
    '2030-03-08T04:00:00.000Z',
  ])
  expect(moved).toMatchObject({
    recurrenceId: '2030-03-07T04:00:00.000Z',
    start: { at: '2030-03-07T05:30:00.000Z' },
  })
})

test('a meeting of Apple Calendar is read with names in Japanese and with the address of each attendee', async () => {
  const [invite] = await layout('apple')
  expect(invite).toMatchObject({
    summary: '荷役の打ち合わせ',
    location: '港 3番\n東京',
    start: { at: '2030-03-07T02:00:00.000Z', zone: 'Asia/Tokyo' },
    organizer: { address: 'aoi@minato.example', name: '小林 葵' },
  })
  expect(invite!.attendees[0]).toMatchObject({ address: 'purser@mail.example', name: 'Purser' })
})

test('a yearly event of whole days keeps its dates and its length', async () => {
  const [invite] = await layout('allDay')
  expect(invite).toMatchObject({
    allDay: true,
    start: { local: '2030-05-10', zone: null },
    end: { local: '2030-05-12' },
  })
  expect(expand(invite!.source!, WINDOW).map(({ local }) => local)).toEqual([
    '2030-05-10',
    '2031-05-09',
  ])
})

test.each(['google', 'outlook', 'outlookSeries', 'apple', 'allDay'])(
  'the lines that the service stores of the series in the file %s give the same instances as the whole file',
  async (name) => {
    const text = new TextDecoder().decode(await bytesOf(name))
    const calendar = new ICAL.Component(ICAL.parse(text))
    for (const event of calendar.getAllSubcomponents('vevent').filter(recurs)) {
      const stored = expand(sourceOf(event, calendar)!, WINDOW)
      expect(stored).not.toEqual([])
      expect(stored).toEqual(instancesOf(event, definitionsOf(calendar), WINDOW))
    }
  },
)

/** Writes a calendar file with twenty weekly events in a time zone that only the file defines. */
const timetable = (...zoneLines: string[]) =>
  [
    ...['BEGIN:VCALENDAR', 'METHOD:PUBLISH', 'BEGIN:VTIMEZONE', 'TZID:Our office', ...zoneLines],
    ...['BEGIN:STANDARD', 'DTSTART:19701025T030000', 'RRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU'],
    ...['TZOFFSETFROM:+0200', 'TZOFFSETTO:+0100', 'TZNAME:Winter', 'END:STANDARD'],
    ...['BEGIN:DAYLIGHT', 'DTSTART:19700329T020000', 'RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU'],
    ...['TZOFFSETFROM:+0100', 'TZOFFSETTO:+0200', 'TZNAME:Summer', 'END:DAYLIGHT'],
    'END:VTIMEZONE',
    ...Array.from({ length: INVITES_MAX }, (_, n) => [
      ...['BEGIN:VEVENT', `UID:lesson-${n}@school.example`, 'DTSTAMP:20300101T000000Z'],
      ...['SUMMARY:Navigation', 'LOCATION:Room 4', 'DTSTART;TZID=Our office:20300304T100000'],
      ...['DTEND;TZID=Our office:20300304T110000', 'RRULE:FREQ=WEEKLY;COUNT=10', 'END:VEVENT'],
    ]).flat(),
    'END:VCALENDAR',
  ].join('\r\n')
const sourcesOf = (text: string) =>
  readCalendar(Buffer.from(text), NOW_MS).map(({ source }) => source)

test('the recurring events in the calendar file of a timetable are read as recurring, although the file defines its own time zone', () => {
  const sources = sourcesOf(timetable(`COMMENT:${'x'.repeat(3_000)}`))
  expect(sources.map((source) => expand(source!, WINDOW).length)).toEqual(
    Array(INVITES_MAX).fill(10),
  )
})

test.each([
  ['a long text', [`COMMENT:${'x'.repeat(70_000)}`]],
  [
    'thousands of changes of its offset',
    Array(700)
      .fill(['BEGIN:STANDARD', 'DTSTART:20300101T000000', 'TZOFFSETFROM:+0100', 'TZOFFSETTO:+0100'])
      .flatMap((lines) => [...lines, 'END:STANDARD']),
  ],
])(
  'the series of a file store at most twice the size of the file if a time zone has %s',
  (_, lines) => {
    const text = timetable(...lines)
    const sources = sourcesOf(text)
    expect(sources).toHaveLength(INVITES_MAX)
    const stored = sources.reduce((sum, source) => sum + (source?.length ?? 0), 0)
    expect(stored).toBeGreaterThan(0)
    expect(stored).toBeLessThanOrEqual(2 * text.length)
  },
)

test.each([
  ['no event', 'BEGIN:VCALENDAR\r\nVERSION:2.0\r\nEND:VCALENDAR'],
  ['a line without a colon and no event', 'BEGIN:VCALENDAR\r\nno colon\r\nEND:VCALENDAR'],
  [
    'no UID',
    'BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nDTSTART:20300101T000000Z\r\nEND:VEVENT\r\nEND:VCALENDAR',
  ],
  ['no start', 'BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:a\r\nEND:VEVENT\r\nEND:VCALENDAR'],
  [
    'an impossible start',
    'BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:a\r\nDTSTART:2030-13-45\r\nEND:VEVENT\r\nEND:VCALENDAR',
  ],
])('a calendar file with %s contains no invitation', (_name, text) => {
  expect(readCalendar(Buffer.from(text), NOW_MS)).toEqual([])
})

test.each(['', 'BEGIN:VCALENDAR', 'BEGIN:VCALENDAR\r\nDTSTART;X:a\r\nEND:VCALENDAR', '[]'])(
  'the calendar file %j is refused as malformed',
  (text) => {
    expect(() => readCalendar(Buffer.from(text), NOW_MS)).toThrow('malformed')
  },
)

const BERLIN = { zone: 'Europe/Berlin' }
const WRITTEN: WrittenEvent = {
  uid: 'written-1@mail.example',
  sequence: 3,
  stamp: new Date('2030-01-02T03:04:05Z'),
  summary: 'Cargo; "weekly", ü',
  start: { local: '2030-03-18T10:00:00', ...BERLIN },
  end: { local: '2030-03-18T10:30:00', ...BERLIN },
  recurrenceId: null,
  organizer: { address: 'purser@mail.example', name: 'Purser' },
  description: 'Line one\nLine two, with ; and \\ and a long tail '.padEnd(200, 'ü'),
  location: 'Pier 3, left',
  url: 'https://example.com/meeting',
  rule: 'FREQ=WEEKLY;BYDAY=MO;COUNT=4',
  attendees: [
    { address: 'ada@example.com', name: 'Doe, Ada', role: 'required' },
    { address: 'bob@example.com', name: null, role: 'optional' },
  ],
}
const STARTS = [
  '2030-03-18T09:00:00.000Z',
  '2030-03-25T09:00:00.000Z',
  '2030-04-01T08:00:00.000Z',
  '2030-04-08T08:00:00.000Z',
]

test('no line of a calendar file that the service writes is longer than 75 octets', () => {
  for (const line of writeRequest(WRITTEN).split('\r\n')) {
    expect(Buffer.byteLength(line)).toBeLessThanOrEqual(75)
  }
})

test('the library node-ical reads a calendar file that this service wrote, and finds the same instances', () => {
  const [event] = Object.values(ical.sync.parseICS(writeRequest(WRITTEN))).filter(
    (one): one is VEvent => one?.type === 'VEVENT',
  )
  expect(event).toMatchObject({
    uid: WRITTEN.uid,
    summary: WRITTEN.summary,
    description: WRITTEN.description,
    location: WRITTEN.location,
    sequence: 3,
  })
  const starts = event!.rrule!.between(new Date(NOW_MS), new Date(WINDOW.untilMs))
  expect(starts.map((at) => at.toISOString())).toEqual(STARTS)
})

test.each(['google', 'outlook', 'outlookSeries', 'apple', 'allDay'])(
  'the library node-ical and the service read the same start from the calendar file %s',
  async (name) => {
    const [invite] = await layout(name)
    const events = Object.values(ical.sync.parseICS(Buffer.from(await bytesOf(name)).toString()))
    const event = events.find((one): one is VEvent => one?.type === 'VEVENT')
    const { allDay, start } = invite as ReadInvite
    if (allDay)
      expect(event!.start.toDateString()).toBe(new Date(`${start!.local}T00:00`).toDateString())
    else expect(event!.start.toISOString()).toBe(start!.at)
  },
)

/** Generates pseudo-random recurrence rules of the kinds that meetings use. */
function* drawnRules(count: number): Generator<{ zone: string; start: string; rule: string }> {
  let state = 20300101
  const draw = (max: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return (state >>> 8) % max
  }
  const oneOf = <Value>(values: readonly Value[]): Value => values[draw(values.length)]!
  for (let n = 0; n < count; n++) {
    const zone = oneOf(['Europe/Berlin', 'America/New_York', 'Asia/Kolkata', 'Australia/Sydney'])
    const start = `2030-0${1 + draw(9)}-${10 + draw(18)}T${10 + draw(10)}:30:00`
    const kind = oneOf([
      'FREQ=DAILY',
      'FREQ=WEEKLY',
      `FREQ=WEEKLY;BYDAY=${oneOf(['MO,WE', 'TU', 'FR,SU', 'SA'])}`,
      `FREQ=MONTHLY;BYDAY=${oneOf(['1MO', '-1FR', '3TH'])}`,
      `FREQ=MONTHLY;BYMONTHDAY=${oneOf(['1', '15', '28', '-1'])}`,
      'FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1',
      `FREQ=YEARLY;BYMONTH=${1 + draw(12)};BYDAY=2WE`,
    ])
    yield { zone, start, rule: `${kind};INTERVAL=${1 + draw(3)};UNTIL=20311231T235959Z` }
  }
}

test('for 300 random recurrence rules, the library node-ical finds the same instances as this service', () => {
  for (const { zone, start, rule } of drawnRules(300)) {
    const end = start.replace(':30:', ':45:')
    const written = writeRequest({
      ...WRITTEN,
      rule,
      start: { local: start, zone },
      end: { local: end, zone },
    })
    const [invite] = readCalendar(Buffer.from(written), NOW_MS)
    // Calendar libraries disagree whether the start of a series is an instance if the recurrence rule does not produce
    // it. This service counts the start as an instance.
    const ours = expand(invite!.source!, { ...WINDOW, max: 2_000 })
      .map(({ startMs }) => new Date(startMs).toISOString())
      .filter((at) => at !== invite!.start!.at)
    const [event] = Object.values(ical.sync.parseICS(written)).filter(
      (one): one is VEvent => one?.type === 'VEVENT',
    )
    const theirs = event!
      .rrule!.between(new Date(NOW_MS), new Date(WINDOW.untilMs))
      .map((at) => at.toISOString())
      .filter((at) => at !== invite!.start!.at)
    expect([zone, start, rule, ours]).toEqual([zone, start, rule, theirs])
  }
})

/** Holds the path of the Python program for which Debian installs the package python3-icalendar. */
const PYTHON = '/usr/bin/python3'
const hasPython = spawnSync(PYTHON, ['-c', 'import icalendar']).status === 0
if (!hasPython) {
  process.stderr.write('SKIPPED: the tests with python3-icalendar, which is not installed\n')
}

const python = (program: string, input: string): any => {
  const { stdout, stderr, status } = spawnSync(PYTHON, ['-c', program], { input })
  expect([status, stderr.toString()]).toEqual([0, ''])
  return JSON.parse(stdout.toString())
}

describe.skipIf(!hasPython)(
  'the library python3-icalendar exchanges calendar files with this service',
  () => {
    test('the library python3-icalendar can read a request, a cancellation and a reply that the service wrote', () => {
      const program = `
import sys, json, icalendar
calendar = icalendar.Calendar.from_ical(sys.stdin.buffer.read().decode())
event = calendar.walk('VEVENT')[0]
attendees = event['ATTENDEE'] if isinstance(event['ATTENDEE'], list) else [event['ATTENDEE']]
print(json.dumps({
  'method': str(calendar['METHOD']), 'uid': str(event['UID']), 'summary': str(event['SUMMARY']),
  'sequence': int(event['SEQUENCE']), 'start': event['DTSTART'].dt.isoformat(), 'rule': event['RRULE'].to_ical().decode() if 'RRULE' in event else None,
  'attendees': [[str(a), a.params.get('PARTSTAT'), a.params.get('CN')] for a in attendees]}))`
      expect(python(program, writeRequest(WRITTEN))).toEqual({
        method: 'REQUEST',
        uid: WRITTEN.uid,
        summary: WRITTEN.summary,
        sequence: 3,
        start: '2030-03-18T10:00:00+01:00',
        rule: 'FREQ=WEEKLY;COUNT=4;BYDAY=MO',
        attendees: [
          ['mailto:ada@example.com', 'NEEDS-ACTION', 'Doe, Ada'],
          ['mailto:bob@example.com', 'NEEDS-ACTION', null],
        ],
      })
      expect(python(program, writeCancellation(WRITTEN)).method).toBe('CANCEL')
      const answer = { ...WRITTEN, attendee: { address: 'ada@example.com', name: 'Ada' } }
      expect(
        python(program, writeAnswer({ ...answer, answer: 'tentative', comment: 'Perhaps' })),
      ).toMatchObject({
        method: 'REPLY',
        rule: null,
        attendees: [['mailto:ada@example.com', 'TENTATIVE', 'Ada']],
      })
    })

    test('the service can read a calendar file that the library python3-icalendar wrote', () => {
      const program = `
import json, icalendar, zoneinfo
from datetime import datetime
calendar = icalendar.Calendar()
for name, value in (('prodid', '-//x//'), ('version', '2.0'), ('method', 'REQUEST')): calendar.add(name, value)
event = icalendar.Event()
event.add('uid', 'python@example.com')
event.add('summary', 'Schlüssel, "drei"; viele')
event.add('dtstart', datetime(2030, 3, 18, 10, tzinfo=zoneinfo.ZoneInfo('Europe/Berlin')))
event.add('dtend', datetime(2030, 3, 18, 11, tzinfo=zoneinfo.ZoneInfo('Europe/Berlin')))
event.add('dtstamp', datetime(2030, 1, 1, tzinfo=zoneinfo.ZoneInfo('UTC')))
event.add('rrule', {'freq': 'monthly', 'byday': '3MO', 'count': 3})
event.add('organizer', 'mailto:ada@example.com')
calendar.add_component(event)
print(json.dumps(calendar.to_ical().decode()))`
      const [invite] = readCalendar(Buffer.from(python(program, '')), NOW_MS)
      expect(invite).toMatchObject({
        uid: 'python@example.com',
        summary: 'Schlüssel, "drei"; viele',
        // The Python library icalendar writes only the abbreviation of the time zone, so the service reads the name
        // CET.
        start: { at: '2030-03-18T09:00:00.000Z', zone: 'CET' },
        recurrence: {
          next: [
            '2030-03-18T09:00:00.000Z',
            '2030-04-15T08:00:00.000Z',
            '2030-05-20T08:00:00.000Z',
          ],
        },
      })
    })
  },
)

test('a calendar file of more than a million characters is refused, even if its first part is a complete calendar', async () => {
  const whole = Buffer.from(await bytesOf('google'))
  expect(readCalendar(whole, NOW_MS)).toHaveLength(1)
  const long = Buffer.concat([whole, Buffer.alloc(CALENDAR_MAX_CHARS, '\r\n')])
  expect(() => readCalendar(long, NOW_MS)).toThrow('too_large')
})
