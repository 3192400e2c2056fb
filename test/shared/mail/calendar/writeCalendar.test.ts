/** Tests each field of the calendar files that the service writes and sends. */
import { describe, expect, test } from 'bun:test'
import ical, { type VEvent } from 'node-ical'
import {
  isRule,
  isWritableZone,
  type WrittenEvent,
  writeAnswer,
  writeCancellation,
  writeRequest,
} from '../../../../shared/mail/calendar/writeCalendar.ts'

const ORGANIZER = { address: 'mira@a.example', name: 'Mira' }
const utc = (hour: string) => ({ local: `2026-03-02T${hour}:00:00`, zone: null })
const berlin = (hour: string) => ({ local: `2026-03-02T${hour}:00:00`, zone: 'Europe/Berlin' })

const event = (given: Partial<WrittenEvent> = {}): WrittenEvent => ({
  uid: 'u1@a.example',
  sequence: 3,
  stamp: new Date('2026-03-01T12:00:00.999Z'),
  summary: 'Tide tables',
  start: utc('10'),
  end: utc('11'),
  recurrenceId: null,
  organizer: ORGANIZER,
  description: '',
  location: null,
  url: null,
  rule: null,
  attendees: [],
  ...given,
})

/** Returns the unfolded lines of a calendar file, without the definitions of time zones. */
const linesOf = (file: string): string[] =>
  file
    .replaceAll('\r\n ', '')
    .replace(/BEGIN:VTIMEZONE[\s\S]*END:VTIMEZONE\r\n/, '')
    .split('\r\n')
const request = (given: Partial<WrittenEvent> = {}) => linesOf(writeRequest(event(given)))
const zonesOf = (given: Partial<WrittenEvent>) =>
  [...writeRequest(event(given)).matchAll(/^TZID:(.*)\r$/gm)].map(([, name]) => name)
/** Returns the lines of an invitation that begin with the given property name. */
const lines = (name: string, given: Partial<WrittenEvent>) =>
  request(given).filter((line) => line.startsWith(name))

/**
 * Holds a text with all kinds of line ends and control characters. The constant `PLAIN` holds what another calendar
 * program should read from this text.
 */
const MIXED = 'a\r\nb\rc\u2028d\u2029e\u0085f\tg\0\v\u007fh'
const PLAIN = 'a\nb\nc\nd\ne\nf\tgh'
/** Matches a line end that is not CRLF, and each control character except tab. */
const STRAY = /\r(?!\n)|(?<!\r)\n|[\u2028\u2029]|(?![\r\n\t])\p{Cc}/u
/** Reads the event of a calendar file with the library node-ical. */
const readByOthers = (file: string) =>
  Object.values(ical.sync.parseICS(file)).find((one): one is VEvent => one?.type === 'VEVENT')

describe('an invitation that the service writes (REQUEST) contains the event and its attendees', () => {
  test('an invitation file has the method, the fields of the event and the status', () => {
    expect(request()).toEqual([
      'BEGIN:VCALENDAR',
      'PRODID:-//Purser//Purser//EN',
      'VERSION:2.0',
      'METHOD:REQUEST',
      'BEGIN:VEVENT',
      'UID:u1@a.example',
      'DTSTAMP:20260301T120000Z',
      'SEQUENCE:3',
      'DTSTART:20260302T100000Z',
      'DTEND:20260302T110000Z',
      'SUMMARY:Tide tables',
      'ORGANIZER;CN=Mira:mailto:mira@a.example',
      'STATUS:CONFIRMED',
      'TRANSP:OPAQUE',
      'END:VEVENT',
      'END:VCALENDAR',
      '',
    ])
  })

  test('an invitation file has a description, a place, a link or a recurrence rule only if the caller gives it', () => {
    const given = {
      description: 'Bring; charts',
      location: 'Pier 4',
      url: 'https://a.example/1',
      rule: 'FREQ=WEEKLY;COUNT=3',
    }
    expect(request(given)).toEqual(
      expect.arrayContaining([
        'DESCRIPTION:Bring\\; charts',
        'LOCATION:Pier 4',
        'URL:https://a.example/1',
        'RRULE:FREQ=WEEKLY;COUNT=3',
      ]),
    )
  })

  test('an invitation file names each attendee with a role, and asks each attendee for a reply', () => {
    const attendees = (['required', 'optional', 'chair', 'information'] as const).map((role) => ({
      address: `${role}@a.example`,
      name: null,
      role,
    }))
    const rest = 'PARTSTAT=NEEDS-ACTION;RSVP=TRUE:mailto:'
    expect(lines('ATTENDEE', { attendees })).toEqual([
      `ATTENDEE;ROLE=REQ-PARTICIPANT;${rest}required@a.example`,
      `ATTENDEE;ROLE=OPT-PARTICIPANT;${rest}optional@a.example`,
      `ATTENDEE;ROLE=CHAIR;${rest}chair@a.example`,
      `ATTENDEE;ROLE=NON-PARTICIPANT;${rest}information@a.example`,
    ])
  })

  test('an invitation file may name one instance of a recurring event', () => {
    expect(lines('RECURRENCE-ID', { recurrenceId: utc('09') })).toEqual([
      'RECURRENCE-ID:20260302T090000Z',
    ])
  })
})

describe('texts of the caller cannot add lines or parameters to a calendar file', () => {
  test('a text of the caller cannot add a line to the calendar file', () => {
    const given = { summary: 'a\r\nX-ONE:1', description: 'b\nX-TWO:2', location: 'c\nX-THREE:3' }
    expect(lines('X-', given)).toEqual([])
    const organizer = { address: 'mira@a.example', name: 'Mira\r\nATTENDEE:mailto:x@a.example' }
    expect(lines('ATTENDEE', { organizer })).toEqual([])
  })

  test('each line end in a text of the caller becomes a newline, and other control characters disappear', () => {
    const given = { summary: MIXED, description: MIXED, location: MIXED }
    const file = writeRequest(event(given))
    expect(file).not.toMatch(STRAY)
    expect(readByOthers(file)).toMatchObject({
      summary: PLAIN,
      description: PLAIN,
      location: PLAIN,
    })
  })

  test('an identifier, a link, a name or an address cannot add a line that ends with a bare CR', () => {
    const text = 'a\r\nX-ONE:1\rX-TWO:2\nX-THREE:3\u2028X-FOUR:4\0'
    const organizer = { address: `${text}@a.example`, name: text }
    const attendees = [{ ...organizer, role: 'required' as const }]
    const file = writeRequest(event({ uid: text, url: `https://${text}`, organizer, attendees }))
    expect(file).not.toMatch(STRAY)
    expect(linesOf(file).filter((line) => line.startsWith('X-'))).toEqual([])
  })

  test('a text of the caller cannot add a parameter to the line with a person’s name', () => {
    const organizer = { address: 'mira@a.example', name: 'M";X=1:"y' }
    expect(lines('ORGANIZER', { organizer })).toEqual([
      `ORGANIZER;CN="M';X=1:'y":mailto:mira@a.example`,
    ])
  })
})

describe('the service writes each time into a calendar file with its time zone, in UTC or as a date', () => {
  test('a time with a time zone names the zone, and the calendar file defines each zone only once', () => {
    const given = { start: berlin('10'), end: berlin('11') }
    expect(lines('DTSTART', given)).toEqual(['DTSTART;TZID=Europe/Berlin:20260302T100000'])
    expect(zonesOf(given)).toEqual(['Europe/Berlin'])
    const end = { local: '2026-03-02T11:00:00', zone: 'Europe/London' }
    expect(zonesOf({ start: berlin('10'), end })).toEqual(['Europe/Berlin', 'Europe/London'])
  })

  test('a time without a time zone is written in UTC, and the calendar file defines no zone for it', () => {
    expect(zonesOf({})).toEqual([])
  })

  test('if the definition of a time zone is unknown, a time in this zone still names the zone', () => {
    const given = { start: { local: '2026-03-02T10:00:00', zone: 'Nowhere/Else' } }
    expect(lines('DTSTART', given)).toEqual(['DTSTART;TZID=Nowhere/Else:20260302T100000'])
    expect(zonesOf(given)).toEqual([])
  })

  test('a whole-day time is written as a date without a time zone', () => {
    const start = { local: '2026-03-02', zone: 'Europe/Berlin' }
    expect(lines('DTSTART', { start })).toEqual(['DTSTART;VALUE=DATE:20260302'])
    expect(lines('DTSTART', { start: { ...start, zone: null } })).toEqual([
      'DTSTART;VALUE=DATE:20260302',
    ])
  })
})

test('a cancellation of an event has the method CANCEL and the status cancelled', () => {
  const file = linesOf(writeCancellation(event({ start: berlin('10'), end: berlin('11') })))
  expect(file).toContain('METHOD:CANCEL')
  expect(file.filter((line) => line.startsWith('STATUS'))).toEqual(['STATUS:CANCELLED'])
  expect(writeCancellation(event({ start: berlin('10') }))).toContain('TZID:Europe/Berlin')
})

describe('a reply to an invitation contains the answer of one attendee', () => {
  const { description, location, url, rule, attendees, ...described } = event({
    start: berlin('10'),
    end: berlin('11'),
  })
  const answer = (comment: string | null) =>
    writeAnswer({
      ...described,
      attendee: { address: 'cy@a.example', name: 'Cy' },
      answer: 'tentative',
      comment,
    })

  test('a reply names only one attendee, with the answer, and has neither a status nor a description', () => {
    const file = linesOf(answer(null))
    expect(file).toContain('METHOD:REPLY')
    expect(file).toContain('ATTENDEE;CN=Cy;PARTSTAT=TENTATIVE:mailto:cy@a.example')
    expect(file.join()).not.toMatch(/STATUS:|DESCRIPTION|COMMENT/)
    expect(answer(null)).toContain('TZID:Europe/Berlin')
  })

  test('a reply contains the comment of the attendee', () => {
    expect(linesOf(answer('Late, sorry'))).toContain('COMMENT:Late\\, sorry')
  })

  test('each line end in the comment of a reply to an invitation becomes a newline, and other control characters disappear', () => {
    expect(answer(MIXED)).not.toMatch(STRAY)
    expect(readByOthers(answer(MIXED))).toMatchObject({ comment: PLAIN })
  })
})

test('the service accepts a time zone for a calendar file only if its time zone library defines the zone', () => {
  expect(isWritableZone('Europe/Berlin')).toBe(true)
  expect(isWritableZone('Europe/Atlantis')).toBe(false)
})

describe('the service refuses to send a recurrence rule that is malformed or recurs more often than once a day', () => {
  test.each([
    'FREQ=DAILY',
    'FREQ=WEEKLY;COUNT=10',
    'FREQ=MONTHLY;BYDAY=1MO,-1FR;BYSETPOS=-1',
    'FREQ=YEARLY;UNTIL=20301231T235959Z',
  ])('an event with the recurrence rule %s can be sent', (rule) => {
    expect(isRule(rule)).toBe(true)
  })

  test.each([
    '',
    'FREQ=HOURLY',
    'FREQ=SECONDLY',
    'freq=daily',
    'COUNT=10',
    'COUNT=1;FREQ=DAILY',
    ' FREQ=DAILY',
    'FREQ=DAILY;',
    'FREQ=DAILY;FREQ=SECONDLY',
    'FREQ=DAILY;COUNT=0',
    'FREQ=DAILY;COUNT=-5',
    'FREQ=DAILY;INTERVAL=0',
    'FREQ=DAILY;COUNT=2;UNTIL=20310101T000000Z',
    'FREQ=DAILY;BYHOUR=0,1',
    'FREQ=DAILY;BYSECOND=1',
    'FREQ=DAILY;RSCALE=GREGORIAN',
    'FREQ=DAILY;COUNT=',
    'FREQ=DAILY;=1',
    'FREQ=DAILY;COUNT=1\r\nATTENDEE:x',
    'FREQ=DAILY;UNTIL=2',
    'FREQ=DAILY;BYMONTH=13',
  ])('an event with the recurrence rule %j cannot be sent', (rule) => {
    expect(isRule(rule)).toBe(false)
  })
})
