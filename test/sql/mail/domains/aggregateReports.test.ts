/** Tests which aggregate reports (DMARC and TLS) are stored, for how long, and which reports count in the totals. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { storeReport, sumReports } from '../../../../sql/mail/domains/aggregateReports.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'

const DAY_MS = 24 * 60 * 60 * 1_000

let database: TestDatabase
let pool: TestDatabase['pool']
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
beforeEach(() => pool.query('delete from aggregate_reports'))
afterAll(() => database[Symbol.asyncDispose]())

type Report = Parameters<typeof storeReport>[1]
const daysAgo = (days: number) => new Date(Date.now() - days * DAY_MS)
const row = (changes: object = {}) => ({
  ...{ source: '192.0.2.1', count: 1, isPassed: true, result: 'pass' },
  ...changes,
})
const store = (changes: Partial<Report> = {}) =>
  storeReport(pool, {
    ...{ kind: 'dmarc', domain: 'mail.test', reporter: 'r.example', reportId: 'id-1' },
    ...{ beginsAt: daysAgo(2), endsAt: daysAgo(1), rows: [row()], isProven: true },
    mailDomain: 'mail.test',
    ...changes,
  })
const storedCount = async () => (await pool.query('select from aggregate_reports')).rows.length
/** Stores aggregate reports of the given age from other domains. */
const fill = (count: number, interval: string) =>
  pool.query(
    `insert into aggregate_reports (kind, domain, reporter, report_id, begins_at, ends_at, is_proven, received_at)
     select 'dmarc', 'mail.test', 'other.example', 'n' || n, now(), now(), true, now() - $2::interval
     from generate_series(1, $1) n`,
    [count, interval],
  )

test('a DMARC or TLS report about a domain of the service is stored once for each reporter', async () => {
  await pool.query(
    `insert into mail_domains (domain, status, token, dkim_selector, dkim_record)
     values ('verified.example', 'verified', '', '', ''), ('pending.example', 'pending', '', '', '')`,
  )
  expect(await store()).toBe('stored')
  expect(await store()).toBe('known')
  expect(await store({ reporter: 's.example' })).toBe('stored')
  expect(await store({ domain: 'verified.example', reportId: 'id-2' })).toBe('stored')
  for (const domain of ['pending.example', 'foreign.example'])
    expect([domain, await store({ domain })]).toEqual([domain, 'foreign'])
  expect(await storedCount()).toBe(3)
})

test('at most 2,000 mail reports (DMARC or TLS) are stored in a day', async () => {
  await fill(1_999, '23 hours')
  expect(await store()).toBe('stored')
  expect(await store({ reportId: 'id-2' })).toBe('full')
  await pool.query(`update aggregate_reports set received_at = now() - interval '25 hours'`)
  expect(await store({ reportId: 'id-2' })).toBe('stored')
})

test('a sender that floods the service with authenticated reports leaves half of the day’s number of reports to other senders', async () => {
  const flood = Array.from({ length: 2_050 }, (_, n) => `flood-${n}`)
  const outcomes: string[] = []
  for (const reportId of flood) outcomes.push(await store({ reporter: 'flood.example', reportId }))
  const counts = (of: readonly string[]) => of.filter((outcome) => outcome === 'stored').length
  expect(await store({ reporter: 'honest.example' })).toBe('stored')
  expect(counts(outcomes)).toBe(1_000)
  expect(await store({ reporter: 'flood.example', reportId: 'last' })).toBe('full')
})

test('even if too many mail reports from unauthenticated senders arrive, reports from authenticated senders are still stored on the same day', async () => {
  await fill(500, '23 hours')
  await pool.query('update aggregate_reports set is_proven = false')
  expect(await store({ isProven: false })).toBe('full')
  expect(await store()).toBe('stored')
  await pool.query(`delete from aggregate_reports where report_id = 'n1'`)
  expect(await store({ reportId: 'id-2', isProven: false })).toBe('stored')
})

test('a mail report from an authenticated sender replaces a report with the same id from an unauthenticated sender', async () => {
  expect(await store({ isProven: false, rows: [row({ count: 100 })] })).toBe('stored')
  expect(await store({ rows: [row({ count: 5 })] })).toBe('stored')
  expect(await store({ isProven: false, rows: [row({ count: 100 })] })).toBe('known')
  const { days, unproven } = await sumReports(pool, 30)
  expect([days.map(({ passed }) => passed), unproven]).toEqual([[5], 0])
})

test('a mail report (DMARC or TLS) is deleted after 400 days', async () => {
  await fill(2, '401 days')
  await pool.query(
    `update aggregate_reports set received_at = now() - interval '399 days' where report_id = 'n1'`,
  )
  await store()
  expect(await storedCount()).toBe(2)
})

test('the totals of mail reports count only reports of the last days from authenticated senders, by day and by source', async () => {
  const failed = { isPassed: false, result: 'fail' }
  await store({ rows: [row({ count: 5 }), row({ ...failed, count: 2 })] })
  await store({ reportId: 'id-2', reporter: 's.example', rows: [row({ count: 1 })] })
  await store({ reportId: 'id-3', kind: 'tls', rows: [row({ source: null, count: 7 })] })
  await store({ reportId: 'old', endsAt: daysAgo(31), rows: [row({ count: 100 })] })
  await store({ reportId: 'unproven', isProven: false, rows: [row({ count: 100 })] })
  await store({ reportId: 'old and unproven', isProven: false, endsAt: daysAgo(31) })
  const { days, sources, unproven } = await sumReports(pool, 30)
  const date = daysAgo(1).toISOString().slice(0, 10)
  expect(days).toEqual([
    { date, kind: 'dmarc', passed: 6, failed: 2 },
    { date, kind: 'tls', passed: 7, failed: 0 },
  ])
  expect(
    sources.map(({ kind, source, result, count, reporters }) => [
      kind,
      source,
      result,
      count,
      reporters,
    ]),
  ).toEqual([
    ['tls', null, 'pass', 7, ['r.example']],
    ['dmarc', '192.0.2.1', 'pass', 6, ['r.example', 's.example']],
    ['dmarc', '192.0.2.1', 'fail', 2, ['r.example']],
  ])
  expect(unproven).toBe(1)
})
