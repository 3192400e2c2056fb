/**
 * Tests when the instances of a recurring event are computed, which run of the job computes the instances, and which
 * instances are stored.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { randomUUID } from 'node:crypto'
import {
  type DueExpansion,
  forgetUnanswered,
  isGivenUp,
  nextExpansionAt,
  placeInstances,
  queueExpansion,
  requeueExpansions,
  storeInstances,
  takeExpansion,
} from '../../../../sql/mail/calendar/instances.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { newEvent, spanOf } from '../../../support/mail/calendar/calendarRows.ts'
import { newSent } from '../../../support/mail/mailRows.ts'
import { dropJobs, failJobs, newProject } from '../../../support/till/tillRows.ts'

const DAY_MS = 24 * 60 * 60 * 1_000
const ago = (ms: number) => new Date(Date.now() - ms)
const later = (ms: number) => new Date(Date.now() + ms)

let database: TestDatabase
let pool: TestDatabase['pool']
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const take = (projectId: string, claim: string = randomUUID()) =>
  takeExpansion(pool, projectId, claim)
const eventOf = async (row: string) =>
  (await pool.query('select * from calendar_events where row = $1', [row])).rows[0]
const localsOf = async (row: string): Promise<string[]> => {
  const { rows } = await pool.query(
    'select local from calendar_instances where event_row = $1 order by starts_at',
    [row],
  )
  return rows.map(({ local }) => local)
}
const jobsOf = async (projectId: string): Promise<number> => {
  const { rows } = await pool.query('select 1 from graphile_worker.jobs where key = $1', [
    `expand_events:${projectId}`,
  ])
  return rows.length
}
const instance = (day: number, local = `day ${day}`) => ({
  startMs: Date.UTC(2031, 2, day, 9),
  endMs: Date.UTC(2031, 2, day, 10),
  local,
})

describe('a single event has an instance in the calendar only if the project has accepted it', () => {
  test.each([
    ['an accepted event has one instance', { answer: 'accepted' }, 1],
    ['a tentatively accepted event has one instance', { answer: 'tentative' }, 1],
    ['a declined event has no instance', { answer: 'declined' }, 0],
    ['an unanswered event has no instance', { answer: 'needs-action' }, 0],
    ['a cancelled event has no instance', { status: 'cancelled' }, 0],
  ])('in the calendar %s if it does not recur', async (_, changes, count) => {
    const projectId = await newProject(pool)
    const row = await newEvent(pool, projectId, changes)
    await placeInstances(pool, [row])
    await placeInstances(pool, [row])
    expect([(await localsOf(row)).length, await jobsOf(projectId)]).toEqual([count, 0])
  })

  test.each([
    ['an accepted event waits', { answer: 'accepted' }, true],
    ['an unanswered event does not wait', { answer: 'needs-action' }, false],
    ['a cancelled event does not wait', { status: 'cancelled' }, false],
  ])(
    'a recurring event may wait until its instances are computed: %s',
    async (_, changes, waits) => {
      const projectId = await newProject(pool)
      const row = await newEvent(pool, projectId, { source: 'rule', ...changes })
      await placeInstances(pool, [row])
      expect([await localsOf(row), await jobsOf(projectId)]).toEqual([[], waits ? 1 : 0])
      expect((await take(projectId))?.row).toBe(waits ? row : undefined)
    },
  )
})

describe('a job run claims an event whose instances must be computed, so that no other run computes the same event at the same time', () => {
  test('a job run claims only due calendar events of its own project, and first the event that is due for the longest time', async () => {
    const [projectId, other] = [await newProject(pool), await newProject(pool)]
    const due = (ms: number, of = projectId) =>
      newEvent(pool, of, { source: 'rule', expand_at: ago(ms) })
    const [second, first] = [await due(1_000), await due(2_000)]
    await due(3_000, other)
    await newEvent(pool, projectId, { source: 'rule', expand_at: later(60_000) })
    await newEvent(pool, projectId, { source: 'rule', expand_at: null })
    const taken = [await take(projectId), await take(projectId), await take(projectId)]
    expect(taken.map((one) => one?.row)).toEqual([first, second, undefined])
  })

  test('if a job run asks twice for a calendar event, it gets the same event again, and another run gets this event only after ten seconds', async () => {
    const projectId = await newProject(pool)
    const row = await newEvent(pool, projectId, { source: 'rule', expand_at: ago(1_000) })
    const claim = randomUUID()
    expect(await take(projectId, claim)).toMatchObject({ row, tries: 1 })
    expect(await take(projectId)).toBeNull()
    // Even if another event is due, a job run that requests an event again still gets the event that it has taken
    // before.
    const waiting = await newEvent(pool, projectId, { source: 'rule', expand_at: ago(DAY_MS) })
    expect(await take(projectId, claim)).toMatchObject({ row, tries: 2 })
    expect(await take(projectId)).toMatchObject({ row: waiting, tries: 1 })
    const next = (await nextExpansionAt(pool, projectId))!
    expect(next.getTime()).toBeGreaterThan(Date.now())
    expect(next.getTime()).toBeLessThanOrEqual(Date.now() + 10_000)
    await pool.query('update calendar_events set expand_at = clock_timestamp() where row = $1', [
      row,
    ])
    expect(await take(projectId)).toMatchObject({ row, tries: 3 })
  })

  test('a job run skips a calendar event that another transaction has locked', async () => {
    const projectId = await newProject(pool)
    const row = await newEvent(pool, projectId, { source: 'rule', expand_at: ago(1_000) })
    const holder = await pool.connect()
    try {
      await holder.query('begin')
      await holder.query('select from calendar_events where row = $1 for update', [row])
      expect(await take(projectId)).toBeNull()
    } finally {
      await holder.query('rollback')
      holder.release()
    }
    expect((await take(projectId))?.row).toBe(row)
  })

  test('the job that computes calendar instances runs at its scheduled time, or at once if none is given', async () => {
    const projectId = await newProject(pool)
    const runAt = async () => {
      const { rows } = await pool.query<{ run_at: Date }>(
        'select run_at from graphile_worker.jobs where key = $1',
        [`expand_events:${projectId}`],
      )
      return rows[0]!.run_at
    }
    const planned = later(60_000)
    await queueExpansion(pool, projectId, planned)
    expect(await runAt()).toEqual(planned)
    await queueExpansion(pool, projectId)
    expect((await runAt()).getTime()).toBeLessThanOrEqual(Date.now())
  })

  test('no job is due for calendar events that need no new instances, or that need new instances only after half a year', async () => {
    const [projectId, other] = [await newProject(pool), await newProject(pool)]
    await newEvent(pool, projectId, { source: 'rule', expand_at: later(180 * DAY_MS) })
    await newEvent(pool, projectId, { source: 'rule', expand_at: null })
    await newEvent(pool, other, { source: 'rule', expand_at: later(5_000) })
    expect(await nextExpansionAt(pool, projectId)).toBeNull()
  })

  test('the instances of a calendar event are computed for the past year, and for two years from now or from its start', async () => {
    const starts: [start: string, countedFrom: number][] = [
      ['2001-01-01T09:00:00', Date.now()],
      ['2099-01-01T09:00:00', Date.UTC(2099, 0, 1, 9)],
    ]
    for (const [start, countedFrom] of starts) {
      const projectId = await newProject(pool)
      const invite = spanOf(start, start)
      await newEvent(pool, projectId, { source: 'rule', expand_at: ago(1_000), invite })
      const { fromMs, untilMs } = (await take(projectId))!
      expect(Math.abs(fromMs - (Date.now() - 366 * DAY_MS))).toBeLessThan(60_000)
      expect(Math.abs(untilMs - (countedFrom + 730 * DAY_MS))).toBeLessThan(60_000)
    }
  })

  test('after three failed tries, the service no longer computes the instances of a calendar event', () => {
    const due = (tries: number): DueExpansion => ({
      row: '1',
      source: 'rule',
      fromMs: 0,
      nowMs: 0,
      untilMs: 0,
      tries,
    })
    expect([1, 3, 4].map((tries) => isGivenUp(due(tries)))).toEqual([false, false, true])
  })
})

describe('a job run replaces the stored instances of its calendar event', () => {
  const taken = async (projectId: string, changes = {}) => {
    const row = await newEvent(pool, projectId, { source: 'rule', expand_at: ago(1_000) })
    const due = (await take(projectId))!
    const [change] = Object.entries(changes)
    if (change !== undefined)
      await pool.query(`update calendar_events set ${change[0]} = $2 where row = $1`, [
        row,
        change[1],
      ])
    return { row, due }
  }

  test('new instances of a calendar event replace the old ones, and are computed again after 180 days', async () => {
    const projectId = await newProject(pool)
    const { row, due } = await taken(projectId)
    await storeInstances(pool, due, [instance(2), instance(3)])
    await storeInstances(pool, due, [instance(3, 'renamed'), instance(4)])
    expect(await localsOf(row)).toEqual(['renamed', 'day 4'])
    const { expand_at, expand_tries, expand_claim } = await eventOf(row)
    expect(Math.abs(expand_at.getTime() - Date.now() - 180 * DAY_MS)).toBeLessThan(2 * 3_600_000)
    expect([expand_tries, expand_claim]).toEqual([0, null])
  })

  test('if a calendar event has too many instances, they are computed again after half of the stored time range, but at most once a day', async () => {
    for (const [hours, days] of [
      [1, 2_000 / 48],
      [1 / 60, 1],
    ] as const) {
      const { row, due } = await taken(await newProject(pool))
      const instances = Array.from({ length: 2_000 }, (_, n) => {
        const startMs = Date.now() + n * hours * 3_600_000
        return { startMs, endMs: startMs + 1, local: '' }
      })
      await storeInstances(pool, due, instances)
      const { expand_at } = await eventOf(row)
      expect((expand_at.getTime() - Date.now()) / DAY_MS).toBeCloseTo(days, 1)
    }
  })

  test('storing the instances of one calendar event keeps the instances of other events', async () => {
    const projectId = await newProject(pool)
    const [one, other] = [await taken(projectId), await taken(projectId)]
    await storeInstances(pool, one.due, [instance(2)])
    await storeInstances(pool, other.due, [instance(3)])
    expect([await localsOf(one.row), await localsOf(other.row)]).toEqual([['day 2'], ['day 3']])
  })

  test('if a calendar event has no instances, the service never computes them again', async () => {
    const { row, due } = await taken(await newProject(pool))
    await storeInstances(pool, due, [])
    expect([await localsOf(row), (await eventOf(row)).expand_at]).toEqual([[], null])
  })

  test.each([
    ['got another recurrence rule', { source: 'another rule' }],
    ['was cancelled', { status: 'cancelled' }],
    ['was declined', { answer: 'declined' }],
  ])('an event gets no instances if it %s while a job run computed them', async (_, changes) => {
    const { row, due } = await taken(await newProject(pool), changes)
    await storeInstances(pool, due, [instance(2)])
    expect([await localsOf(row), (await eventOf(row)).expand_tries]).toEqual([[], 1])
  })
})

test('if a calendar event is due and its job is lost, its project gets one new job', async () => {
  const [lost, queued, idle] = [
    await newProject(pool),
    await newProject(pool),
    await newProject(pool),
  ]
  await dropJobs(pool)
  await pool.query('update calendar_events set expand_at = null')
  const due = { source: 'rule', expand_at: ago(1_000) }
  for (const projectId of [lost, lost, queued]) await newEvent(pool, projectId, due)
  await newEvent(pool, idle, { source: 'rule', expand_at: later(60_000) })
  await placeInstances(pool, [await newEvent(pool, queued, { source: 'rule' })])
  expect(await requeueExpansions(pool)).toBe(1)
  expect([await jobsOf(lost), await jobsOf(queued), await jobsOf(idle)]).toEqual([1, 1, 0])
  expect(await requeueExpansions(pool)).toBe(0)
  await failJobs(pool)
  expect(await requeueExpansions(pool)).toBe(2)
})

test('a calendar event without an answer is deleted only after its message is deleted', async () => {
  const { row: message_row, projectId } = await newSent(pool)
  const asked = { answer: 'needs-action' }
  const forgotten = await newEvent(pool, projectId, asked)
  const kept = [
    await newEvent(pool, projectId, { ...asked, message_row }),
    await newEvent(pool, projectId, { answer: 'declined' }),
    await newEvent(pool, projectId, { ...asked, is_own: true }),
  ]
  await forgetUnanswered(pool)
  expect(await eventOf(forgotten)).toBeUndefined()
  for (const row of kept) expect((await eventOf(row))?.row).toBe(row)
})

test('one run of the housekeeping deletes thousands of unanswered calendar events', async () => {
  const { row, projectId } = await newSent(pool)
  await pool.query(
    `insert into calendar_events (project_id, uid_hash, organizer, sequence, stamp, is_proven, is_own, status, invite, message_row)
     select $1, sha256(n::text::bytea), '', 0, now(), false, false, 'confirmed', '{}', case when n = 1 then $2::bigint end
     from generate_series(1, 5000) n`,
    [projectId, row],
  )
  await forgetUnanswered(pool)
  const { rows } = await pool.query(
    `select count(*)::int as events, min(message_row) as row from calendar_events where project_id = $1`,
    [projectId],
  )
  expect(rows).toEqual([{ events: 1, row }])
})
