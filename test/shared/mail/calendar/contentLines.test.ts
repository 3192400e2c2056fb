/** Tests that the service reads lines of calendar files that violate RFC 5545, as other programs do. */
import { describe, expect, test } from 'bun:test'
import { readCalendar } from '../../../../shared/mail/calendar/readCalendar.ts'

const START = 'DTSTART:20260302T100000Z'
const calendar = (...lines: string[]) =>
  ['BEGIN:VCALENDAR', 'BEGIN:VEVENT', 'UID:u1', ...lines, 'END:VEVENT', 'END:VCALENDAR'].join(
    '\r\n',
  )
const readText = (text: string) =>
  readCalendar(new TextEncoder().encode(text), Date.parse('2026-03-01T00:00:00Z'))
const read = (...lines: string[]) => readText(calendar(...lines))[0]

describe('the service reads lines of a calendar file even if the sender folded or escaped the lines wrongly', () => {
  test('a line break that the sender did not escape becomes a line break in the value of the property', () => {
    const event = read(START, 'DESCRIPTION:Dear all', '', 'we meet at noon.', 'LOCATION:Room 1')
    expect(event).toMatchObject({ description: 'Dear all\nwe meet at noon.', location: 'Room 1' })
  })

  test('a folded line after an unescaped line break continues the text after the line break', () => {
    const event = read(START, 'DESCRIPTION:one', 'two th', ' ree')
    expect(event?.description).toBe('one\ntwo three')
  })

  test('the reader skips a line of a calendar file that is not a property, and reads the next line', () => {
    expect(read(START, 'some words', 'SUMMARY:Lunch')).toMatchObject({
      summary: 'Lunch',
      start: { at: '2026-03-02T10:00:00.000Z' },
    })
  })

  test.each([
    ['CR', '\r'],
    ['LF', '\n'],
    ['CR CR LF', '\r\r\n'],
    ['a space before CR LF', ' \r\n'],
  ])('the lines of a calendar file may end with %s', (_, end) => {
    const text = calendar(START, 'SUMMARY:Lunch').replaceAll('\r\n', end)
    expect(readText(text)[0]).toMatchObject({
      summary: 'Lunch',
      start: { at: '2026-03-02T10:00:00.000Z' },
    })
  })

  test('an attendee whose quoted name has no closing quote is read', () => {
    expect(read(START, 'ATTENDEE;CN="Ada L:mailto:ada@example.com')?.attendees).toMatchObject([
      { address: 'ada@example.com', name: 'Ada L' },
    ])
  })

  test('an attendee line that cannot be read is left out, and the event keeps its other attendees', () => {
    const event = read(START, 'ATTENDEE;RSVP:mailto:a@example.com', 'ATTENDEE:mailto:b@example.com')
    expect(event?.attendees).toMatchObject([{ address: 'b@example.com' }])
  })

  test.each(['RRULE:FREQ=SOMETIMES', 'RECURRENCE-ID;X:20260302T100000Z', 'STATUS;X:CANCELLED'])(
    'a file whose line %s cannot be read is malformed, because without the line the event would be another event',
    (line) => {
      expect(() => read(START, line)).toThrow('malformed')
    },
  )
})

describe('the service reads calendar dates and times that lack the parameter VALUE=DATE or a part of the time', () => {
  test.each(['DTSTART:20260302', 'DTSTART:2026-03-02', 'dtstart:20260302 '])(
    'the line %s is a whole day without VALUE=DATE',
    (line) => {
      expect(read(line, 'DTEND:20260304')).toMatchObject({
        allDay: true,
        start: { local: '2026-03-02' },
        end: { local: '2026-03-04' },
      })
    },
  )

  test.each([
    'DTSTART:20260302T1000Z',
    'DTSTART:2026-03-02T10:00:00Z',
    'DTSTART:2026-03-02T10:00Z',
    'DTSTART;TZID=Europe/Berlin:2026-03-02T11:00:00',
    'DTSTART;TZID="Europe/Berlin":20260302T1100',
  ])('the line %s is read as 10:00 in UTC', (line) => {
    expect(read(line)).toMatchObject({ allDay: false, start: { at: '2026-03-02T10:00:00.000Z' } })
  })

  test('a day that EXDATE excludes from a series of whole days is left out even if the EXDATE line lacks VALUE=DATE', () => {
    const event = read('DTSTART:20260302', 'RRULE:FREQ=DAILY;COUNT=3', 'EXDATE:20260303')
    expect(event?.recurrence?.next).toEqual([
      '2026-03-02T00:00:00.000Z',
      '2026-03-04T00:00:00.000Z',
    ])
  })

  test('a day that EXDATE excludes from a series of timed events is left out even if the EXDATE line lacks VALUE=DATE', () => {
    const event = read(START, 'RRULE:FREQ=DAILY;COUNT=3', 'EXDATE:20260303')
    expect(event?.recurrence).toMatchObject({
      rule: 'FREQ=DAILY;COUNT=3',
      next: ['2026-03-02T10:00:00.000Z', '2026-03-04T10:00:00.000Z'],
    })
  })
})
