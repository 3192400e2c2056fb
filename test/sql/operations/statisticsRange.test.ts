/** Tests the mail counts of a day, a week and a month, which come from stored minutes and from the totals of hours. */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createPool } from '../../../sql/db.ts'
import {
  deleteStaleHours,
  readRange,
  recordHours,
} from '../../../sql/operations/statisticsRange.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
  // Stores one mail a minute over the last 46 hours, up to the last whole minute.
  await database.pool.query(
    `insert into statistics_minutes
     select date_trunc('minute', statement_timestamp()) - n * interval '1 minute', 1, 2, 0, 10, 3, 4, '{}'
     from generate_series(1, 46 * 60) n`,
  )
})
afterAll(() => database[Symbol.asyncDispose]())

const hours = async () =>
  (await database.pool.query('select * from statistics_hours order by hour')).rows

test('the statistics of each whole hour are summed once, even if several processes sum them', async () => {
  const { pool } = database
  await Promise.all([recordHours(pool), recordHours(pool)])
  const first = await hours()
  // The current and the previous hour have no hourly totals yet, because their minutes may still get counts.
  expect(first.length).toBeGreaterThanOrEqual(43)
  for (const hour of first.slice(1)) {
    expect(hour).toMatchObject({ mail_in: 60, mail_out: 120, paid_atomic: '600', webhooks_ok: 180 })
  }
  await recordHours(pool)
  expect(await hours()).toEqual(first)
})

test('a range of the statistics counts each minute once, even where hourly totals and single minutes meet', async () => {
  const { pool } = database
  for (const [widthMs, parts] of [
    [HOUR_MS / 2, 48],
    [2 * HOUR_MS, 84],
    [DAY_MS, 30],
  ] as const) {
    const read = await readRange(pool, { widthMs, parts, offsetMs: 0 })
    const counted = read.parts.reduce((sum, { mailIn }) => sum + mailIn, 0)
    const startMs = Math.floor(Date.now() / widthMs) * widthMs - (parts - 1) * widthMs
    const wanted = Math.min(46 * 60, Math.round((Date.now() - startMs) / 60_000))
    expect(Math.abs(counted - wanted)).toBeLessThanOrEqual(2)
    const whole = read.parts.slice(1, -1).map(({ mailIn }) => mailIn)
    expect(new Set(whole)).toEqual(new Set(whole.length === 0 ? [] : [widthMs / 60_000]))
    for (const { at } of read.parts) expect(at.getTime() % widthMs).toBe(0)
  }
})

test('the statistics of a short time range leave out the minutes before this range', async () => {
  const read = await readRange(database.pool, { widthMs: 60_000, parts: 5, offsetMs: 0 })
  expect(read.minutes.length).toBeGreaterThan(5)
  expect(read.parts.length).toBeWithin(3, 6)
  const startMs = Date.now() - 6 * 60_000
  for (const { at } of read.parts) expect(at.getTime()).toBeGreaterThan(startMs)
})

test('days in the statistics begin at midnight in the person’s time zone', async () => {
  const offsetMs = -5.5 * HOUR_MS
  const { parts } = await readRange(database.pool, { widthMs: DAY_MS, parts: 30, offsetMs })
  expect(parts.length).toBeGreaterThanOrEqual(2)
  for (const { at } of parts) expect((at.getTime() - offsetMs) % DAY_MS).toBe(0)
})

test('the hourly statistics are kept after the minute statistics are deleted, and are deleted after two months', async () => {
  const { pool } = database
  await pool.query('delete from statistics_minutes')
  await pool.query(
    `insert into statistics_hours values (date_trunc('hour', clock_timestamp()) - interval '20 days', 5, 0, 0, 0, 0, 0),
       (date_trunc('hour', clock_timestamp()) - interval '63 days', 7777, 0, 0, 0, 0, 0)`,
  )
  const { parts } = await readRange(pool, { widthMs: DAY_MS, parts: 30, offsetMs: 0 })
  expect(parts[0]).toMatchObject({ mailIn: 5, paidAtomic: 0n })
  await deleteStaleHours(pool)
  expect((await hours()).map(({ mail_in }) => mail_in)).not.toContain(7777)
  expect((await hours()).map(({ mail_in }) => mail_in)).toContain(5)
})

test('the hours of the statistics begin at whole hours of UTC, also if the time zone of the database has a half hour', async () => {
  await using other = await createTestDatabase()
  await other.pool.query(
    `do $$ begin execute format('alter database %I set timezone = %L', current_database(), 'Asia/Kolkata'); end $$`,
  )
  const pool = createPool({ url: other.url, size: 1, name: 'test' })
  try {
    const hourMs = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - 40 * HOUR_MS
    const minute = new Date(hourMs + 15 * 60_000)
    await pool.query(`insert into statistics_minutes values ($1, 1, 0, 0, 0, 0, 0, '{}')`, [minute])
    await recordHours(pool)
    const { parts } = await readRange(pool, { widthMs: HOUR_MS, parts: 48, offsetMs: 0 })
    const counted = parts.filter(({ mailIn }) => mailIn > 0).map(({ at }) => at.getTime())
    expect(counted).toEqual([hourMs])
  } finally {
    await pool.end()
  }
})
