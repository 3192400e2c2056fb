/**
 * Tests how the service reads the event in a send request, and writes it as an invitation, a change or a cancellation.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { Value } from '@sinclair/typebox/value'
import { ApiError } from '../../../../api/http/errors.ts'
import { EventInput, invitationOf } from '../../../../api/mail/calendar/eventInput.ts'
import { writeOwnEvents } from '../../../../sql/mail/calendar/ownEvents.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { newProject } from '../../../support/till/tillRows.ts'

const MAIL = {
  ...{ from: 'host@agents.example', subject: 'Cargo review', text: 'We look at the cargo.' },
  ...{
    to: [{ address: 'ada@example.com', name: 'Ada' }],
    cc: [{ address: 'bob@example.com', name: null }],
  },
}
const TIMES = { start: '2030-03-04T10:00:00', end: '2030-03-04T10:30:00', zone: 'Europe/Berlin' }
const SERIES = { ...TIMES, rule: 'FREQ=WEEKLY;COUNT=10' }

let database: TestDatabase
let projectId: string
beforeAll(async () => {
  database = await createTestDatabase()
  projectId = await newProject(database.pool)
})
afterAll(() => database[Symbol.asyncDispose]())

/**
 * Writes the invitation of a mail, and stores the change of its event. Returns the invitation with the lines of its
 * calendar file.
 */
async function written(input: EventInput, mail: Partial<typeof MAIL> = {}, project = projectId) {
  const services = { pool: database.pool } as never
  const whole = { ...MAIL, ...mail }
  const { attachment, shown, change } = await invitationOf(services, project, input, whole)
  await writeOwnEvents(database.pool, [{ projectId: project, ownEvent: change, sendAt: null }])
  const text = attachment.content.toString().replaceAll('\r\n ', '')
  const event = text.slice(text.indexOf('BEGIN:VEVENT'))
  return {
    ...{ attachment, text, lines: event.split('\r\n'), ...shown },
    /** Returns the lines of the calendar event for the properties with the given names. */
    of: (...names: string[]) =>
      event.split('\r\n').filter((line) => names.includes(/^[A-Z-]*/.exec(line)![0])),
  }
}

/** Returns the status and the text of the error with which the service refuses an event. */
async function faultOf(input: EventInput, project = projectId): Promise<string> {
  try {
    await written(input, {}, project)
  } catch (error) {
    if (error instanceof ApiError) return `${error.status} ${error.message}`
    throw error
  }
  throw new Error('the event was written')
}

describe('if a mail contains a new event, the service writes the event into an invitation file', () => {
  test('a new event gets a new UID at the sender’s domain, and is written into an invitation file', async () => {
    const first = await written(TIMES)
    expect(first.uid).toMatch(/^[0-9a-f]{32}@agents\.example$/)
    expect((await written(TIMES)).uid).not.toBe(first.uid)
    expect(first.sequence).toBe(0)
    expect(first.attachment).toMatchObject({
      ...{ filename: 'invite.ics', contentId: null },
      contentType: 'text/calendar; charset=utf-8; method=REQUEST',
    })
    expect(first.text).toContain('METHOD:REQUEST\r\n')
    expect(first.of('UID', 'SEQUENCE', 'STATUS')).toEqual([
      ...[`UID:${first.uid}`, 'SEQUENCE:0', 'STATUS:CONFIRMED'],
    ])
  })

  test('the sender of the mail is the organizer of the event, and the recipients are the attendees', async () => {
    const { of } = await written(TIMES)
    const [organizer, required, optional, ...more] = of('ORGANIZER', 'ATTENDEE')
    expect(organizer).toBe('ORGANIZER:mailto:host@agents.example')
    expect(required).toContain('ROLE=REQ-PARTICIPANT')
    expect(required).toEndWith(':mailto:ada@example.com')
    expect(optional).toContain('ROLE=OPT-PARTICIPANT')
    expect(optional).toEndWith(':mailto:bob@example.com')
    expect(more).toEqual([])
  })

  test('an event gets its title from the subject of the mail, and its description from the text of the mail', async () => {
    const plain = await written(TIMES)
    expect(plain.of('SUMMARY', 'DESCRIPTION', 'LOCATION', 'URL', 'RRULE')).toEqual([
      ...['SUMMARY:Cargo review', 'DESCRIPTION:We look at the cargo.'],
    ])
    const own = { summary: 'Review', description: 'Bring boots.', location: 'Room 2' }
    const full = await written({ ...SERIES, ...own, url: 'https://meet.example/1' })
    expect(full.of('SUMMARY', 'DESCRIPTION', 'LOCATION', 'URL', 'RRULE').sort()).toEqual([
      ...['DESCRIPTION:Bring boots.', 'LOCATION:Room 2', 'RRULE:FREQ=WEEKLY;COUNT=10'],
      ...['SUMMARY:Review', 'URL:https://meet.example/1'],
    ])
    const bare = await written({ ...TIMES, description: '' })
    expect(bare.of('DESCRIPTION')).toEqual([])
  })

  test('the description of an event has at most 10,000 characters, and half a surrogate pair at the cut is replaced', async () => {
    const lengthOf = async (text: string) =>
      (await written(TIMES, { text })).of('DESCRIPTION')[0]!.length - 'DESCRIPTION:'.length
    expect(await lengthOf('x'.repeat(10_001))).toBe(10_000)
    const { of } = await written(TIMES, { text: `${'x'.repeat(9_999)}😀` })
    expect(of('DESCRIPTION')[0]).toEndWith('x\ufffd')
  })

  test('a request for a new event is refused without the start or the end of the event', async () => {
    expect(await faultOf({ end: TIMES.end, zone: TIMES.zone })).toBe('400 event.start is required')
    expect(await faultOf({ start: TIMES.start, zone: TIMES.zone })).toBe(
      '400 event.end is required',
    )
  })

  test('a cancellation or a change of an instance is refused if it does not name the event by its UID', async () => {
    const fault = '400 event.uid must name the event that is cancelled, or whose instance changes'
    expect(await faultOf({ cancel: true })).toBe(fault)
    expect(await faultOf({ ...TIMES, cancel: true })).toBe(fault)
    expect(await faultOf({ ...TIMES, recurrenceId: '2030-03-04T09:00:00Z' })).toBe(fault)
  })
})

describe('the service accepts an event time as a local time, a time with a UTC offset, or a date, and refuses any other form', () => {
  const timesOf = async (input: EventInput) => (await written(input)).of('DTSTART', 'DTEND')

  test('an event time may be a local time with a time zone, with or without seconds', async () => {
    const local = [
      'DTSTART;TZID=Europe/Berlin:20300304T100000',
      'DTEND;TZID=Europe/Berlin:20300304T103001',
    ]
    expect(
      await timesOf({ ...TIMES, start: '2030-03-04T10:00', end: '2030-03-04T10:30:01' }),
    ).toEqual(local)
    expect((await written(TIMES)).text).toContain('BEGIN:VTIMEZONE\r\nTZID:Europe/Berlin')
  })

  test('an event time may be a local time with the time zone UTC', async () => {
    expect(await timesOf({ ...TIMES, zone: 'UTC' })).toEqual([
      ...['DTSTART:20300304T100000Z', 'DTEND:20300304T103000Z'],
    ])
  })

  test('the year of an event time has four digits, even after the time is converted to the event’s time zone', async () => {
    const times = [
      { start: '0999-12-31', end: '2030-03-05' },
      { start: '0000-01-01', end: '2030-03-05' },
      { start: '9999-12-31T22:00:00Z', end: '9999-12-31T23:00:00Z', zone: 'Pacific/Kiritimati' },
    ]
    for (const input of times) {
      expect(await faultOf(input)).toStartWith('400 event.start must be a date,')
    }
  })

  test('an event time may have a UTC offset, and the invitation states this time in the event’s time zone or in UTC', async () => {
    const given = { start: '2030-03-04T09:00:00Z', end: '2030-03-04T10:30:00+01:00' }
    expect(await timesOf(given)).toEqual(['DTSTART:20300304T090000Z', 'DTEND:20300304T093000Z'])
    for (const zone of ['UTC', 'Etc/UTC', 'GMT']) {
      expect(await timesOf({ ...given, zone })).toEqual(await timesOf(given))
    }
    expect(await timesOf({ ...given, zone: 'Asia/Tokyo' })).toEqual([
      ...['DTSTART;TZID=Asia/Tokyo:20300304T180000', 'DTEND;TZID=Asia/Tokyo:20300304T183000'],
    ])
  })

  test('an event time may be a date for a whole-day event, even if the event has a time zone', async () => {
    for (const zone of [undefined, 'Europe/Berlin']) {
      const input = {
        start: '2030-03-04',
        end: '2030-03-05',
        ...(zone === undefined ? {} : { zone }),
      }
      expect(await timesOf(input)).toEqual([
        ...['DTSTART;VALUE=DATE:20300304', 'DTEND;VALUE=DATE:20300305'],
      ])
    }
  })

  test('an event time is refused if its form is neither a date nor a date and time', async () => {
    for (const time of [
      ...['', 'tomorrow', '2030-02-30', '2030-13-01', '2030-03-04T24:00:00', '2030-03-04T10'],
      ...['2030-02-30T10:00:00', '2030-03-04T10:60', '2030-02-30T10:00:00Z', '2030-03-04 10:00'],
      ...['2030-03-04T10:00:00.5', '20300304', ' 2030-03-04', '2030-03-04\n'],
    ]) {
      expect([time, await faultOf({ ...TIMES, start: time })]).toEqual([
        time,
        '400 event.start must be a date, an ISO 8601 time with a zone, or one without beside event.zone',
      ])
    }
    const { zone: _, ...local } = TIMES
    expect(await faultOf({ ...local, start: '2030-03-04T08:00:00Z' })).toBe(
      '400 event.end must be a date, an ISO 8601 time with a zone, or one without beside event.zone',
    )
  })

  test('an event must end after its start, both compared in the event’s time zone', async () => {
    const fault = '400 event.end must be after event.start'
    const { start } = TIMES
    expect(await faultOf({ ...TIMES, end: start })).toBe(fault)
    expect(await faultOf({ ...TIMES, end: '2030-03-04T09:59:59' })).toBe(fault)
    expect(await faultOf({ start: '2030-03-04', end: '2030-03-04' })).toBe(fault)
    expect(await timesOf({ ...TIMES, end: '2030-03-04T10:00:01' })).toHaveLength(2)
    // At 3:00 the clock in Berlin goes back to 2:00. Therefore 2:30 in summer time is earlier than 2:15 in winter time.
    const autumn = { start: '2030-10-27T02:30:00', end: '2030-10-27T02:15:00+01:00' }
    expect(await faultOf({ ...TIMES, ...autumn })).toBe(fault)
  })

  test('if the start of an event is a date, the end must be a date; otherwise the end must be a time', async () => {
    const fault = '400 event.end must be a date exactly where event.start is one'
    expect(await faultOf({ ...TIMES, end: '2030-03-05' })).toBe(fault)
    expect(await faultOf({ ...TIMES, start: '2030-03-03' })).toBe(fault)
  })

  test('the time zone of an event must be an IANA time zone', async () => {
    for (const zone of ['Berlin', '', 'Europe/Nowhere', '+01:00', 'US/Pacific-New']) {
      expect([zone, await faultOf({ ...TIMES, zone })]).toEqual([
        zone,
        '400 event.zone must be an IANA time zone, such as Europe/Berlin',
      ])
    }
  })
})

describe('the service refuses an event with a malformed recurrence rule or URL', () => {
  test('the recurrence rule and the URL of an event are refused if they are malformed', async () => {
    for (const rule of ['weekly', 'FREQ=HOURLY', 'FREQ=DAILY;COUNT=0', 'COUNT=3;FREQ=DAILY']) {
      expect(await faultOf({ ...TIMES, rule })).toBe(
        '400 event.rule must be a recurrence rule, such as FREQ=WEEKLY;COUNT=10',
      )
    }
    for (const url of ['http://meet.example/', 'meet.example', 'mailto:a@example.com']) {
      expect(await faultOf({ ...TIMES, url })).toBe('400 event.url must be an https URL')
    }
    const { uid } = await written(SERIES)
    expect(await faultOf({ ...SERIES, uid, recurrenceId: '2030-03-11T09:00:00Z' })).toBe(
      '400 event.rule must be absent beside event.recurrenceId',
    )
  })

  test('an event’s recurrence rule and URL must each be one line, of at most 500 and 900 characters respectively', () => {
    const fits = (input: object) => Value.Check(EventInput, input)
    for (const [field, most] of [
      ['rule', 500],
      ['url', 900],
    ] as const) {
      expect(fits({ [field]: 'x'.repeat(most) })).toBe(true)
      for (const text of ['', 'x'.repeat(most + 1), 'a\nb', 'a\x7f']) {
        expect([field, text, fits({ [field]: text })]).toEqual([field, text, false])
      }
    }
    expect(fits({ start: 'x'.repeat(40), uid: 'x' })).toBe(true)
    expect(fits({ start: 'x'.repeat(41) })).toBe(false)
    expect(fits({ uid: '' })).toBe(false)
  })
})

describe('a send request with the UID of an earlier event changes or cancels this event', () => {
  test('each change and the cancellation of an event get the next sequence number', async () => {
    const { uid } = await written(TIMES)
    const moved = await written({ ...TIMES, uid, end: '2030-03-04T11:00:00' })
    expect([moved.uid, moved.sequence]).toEqual([uid, 1])
    expect(moved.of('SEQUENCE', 'DTEND')).toContain('DTEND;TZID=Europe/Berlin:20300304T110000')
    const gone = await written({ uid, cancel: true })
    expect(gone.sequence).toBe(2)
    expect(gone.attachment).toMatchObject({
      ...{ filename: 'cancel.ics', contentType: 'text/calendar; charset=utf-8; method=CANCEL' },
    })
    expect(gone.text).toContain('METHOD:CANCEL\r\n')
    expect(gone.of('STATUS', 'DTEND', 'SUMMARY', 'RECURRENCE-ID').sort()).toEqual([
      'DTEND;TZID=Europe/Berlin:20300304T110000',
      ...['STATUS:CANCELLED', 'SUMMARY:Cargo review'],
    ])
  })

  test('an event cannot be found from another project, or by a wrong UID', async () => {
    const { uid } = await written(TIMES)
    const other = await newProject(database.pool)
    for (const input of [
      { ...TIMES, uid },
      { uid, cancel: true },
    ]) {
      expect(await faultOf(input, other)).toBe('404 Event not found')
    }
    expect(await faultOf({ ...TIMES, uid: `${uid}2` })).toBe('404 Event not found')
    expect((await written({ ...TIMES, uid })).sequence).toBe(1)
  })

  test('the cancellation of a whole series contains the recurrence rule of the event', async () => {
    const { uid } = await written(SERIES)
    const { of } = await written({ uid, cancel: true })
    expect(of('RRULE', 'RECURRENCE-ID')).toEqual(['RRULE:FREQ=WEEKLY;COUNT=10'])
  })
})

describe('a mail that names one instance of a recurring event changes or cancels only this instance', () => {
  test('the cancellation of one instance uses the time zone of the recurring event, and omits the recurrence rule', async () => {
    const { uid } = await written(SERIES)
    const { of, sequence } = await written({
      uid,
      cancel: true,
      recurrenceId: '2030-03-11T09:00:00Z',
    })
    expect(sequence).toBe(1)
    const at = ';TZID=Europe/Berlin:20300311T100000'
    expect(of('RECURRENCE-ID', 'DTSTART', 'DTEND', 'RRULE').sort()).toEqual([
      ...[`DTEND${at}`, `DTSTART${at}`, `RECURRENCE-ID${at}`],
    ])
  })

  test('a change of one instance leaves all other instances of the series unchanged', async () => {
    const { uid } = await written(SERIES)
    const moved = { ...TIMES, start: '2030-03-12T10:00:00', end: '2030-03-12T11:00:00' }
    const change = await written({ ...moved, uid, recurrenceId: '2030-03-11T09:00:00Z' })
    expect(change.of('RECURRENCE-ID', 'DTSTART', 'RRULE').sort()).toEqual([
      'DTSTART;TZID=Europe/Berlin:20300312T100000',
      'RECURRENCE-ID;TZID=Europe/Berlin:20300311T100000',
    ])
    const { of } = await written({ uid, cancel: true })
    expect(of('DTSTART', 'RRULE')).toEqual([
      ...['DTSTART;TZID=Europe/Berlin:20300304T100000', 'RRULE:FREQ=WEEKLY;COUNT=10'],
    ])
  })

  test('an instance is named by its date if the recurring event is whole-day, and by its UTC time if the event has no time zone', async () => {
    const days = await written({ start: '2030-03-04', end: '2030-03-05', rule: SERIES.rule })
    for (const recurrenceId of ['2030-03-11', '2030-03-11T00:00:00Z']) {
      const { of } = await written({ uid: days.uid, cancel: true, recurrenceId })
      expect(of('RECURRENCE-ID')).toEqual(['RECURRENCE-ID;VALUE=DATE:20300311'])
    }
    const utc = { start: '2030-03-04T09:00:00Z', end: '2030-03-04T10:00:00Z', rule: SERIES.rule }
    const { uid } = await written(utc)
    const { of } = await written({ uid, cancel: true, recurrenceId: '2030-03-11T10:00:00+01:00' })
    expect(of('RECURRENCE-ID')).toEqual(['RECURRENCE-ID:20300311T090000Z'])
  })

  const NO_INSTANCE =
    '400 event.recurrenceId must be the first planned start of an instance of the series'
  const FIRST = { summary: 'First', ...TIMES }

  test('a time or a date that is no instance of the series is refused, and the series stays unchanged', async () => {
    const { uid } = await written({ ...SERIES, rule: 'FREQ=WEEKLY;COUNT=3' })
    for (const recurrenceId of [
      ...['2030-03-12', '2030-03-12T09:00:00Z', '2030-03-11T10:00:00Z', '2030-02-25T09:00:00Z'],
      ...['2030-03-25T09:00:00Z', '2031-03-10T09:00:00Z', '9999-12-31T23:59:59Z'],
    ]) {
      expect([recurrenceId, await faultOf({ uid, cancel: true, recurrenceId })]).toEqual([
        ...[recurrenceId, NO_INSTANCE],
      ])
      expect(await faultOf({ ...FIRST, uid, recurrenceId })).toBe(NO_INSTANCE)
    }
    const last = await written({ uid, cancel: true, recurrenceId: '2030-03-18T09:00:00Z' })
    expect(last.sequence).toBe(1)
  })

  test('an instance of an endless series is accepted up to the year 9999 in the time zone of the series', async () => {
    const times = { start: '2030-03-04T08:00:00', end: '2030-03-04T09:00:00', zone: 'Asia/Tokyo' }
    for (const rule of ['FREQ=DAILY', 'FREQ=YEARLY;BYYEARDAY=-1,1,100']) {
      const { uid } = await written({ ...times, rule })
      const late = await written({ uid, cancel: true, recurrenceId: '9999-12-30T23:00:00Z' })
      expect(late.of('RECURRENCE-ID')).toEqual(['RECURRENCE-ID;TZID=Asia/Tokyo:99991231T080000'])
      const after = { uid, cancel: true, recurrenceId: '9999-12-31T23:00:00Z' }
      expect(await faultOf(after)).toBe(NO_INSTANCE)
    }
  })

  test('a change of an instance is refused if the instance’s time has no time zone, or if the event does not recur', async () => {
    const { uid } = await written(SERIES)
    for (const recurrenceId of ['2030-03-11T10:00:00', 'next', '', '2030-02-30']) {
      expect(await faultOf({ uid, cancel: true, recurrenceId })).toBe(
        '400 event.recurrenceId must be an ISO 8601 time with a zone',
      )
    }
    const once = await written(TIMES)
    for (const change of [{ cancel: true }, TIMES]) {
      expect(
        await faultOf({ ...change, uid: once.uid, recurrenceId: '2030-03-04T09:00:00Z' }),
      ).toBe('400 event.recurrenceId must be absent: the event does not recur')
    }
  })
})
