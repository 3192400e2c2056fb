/** Tests which events of a calendar the service deletes, and when the calendar of a project is full. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { expireEvents, isCalendarFull } from '../../../../sql/mail/calendar/expireEvents.ts'
import {
  hasAllChanges,
  placeInstances,
  storeInstances,
} from '../../../../sql/mail/calendar/instances.ts'
import { writeOwnEvents } from '../../../../sql/mail/calendar/ownEvents.ts'
import { uidHash } from '../../../../sql/mail/calendar/uidHash.ts'
import { findDue, removeExpired, WALK_START } from '../../../../sql/operations/retention.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { whileLocked } from '../../../support/database/whileLocked.ts'
import {
  type EventColumns,
  hourAt,
  newEvent,
  newInstance,
  spanOf,
} from '../../../support/mail/calendar/calendarRows.ts'
import { newSent } from '../../../support/mail/mailRows.ts'
import { newProject } from '../../../support/till/tillRows.ts'

const DAY_MS = 24 * 60 * 60 * 1000

let database: TestDatabase
let pool: TestDatabase['pool']
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

/** Returns the times of an invitation whose event was the given number of days ago. */
const ago = (days: number) => {
  const local = new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 19)
  return { ...spanOf(local, local), attendees: [] }
}
/** Stores an event, and computes its instances in the calendar. @returns the row number of the event. */
const placed = async (projectId: string, changes: EventColumns): Promise<string> => {
  const row = await newEvent(pool, projectId, changes)
  await placeInstances(pool, [row])
  return row
}
const leftOf = async (projectId: string): Promise<string[]> => {
  const { rows } = await pool.query<{ row: string }>(
    'select row from calendar_events where project_id = $1 order by row',
    [projectId],
  )
  return rows.map(({ row }) => row)
}
/** Removes the rows whose retention has ended, until no such row is left. */
const walk = async () => {
  const { due } = await findDue(pool, WALK_START, 10_000)
  for (const one of due) while ((await removeExpired(pool, one)) > 0);
}
const retainMail = (projectId: string, days: number) =>
  pool.query('insert into project_retention (project_id, mail_days) values ($1, $2)', [
    projectId,
    days,
  ])
const overOf = async (row: string): Promise<Date | number> =>
  (await pool.query('select over_at from calendar_events where row = $1', [row])).rows[0].over_at

test.each<[days: number | null, kept: number[], gone: number[]]>([
  [null, [-9_000, 1, 365], [367, 900]],
  [30, [-9_000, 1, 29], [31, 900]],
  [1, [-9_000, 6], [8]],
  [9_999, [-9_000, 365], [367]],
])(
  'with a retention of mail of %j days, events without a message that ended %j days ago stay, and those of %j days ago go',
  async (days, kept, gone) => {
    const projectId = await newProject(pool)
    if (days !== null) await retainMail(projectId, days)
    const rows = []
    for (const one of kept) rows.push(await placed(projectId, { invite: ago(one) }))
    for (const one of gone) await placed(projectId, { invite: ago(one) })
    await walk()
    expect(await leftOf(projectId)).toEqual(rows)
  },
)

test('an old calendar event stays as long as its message', async () => {
  const { row: message_row, projectId } = await newSent(pool)
  const row = await placed(projectId, { message_row, invite: ago(900) })
  await walk()
  expect(await leftOf(projectId)).toEqual([row])
})

test('old calendar events are deleted even if another transaction has locked one of them', async () => {
  const projectId = await newProject(pool)
  const locked = await placed(projectId, { invite: ago(900) })
  await placed(projectId, { invite: ago(800) })
  const text = 'select from calendar_events where row = $1 for update'
  const expire = () => expireEvents(pool, projectId)
  expect(await whileLocked(pool, { text, values: [locked] }, expire)).toBe(1)
  expect(await leftOf(projectId)).toEqual([locked])
  expect(await expire()).toBe(1)
})

test('a calendar event that was cancelled or declined is over at once, and a recurring event is over after its last instance', async () => {
  const projectId = await newProject(pool)
  const isNow = (at: Date | number) => Math.abs(Number(at) - Date.now()) < 60_000
  for (const changes of [{ status: 'cancelled' }, { answer: 'declined' }]) {
    for (const source of [null, 'rule']) {
      expect(isNow(await overOf(await placed(projectId, { ...changes, source })))).toBe(true)
    }
  }
  const series = await placed(projectId, { source: 'rule' })
  expect(await overOf(series)).toBe(Number.POSITIVE_INFINITY)
  const due = { row: series, source: 'rule', fromMs: 0, nowMs: 0, untilMs: 0, tries: 1 }
  await storeInstances(pool, due, [])
  expect(isNow(await overOf(series))).toBe(true)
  await storeInstances(pool, due, [{ startMs: 0, endMs: 1, local: 'then' }])
  expect(await overOf(series)).toBe(Number.POSITIVE_INFINITY)
})

test('a changed instance of a series stays as long as the calendar may show it, and so does its series', async () => {
  const projectId = await newProject(pool)
  const uid_hash = randomBytes(32)
  const series = await placed(projectId, { uid_hash, source: 'rule' })
  const due = { row: series, source: 'rule', fromMs: 0, nowMs: 0, untilMs: 0, tries: 1 }
  await newInstance(pool, projectId, series, [9, 10])
  const instance = hourAt(9).toISOString()
  const changed = await placed(projectId, { uid_hash, instance, status: 'cancelled' })
  const over = hourAt(10).getTime() + 546 * DAY_MS
  expect(Number(await overOf(changed))).toBe(over)
  await storeInstances(pool, due, [])
  expect(Number(await overOf(series))).toBe(over)
  await pool.query(`update calendar_events set status = 'cancelled' where row = $1`, [series])
  await placeInstances(pool, [series, changed])
  for (const row of [series, changed]) expect(Number(await overOf(row))).toBeLessThan(over)
})

test('the service forgets old events that the project organizes even if another transaction has locked one of them', async () => {
  const projectId = await newProject(pool)
  const ownEvent = { sequence: 3, before: null, event: {}, endsAt: null }
  await writeOwnEvents(
    pool,
    ['locked', 'other'].map((uid) => ({ projectId, sendAt: null, ownEvent: { uid, ...ownEvent } })),
  )
  await pool.query(
    `update own_events set over_at = now() - interval '900 days' where project_id = $1`,
    [projectId],
  )
  const text = 'select from own_events where project_id = $1 and uid_hash = $2 for update'
  const expire = () => expireEvents(pool, projectId)
  const values = [projectId, uidHash('locked')]
  expect(await whileLocked(pool, { text, values }, expire)).toBe(1)
  expect(await expire()).toBe(1)
})

test('the service forgets an event that the project organizes only if the calendar does not have it, and never lowers its SEQUENCE', async () => {
  const [projectId, other] = [await newProject(pool), await newProject(pool)]
  const store = (uid: string, endsAt: Date | null, sendAt: Date | null = null, owner = projectId) =>
    writeOwnEvents(pool, [
      { projectId: owner, sendAt, ownEvent: { uid, sequence: 3, before: null, event: {}, endsAt } },
    ])
  const left = async () => {
    const { rows } = await pool.query<{ hash: string; sequence: number }>(
      `select encode(uid_hash, 'hex') as hash, sequence from own_events where project_id = $1`,
      [projectId],
    )
    return rows.map(({ hash, sequence }) => `${hash} ${sequence}`).sort()
  }
  const expected = (...uids: string[]) =>
    uids.map((uid) => `${uidHash(uid).toString('hex')} 3`).sort()
  const inYears = (years: number) => new Date(Date.now() + years * 366 * DAY_MS)
  await store('known', null)
  await store('known', null, null, other)
  await newEvent(pool, projectId, { uid_hash: uidHash('known'), is_own: true })
  await store('foreign', null)
  await newEvent(pool, projectId, { uid_hash: uidHash('foreign') })
  await store('unread', null)
  await store('coming', inYears(1))
  await store('far', inYears(7_000))
  await store('scheduled', null, inYears(1))
  const age = (days: number) =>
    pool.query(`update own_events set over_at = over_at - $1 * interval '1 day'`, [days])
  await age(30 + 365)
  await walk()
  expect(await left()).toHaveLength(6)
  await age(2)
  await walk()
  expect(await left()).toEqual(expected('known', 'coming', 'far', 'scheduled'))
  await age(800)
  await walk()
  expect(await left()).toEqual(expected('known'))
  await pool.query('delete from calendar_events where project_id = $1', [projectId])
  await walk()
  expect(await left()).toEqual(expected('known'))
  await age(367)
  await walk()
  expect(await left()).toEqual([])
})

test('one call deletes or checks at most 250 calendar events of each kind, and only those of its project', async () => {
  const [projectId, other] = [await newProject(pool), await newProject(pool)]
  await pool.query(
    `insert into calendar_events (project_id, uid_hash, organizer, sequence, stamp, is_proven, is_own, status, answer, invite, over_at)
     select p, sha256(n::text::bytea), '', 0, now(), false, false, 'confirmed', 'accepted', '{}', '2020-01-01'
     from generate_series(1, 300) n, unnest($1::text[]) p`,
    [[projectId, other]],
  )
  expect(await expireEvents(pool, projectId)).toBe(250)
  expect(await expireEvents(pool, projectId)).toBe(50)
  expect(await expireEvents(pool, projectId)).toBe(0)
  expect(await leftOf(other)).toHaveLength(300)
})

test('the calendar is full when it has the maximum number of coming events that belong to no stored message', async () => {
  const { row: message_row, projectId } = await newSent(pool)
  await placed(projectId, { invite: ago(1) })
  await placed(projectId, { message_row })
  await placed(projectId, { answer: 'declined' })
  await placed(projectId, {})
  // A changed instance of a series counts together with its series.
  await placed(projectId, { instance: hourAt(9).toISOString() })
  expect(await isCalendarFull(pool, projectId, 2)).toBe(false)
  await placed(projectId, { source: 'rule' })
  expect(await isCalendarFull(pool, projectId, 2)).toBe(true)
  expect(await isCalendarFull(pool, projectId)).toBe(false)
})

test('a recurring event has at most 2,000 changed instances', async () => {
  const projectId = await newProject(pool)
  const uid = randomBytes(32)
  const place = { message: { projectId }, uid } as never
  const add = (from: number, to: number) =>
    pool.query(
      `insert into calendar_events (project_id, uid_hash, organizer, instance, sequence, stamp, is_proven, is_own, status, invite)
       select $1, $2, 'owner@corp.example', '2031-01-01'::timestamptz + n * interval '1 day', 0, now(), true, false,
         'confirmed', '{}'
       from generate_series($3::int, $4) n`,
      [projectId, uid, from, to],
    )
  await newEvent(pool, projectId, { uid_hash: uid })
  await add(1, 1_999)
  expect(await hasAllChanges(pool, place, 'owner@corp.example')).toBe(false)
  await add(2_000, 2_000)
  expect(await hasAllChanges(pool, place, 'owner@corp.example')).toBe(true)
  expect(await hasAllChanges(pool, place, 'other@corp.example')).toBe(false)
})
