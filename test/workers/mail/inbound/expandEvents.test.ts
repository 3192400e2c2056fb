/**
 * Tests that recurring events stay in the calendar even if the process that computes their instances does not start.
 */
import { afterAll, beforeAll, expect, spyOn, test } from 'bun:test'
import { createExpandEvents } from '../../../../workers/mail/inbound/expandEvents.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { silentLog } from '../../../support/logs.ts'
import { newEvent, newInstance } from '../../../support/mail/calendar/calendarRows.ts'
import { newProject } from '../../../support/till/tillRows.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

const SOURCE = [
  'BEGIN:VCALENDAR',
  'BEGIN:VEVENT',
  'DTSTART:20310302T090000Z',
  'RRULE:FREQ=WEEKLY;COUNT=3',
  'END:VEVENT',
  'END:VCALENDAR',
].join('\r\n')

test('while the process that computes dates cannot start, a recurring calendar event keeps the dates that were computed before', async () => {
  const { pool } = database
  const projectId = await newProject(pool)
  const row = await newEvent(pool, projectId, { source: SOURCE, expand_at: new Date() })
  await newInstance(pool, projectId, row, [7, 8])
  const task = createExpandEvents({ pool, log: silentLog } as never)
  const run = () => task({ projectId }, { attempt: 1 })
  const startsOf = async () => {
    const { rows } = await pool.query(
      'select starts_at from calendar_instances where event_row = $1 order by starts_at',
      [row],
    )
    return rows.map(({ starts_at }) => starts_at.toISOString().slice(0, 13))
  }
  const spawn = spyOn(Bun, 'spawn').mockImplementation(() => {
    throw new Error('EAGAIN')
  })
  const makeDue = () =>
    pool.query('update calendar_events set expand_at = clock_timestamp() where row = $1', [row])
  try {
    for (let n = 0; n < 5; n++) {
      await expect(run()).rejects.toThrow('EAGAIN')
      await makeDue()
    }
  } finally {
    spawn.mockRestore()
  }
  expect(await startsOf()).toEqual(['2031-03-02T07'])
  await run()
  expect(await startsOf()).toEqual(['2031-03-02T09', '2031-03-09T09', '2031-03-16T09'])
  // Three runs of the job that computes the instances of the event have ended without a result. The event keeps its
  // dates, and a run on the next day computes them again.
  await pool.query('update calendar_events set expand_tries = 3 where row = $1', [row])
  await makeDue()
  await run()
  const { rows } = await pool.query(
    `select expand_tries, round(extract(epoch from expand_at - clock_timestamp()) / 3600)::int as hours
     from calendar_events where row = $1`,
    [row],
  )
  expect([await startsOf(), rows[0]]).toEqual([
    ['2031-03-02T09', '2031-03-09T09', '2031-03-16T09'],
    { expand_tries: 0, hours: 24 },
  ])
})
