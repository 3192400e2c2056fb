/** Tests each field that the service reads from a calendar file. */
import { describe, expect, test } from 'bun:test'
import { CALENDAR_MAX_CHARS, INVITES_MAX } from '../../../../shared/mail/calendar/invite.ts'
import { readCalendar } from '../../../../shared/mail/calendar/readCalendar.ts'
import { DocumentError } from '../../../../shared/mail/documents/document.ts'

const NOW = '2026-03-01T00:00:00.000Z'

const readText = (text: string) => readCalendar(new TextEncoder().encode(text), Date.parse(NOW))
const START = 'DTSTART:20260302T100000Z'
const event = (...lines: string[]) => ['BEGIN:VEVENT', ...lines, 'END:VEVENT'].join('\r\n')
const calendar = (...parts: string[]) => ['BEGIN:VCALENDAR', ...parts, 'END:VCALENDAR'].join('\r\n')
/** Reads a calendar that has one event with the given lines. */
const readAll = (...lines: string[]) => readText(calendar(event(...lines)))
const read = (...lines: string[]) => readAll('UID:u1', START, ...lines)[0]!
const codeOf = (text: string) => {
  try {
    readText(text)
  } catch (error) {
    return error instanceof DocumentError ? error.reason : error
  }
  return 'read'
}

test.each(['DURATION:-PT1H', 'DTEND:20260302T090000Z'])(
  'an event with the line %s ends at its start, because an event cannot end before its start',
  (line) => {
    expect(read(line).end).toEqual(read(line).start)
  },
)

describe('the service reads the events of a calendar file, and skips invalid events', () => {
  test('a file that is not a calendar is refused as malformed', () => {
    for (const text of ['', 'Hello', 'BEGIN:VCALENDAR', 'BEGIN:VCARD\r\nEND:VCARD']) {
      expect(codeOf(text)).toBe('malformed')
    }
    expect(codeOf(calendar())).toBe('read')
  })

  test('a calendar file may begin with a byte order mark and blank lines', () => {
    const text = calendar(event('UID:u1', START))
    expect(readText(`\ufeff${text}`)).toHaveLength(1)
    expect(readText(`\r\n\r\n${text}\r\n\r\n`)).toHaveLength(1)
  })

  test('a file may contain a calendar before or after a business card (vCard)', () => {
    const card = 'BEGIN:VCARD\r\nVERSION:3.0\r\nFN:Ada\r\nEND:VCARD'
    const text = calendar(event('UID:u1', START))
    for (const parts of [
      [card, text],
      [text, card],
      [card, text, card],
    ]) {
      expect(readText(parts.join('\r\n'))[0]!.start!.at).toBe('2026-03-02T10:00:00.000Z')
    }
  })

  test('a calendar file of a million characters or more is too large', () => {
    const text = calendar(event('UID:u1', START))
    expect(codeOf(text.padEnd(CALENDAR_MAX_CHARS - 1))).toBe('read')
    expect(codeOf(text.padEnd(CALENDAR_MAX_CHARS))).toBe('too_large')
  })

  test('a calendar file has the events of all its calendars, but at most twenty', () => {
    const one = (uid: string) => event(`UID:${uid}`, START)
    const uids = (text: string) => readText(text).map(({ uid }) => uid)
    expect(uids(`${calendar(one('a'), one('b'))}\r\n${calendar(one('c'))}`)).toEqual([
      'a',
      'b',
      'c',
    ])
    expect(uids(`BEGIN:X-OTHER\r\nEND:X-OTHER\r\n${calendar(one('a'))}`)).toEqual(['a'])
    const many = Array.from({ length: INVITES_MAX + 1 }, (_one, n) => one(`u${n}`))
    expect(uids(calendar(...many))).toHaveLength(INVITES_MAX)
  })

  test('the service skips an event without UID or start, and an event that cannot be parsed', () => {
    const good = event('UID:u1', START)
    for (const bad of [
      event(START),
      event('UID:', START),
      event('UID:u2'),
      event('UID:u2', 'DTSTART:soon'),
      event(`UID:${'u'.repeat(1_001)}`, START),
    ]) {
      expect(readText(calendar(bad, good)).map(({ uid }) => uid)).toEqual(['u1'])
    }
    expect(readAll(`UID:${'u'.repeat(1_000)}`, START)).toHaveLength(1)
  })
})

test('a reply or a cancellation may leave out the start of its event (RFC 5546 §3.2.3 and §3.2.5)', () => {
  for (const method of ['REPLY', 'CANCEL']) {
    expect(readText(calendar(`METHOD:${method}`, event('UID:u1', 'SEQUENCE:1')))).toMatchObject([
      { method, uid: 'u1', sequence: 1, start: null, end: null },
    ])
  }
  expect(readText(calendar('METHOD:REQUEST', event('UID:u1')))).toEqual([])
  expect(readText(calendar('METHOD:CANCEL', event('UID:u1', 'DTSTART:soon')))).toEqual([])
})

test.each([
  ['DTSTAMP:00000101T000000Z'],
  ['RECURRENCE-ID:00000101T000000Z'],
  ['DTSTART:00000101T000000Z'],
  ['DTSTART;TZID=Asia/Tokyo:00010101T000000'],
  ['DTSTART;TZID=America/New_York:99991231T235959'],
  ['DURATION:P500000W'],
])('an event with %s is skipped, because its year is not between 1 and 9999', (line) => {
  const start = line.startsWith('DTSTART') ? [] : [START]
  expect(readAll('UID:u1', ...start, line)).toEqual([])
})

test('an event in the years 1 and 9999 is read', () => {
  const [event] = readAll('UID:u1', 'DTSTART:00010101T000000Z', 'DTEND:99991231T235959Z')
  expect([event!.start!.at, event!.end!.at]).toEqual([
    '0001-01-01T00:00:00.000Z',
    '9999-12-31T23:59:59.000Z',
  ])
})

describe('the method and the status of an event come from the calendar file, or have default values', () => {
  const method = (...lines: string[]) => readText(calendar(...lines, event('UID:u1', START)))[0]!

  test('an event’s method is the file’s METHOD in any letter case, or PUBLISH if METHOD is missing or unknown', () => {
    expect(method('METHOD:REQUEST').method).toBe('REQUEST')
    expect(method('METHOD:reply').method).toBe('REPLY')
    expect(method('METHOD:DANCE').method).toBe('PUBLISH')
    expect(method().method).toBe('PUBLISH')
  })

  test('an event with the method CANCEL counts as cancelled, even without a STATUS', () => {
    expect(method('METHOD:CANCEL').status).toBe('cancelled')
    expect(method('METHOD:REQUEST').status).toBe('confirmed')
  })
})

test('an event’s status is its STATUS, or confirmed if STATUS is absent or unknown', () => {
  expect(read('STATUS:TENTATIVE').status).toBe('tentative')
  expect(read('STATUS:CANCELLED').status).toBe('cancelled')
  expect(read('STATUS:MAYBE').status).toBe('confirmed')
  expect(read().status).toBe('confirmed')
})

test('an event’s sequence is a whole number from 0 to 2147483647; a larger number counts as 2147483647, and any other value as 0', () => {
  expect(read('SEQUENCE:7').sequence).toBe(7)
  expect(read('SEQUENCE:0').sequence).toBe(0)
  expect(read('SEQUENCE:-1').sequence).toBe(0)
  expect(read('SEQUENCE:many').sequence).toBe(0)
  expect(read().sequence).toBe(0)
  expect(read('SEQUENCE:2147483647').sequence).toBe(2_147_483_647)
  expect(read('SEQUENCE:2147483648').sequence).toBe(2_147_483_647)
})

test('an event’s stamp is its DTSTAMP, or the time at which the service read the event', () => {
  expect(read('DTSTAMP:20260228T120000Z').stamp).toBe('2026-02-28T12:00:00.000Z')
  expect(read().stamp).toBe(NOW)
})

test('an instance of a recurring event is identified by its original start', () => {
  expect(read('RECURRENCE-ID;TZID=Europe/Berlin:20260302T100000').recurrenceId).toBe(
    '2026-03-02T09:00:00.000Z',
  )
  expect(read().recurrenceId).toBeNull()
})

describe('the service reads the text fields of an event without outer blanks, NUL characters and unusual line ends', () => {
  test('an empty text field of an event counts as absent', () => {
    expect(read()).toMatchObject({ summary: '', description: '', location: null, comment: null })
    expect(read('LOCATION: ', 'COMMENT: ')).toMatchObject({ location: null, comment: null })
  })

  test('a text field of an event is trimmed, and its lines end with LF', () => {
    expect(read('DESCRIPTION: a\\nb ', 'LOCATION: Pier 4 ', 'COMMENT: Late ')).toMatchObject({
      description: 'a\nb',
      location: 'Pier 4',
      comment: 'Late',
    })
    expect(read('DESCRIPTION:a\rb\\nc').description).toBe('a\nb\nc')
  })

  test('the title of an event is written on one line', () => {
    expect(read('SUMMARY:Tide\\n\\n  tables').summary).toBe('Tide tables')
  })

  test('NUL characters are removed from a text field of an event', () => {
    expect(read('SUMMARY:a\u0000b').summary).toBe('ab')
  })

  test.each([
    ['SUMMARY', 'summary', 1_000],
    ['LOCATION', 'location', 1_000],
    ['DESCRIPTION', 'description', 10_000],
    ['COMMENT', 'comment', 10_000],
  ] as const)(
    'if the text of %s in an event is too long, the service cuts it',
    (name, field, max) => {
      expect(read(`${name}:${'x'.repeat(max + 1)}`)[field]).toHaveLength(max)
    },
  )
})

describe('the meeting link of an event comes from its fields URL, LOCATION or DESCRIPTION', () => {
  test.each([
    'X-GOOGLE-CONFERENCE',
    'X-MICROSOFT-SKYPETEAMSMEETINGURL',
    'X-MICROSOFT-ONLINEMEETINGEXTERNALLINK',
    'CONFERENCE',
  ])('the meeting link of an event may be in the property %s', (name) => {
    expect(read(`${name}:https://rooms.example/7`).meetingLink).toBe('https://rooms.example/7')
  })

  test('the service looks for the meeting link of an event in URL, then LOCATION, then DESCRIPTION', () => {
    const texts = ['URL', 'LOCATION', 'DESCRIPTION'].map(
      (name, n) => `${name}:https://zoom.us/j/${n}`,
    )
    expect([0, 1, 2].map((n) => read(...texts.slice(n)).meetingLink)).toEqual([
      'https://zoom.us/j/0',
      'https://zoom.us/j/1',
      'https://zoom.us/j/2',
    ])
    expect(read().meetingLink).toBeNull()
  })
})

describe('each time of an event is read with its time zone, or as a date', () => {
  const times = (...lines: string[]) => readAll('UID:u1', ...lines)[0]!

  test('an event in a time zone has times with the exact instant, the local time and the zone', () => {
    expect(
      times('DTSTART;TZID=Europe/Berlin:20260302T100000', 'DTEND:20260302T100000Z'),
    ).toMatchObject({
      allDay: false,
      start: {
        at: '2026-03-02T09:00:00.000Z',
        local: '2026-03-02T10:00:00',
        zone: 'Europe/Berlin',
      },
      end: { at: '2026-03-02T10:00:00.000Z', local: '2026-03-02T10:00:00', zone: 'UTC' },
    })
  })

  test('the times of a whole-day event are dates without a time zone', () => {
    expect(times('DTSTART;VALUE=DATE;TZID=Europe/Berlin:20260302')).toMatchObject({
      allDay: true,
      start: { at: '2026-03-02T00:00:00.000Z', local: '2026-03-02', zone: null },
      end: { local: '2026-03-03', zone: null },
    })
  })

  test('an event without a time zone has times without a time zone', () => {
    expect(times('DTSTART:20260302T100000').start!.zone).toBeNull()
  })
})

describe('the recurrence of an event shows the recurrence rule and the start times of the next instances', () => {
  test('the recurrence of an event contains the recurrence rule and the start times of the next instances', () => {
    const { recurrence, source } = readAll(
      'UID:u1',
      'DTSTART:20260228T000000Z',
      'DTEND:20260301T120000Z',
      'RRULE:FREQ=DAILY;COUNT=3',
    )[0]!
    expect(recurrence).toEqual({
      rule: 'FREQ=DAILY;COUNT=3',
      next: ['2026-03-01T00:00:00.000Z', '2026-03-02T00:00:00.000Z'],
    })
    expect(source).toContain('RRULE:FREQ=DAILY;COUNT=3')
  })

  test('the recurrence of an event lists at most ten future starts, and not the start of an instance that is taking place', () => {
    expect(read('RRULE:FREQ=DAILY').recurrence!.next).toHaveLength(10)
    const running = readAll(
      'UID:u1',
      'DTSTART:20260228T230000Z',
      'DTEND:20260301T010000Z',
      'RRULE:FREQ=DAILY',
    )[0]!.recurrence!.next
    expect([running.length, running[0]]).toEqual([10, '2026-03-01T23:00:00.000Z'])
  })

  test('the recurrence of an event lists the start times of the instances in about the next five years', () => {
    const { next } = read('RRULE:FREQ=YEARLY').recurrence!
    expect(next.at(-1)).toBe('2031-03-02T10:00:00.000Z')
    const late = readAll('UID:u1', 'DTSTART:20260306T100000Z', 'RRULE:FREQ=YEARLY')[0]!
    expect(late.recurrence!.next.at(-1)).toBe('2030-03-06T10:00:00.000Z')
  })

  test('if an event has added times (RDATE) but no recurrence rule, its recurrence has an empty rule and lists the start times', () => {
    expect(read('RDATE:20260303T100000Z').recurrence).toEqual({
      rule: '',
      next: ['2026-03-02T10:00:00.000Z', '2026-03-03T10:00:00.000Z'],
    })
  })

  test('the recurrence of an event lists no starts if the event repeats every hour or more often', () => {
    const { recurrence, source } = read('RRULE:FREQ=HOURLY')
    expect([recurrence, source]).toEqual([{ rule: 'FREQ=HOURLY', next: [] }, null])
  })

  test('an event has no recurrence if it has neither a recurrence rule nor added times', () => {
    expect([read().recurrence, read().source]).toEqual([null, null])
  })
})

describe('a person of an event (organizer or attendee) is read with a mail address and a name', () => {
  const organizer = (text: string) => read(`ORGANIZER${text}`).organizer

  test('a person’s address comes from the mailto URI in any letter case, and a person’s name comes from CN', () => {
    expect(organizer(';CN=Mira:mailto:mira@a.example')).toEqual({
      address: 'mira@a.example',
      name: 'Mira',
    })
    expect(organizer(':MAILTO:mira@a.example')).toEqual({ address: 'mira@a.example', name: null })
    expect(organizer(';CN=" ":mailto:mira@a.example')!.name).toBeNull()
    expect(organizer(`;CN=${'n'.repeat(201)}:mailto:mira@a.example`)!.name).toHaveLength(200)
  })

  test('if the line of an organizer or attendee contains no mailto URI, the address comes from the parameter EMAIL', () => {
    expect(organizer(';EMAIL=mira@a.example:urn:uuid:1')!.address).toBe('mira@a.example')
    expect(organizer(';EMAIL=mira@a.example:mailto:cy@a.example')!.address).toBe('cy@a.example')
  })

  test('a person’s name is on one line, and a person’s address has no query part', () => {
    expect(organizer(';CN="Ada^nLink: https://evil.example":mailto:a@a.example')!.name).toBe(
      'Ada Link: https://evil.example',
    )
    expect(organizer(':mailto:mira@a.example?subject=x')!.address).toBe('mira@a.example')
    expect(organizer(';EMAIL="a@b.example^nx":urn:x')).toBeNull()
  })

  test('a person without a mail address, or with an address of more than 320 characters, is left out', () => {
    expect(organizer(':urn:uuid:1')).toBeNull()
    expect(organizer(':mailto:mira')).toBeNull()
    const address = (length: number) => 'mira@'.padEnd(length, 'a')
    expect(organizer(`:mailto:${address(320)}`)!.address).toHaveLength(320)
    expect(organizer(`:mailto:${address(321)}`)).toBeNull()
    expect(read().organizer).toBeNull()
  })

  test.each([
    ['a domain that grows in ASCII', (length: number) => `m@${'ü.'.repeat(length)}com`],
    ['a name that grows in lower case', (length: number) => `${'İ'.repeat(length)}@a.example`],
  ])(
    'a person whose stored address has more than 320 characters is skipped, because of %s',
    (_, address) => {
      const people = (given: string) => {
        const { organizer, attendees } = read(
          `ORGANIZER:mailto:${given}`,
          `ATTENDEE:mailto:${given}`,
          `ATTENDEE;EMAIL="${given}":urn:uuid:1`,
        )
        return [organizer, ...attendees].map((person) => person?.address)
      }
      expect(people(address(20))).toEqual([address(20), address(20), address(20)])
      expect(people(address(156)).filter((found) => found !== undefined)).toEqual([])
    },
  )
})

describe('the service reads the attendees of an event with their states and roles', () => {
  const attendee = (parameters: string) =>
    read(`ATTENDEE${parameters}:mailto:cy@a.example`).attendees[0]!

  test.each([
    ['', 'needs-action'],
    [';PARTSTAT=ACCEPTED', 'accepted'],
    [';PARTSTAT=declined', 'declined'],
    [';PARTSTAT=TENTATIVE', 'tentative'],
    [';PARTSTAT=DELEGATED', 'delegated'],
    [';PARTSTAT=ASLEEP', 'needs-action'],
  ])('an attendee with the parameter "%s" has the state %s', (parameters, state) => {
    expect(attendee(parameters).state).toBe(state as never)
  })

  test.each([
    ['', 'required'],
    [';ROLE=REQ-PARTICIPANT', 'required'],
    [';ROLE=opt-participant', 'optional'],
    [';ROLE=NON-PARTICIPANT', 'information'],
    [';ROLE=CHAIR', 'chair'],
    [';ROLE=constructor', 'required'],
  ])('an attendee with the parameter "%s" has the role %s', (parameters, role) => {
    expect(attendee(parameters).role).toBe(role as never)
  })

  test('an event has at most two hundred attendees, and attendees without a mail address are skipped', () => {
    const lines = Array.from({ length: 201 }, (_one, n) => `ATTENDEE:mailto:a${n}@a.example`)
    expect(read(...lines).attendees).toHaveLength(200)
    expect(read('ATTENDEE:urn:x', lines[0]!).attendees.map(({ address }) => address)).toEqual([
      'a0@a.example',
    ])
  })
})
