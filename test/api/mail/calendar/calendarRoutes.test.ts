/** Tests which time range a page of the calendar may cover, and how the page shows one instance of an event. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readCalendarPage } from '../../../../api/mail/calendar/calendarRoutes.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import {
  type EventColumns,
  hourAt,
  newEvent,
  newInstance,
  spanOf,
} from '../../../support/mail/calendar/calendarRows.ts'
import { newProject } from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const DAY_MS = 86_400_000
const DAY = { from: '2031-03-02', to: '2031-03-03' }
const read = (projectId: string, query: object = {}) =>
  readCalendarPage(pool, { projectId }, { ...DAY, ...query } as never)

/** Stores an accepted event with instances at the given hours. */
async function event(
  projectId: string,
  invite: object,
  hours: readonly number[] = [9],
  columns: EventColumns = {},
) {
  const whole = {
    ...{ uid: 'event-1', summary: 'Talk', description: '', location: null, meetingLink: null },
    ...{ allDay: false, organizer: null, attendees: [], recurrence: null, recurrenceId: null },
    ...spanOf('2031-03-02T09:00:00', '2031-03-02T10:00:00'),
    ...invite,
  }
  const row = await newEvent(pool, projectId, { invite: whole, ...columns })
  for (const hour of hours) await newInstance(pool, projectId, row, [hour, hour + 1])
  return row
}

describe('a query for the calendar must have a valid time range', () => {
  test.each([
    [{ to: '2032-03-02T00:00:00Z' }, 'read'],
    [{ to: '2032-03-02T00:00:00.001Z' }, 'to must be after from, by at most 366 days'],
    [{ to: '2031-03-02T00:00:00.001Z' }, 'read'],
    [{ to: '2031-03-02' }, 'to must be after from, by at most 366 days'],
    [{ to: '2031-03-01' }, 'to must be after from, by at most 366 days'],
    [{ from: '2031-02-30' }, 'from must be an ISO 8601 date, or a time with a zone'],
    [{ to: 'soon' }, 'to must be an ISO 8601 date, or a time with a zone'],
  ])(
    'a request for the calendar with the query %j gives this result: %s',
    async (query, answer) => {
      const end = await read('prj_none', query).then(
        () => 'read',
        (error: Error) => error.message,
      )
      expect(end).toBe(answer)
    },
  )

  test('a request without a time range lists the events that end within 366 days from now', async () => {
    const projectId = await newProject(pool)
    const row = await event(projectId, { recurrence: { rule: 'FREQ=DAILY', next: [] } }, [])
    const hoursNow = (Date.now() - hourAt(0).getTime()) / 3_600_000
    for (const days of [-1, 1, 365, 367]) {
      const hour = Math.round(hoursNow + 24 * days)
      await newInstance(pool, projectId, row, [hour, hour + 1])
    }
    const ask = async (query: object) => {
      const { events } = await readCalendarPage(pool, { projectId }, query as never)
      return events.map(({ start: { at } }) => Math.round((Date.parse(at) - Date.now()) / DAY_MS))
    }
    expect(await ask({})).toEqual([1, 365])
    expect(await ask({ from: new Date(Date.now() - 2 * DAY_MS).toISOString() })).toEqual([-1, 1])
    expect(await ask({ to: new Date(Date.now() + 2 * DAY_MS).toISOString() })).toEqual([1])
  })

  test('a full page of the calendar contains a token for the next page, and the last page contains none', async () => {
    const projectId = await newProject(pool)
    await event(projectId, { recurrence: { rule: 'FREQ=HOURLY', next: [] } }, [9, 10, 11])
    const first = await read(projectId, { limit: '2' })
    expect([first.count, first.events.map(({ start }) => start.local)]).toEqual([
      2,
      ['hour 9', 'hour 10'],
    ])
    const second = await read(projectId, { limit: '2', pageToken: first.nextPageToken })
    expect(second.events.map(({ start }) => start.local)).toEqual(['hour 11'])
    expect(second).not.toHaveProperty('nextPageToken')
  })
})

describe('the calendar shows each instance of an event with its own start, end and attendee states', () => {
  const only = async (projectId: string) => (await read(projectId)).events[0]!

  test('an event that does not recur ends at the time in its invitation, and has no recurrence id', async () => {
    const projectId = await newProject(pool)
    await event(projectId, {})
    expect(await only(projectId)).toMatchObject({
      recurrenceId: null,
      recurs: false,
      end: { at: '2031-03-02T10:00:00.000Z', local: '2031-03-02T10:00:00', zone: 'UTC' },
    })
  })

  test('an instance of a recurring event has its start as recurrence id, and has its own end', async () => {
    const projectId = await newProject(pool)
    const end = { at: '', local: '2031-02-01T10:00:00', zone: 'Europe/Berlin' }
    await event(projectId, { recurrence: { rule: 'FREQ=DAILY', next: [] }, end })
    expect(await only(projectId)).toMatchObject({
      recurrenceId: '2031-03-02T09:00:00.000Z',
      recurs: true,
      end: { at: '2031-03-02T10:00:00.000Z', local: '2031-03-02T11:00:00' },
    })
  })

  test('if the time zone of a recurring event has no name, the local end of each instance has the UTC offset of its start', async () => {
    const projectId = await newProject(pool)
    const time = (hour: string) => ({ at: '', local: `2031-02-01T${hour}:00:00`, zone: null })
    const series = { rule: 'FREQ=DAILY', next: [] }
    await event(projectId, { recurrence: series, start: time('11'), end: time('12') })
    await pool.query(
      `update calendar_instances set local = '2031-03-02T11:00:00' where project_id = $1`,
      [projectId],
    )
    expect(await only(projectId)).toMatchObject({
      start: { at: '2031-03-02T09:00:00.000Z', local: '2031-03-02T11:00:00', zone: null },
      end: { at: '2031-03-02T10:00:00.000Z', local: '2031-03-02T12:00:00', zone: null },
    })
  })

  test('the end of a whole-day instance of a recurring event is a date', async () => {
    const projectId = await newProject(pool)
    await event(projectId, { allDay: true, recurrence: { rule: 'FREQ=DAILY', next: [] } })
    expect((await only(projectId)).end.local).toBe('2031-03-02')
  })

  test('a changed instance of a recurring event counts as recurring, and keeps the recurrence id of its invitation', async () => {
    const projectId = await newProject(pool)
    const recurrenceId = '2031-03-01T09:00:00.000Z'
    await event(projectId, { recurrenceId })
    expect(await only(projectId)).toMatchObject({ recurrenceId, recurs: true })
  })

  test('the answer of an attendee replaces the attendee’s state in the invitation', async () => {
    const projectId = await newProject(pool)
    const attendee = (address: string) => ({ address, name: null, state: 'needs-action' })
    const attendees = [attendee('Ada@example.com'), attendee('bob@example.com')]
    const row = await event(projectId, { attendees }, [9], { is_own: true })
    await pool.query(
      `insert into calendar_answers (event_row, address, state, stamp) values ($1, 'ada@example.com', 'declined', now())`,
      [row],
    )
    const shown = (await only(projectId)).attendees
    expect(shown.map(({ state }) => state)).toEqual(['declined', 'needs-action'])
  })
})
