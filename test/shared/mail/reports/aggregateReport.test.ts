/** Tests how the service reads the times, the counts and the rows of aggregate reports (DMARC and TLS). */
import { expect, test } from 'bun:test'
import {
  largest,
  ReportError,
  reportCount,
  reportTime,
} from '../../../../shared/mail/reports/aggregateReport.ts'

const row = (count: number) => ({ source: null, count, isPassed: true, result: 'x' })

test('if an aggregate report (DMARC or TLS) has many rows, the service keeps only the thousand rows with the largest counts', () => {
  const counts = (rows: { count: number }[]) => rows.map(({ count }) => count)
  expect(counts(largest([row(2), row(3), row(1)]))).toEqual([3, 2, 1])
  const kept = counts(largest(Array.from({ length: 1_001 }, (_one, n) => row(n))))
  expect([kept.length, kept[0], kept.at(-1)]).toEqual([1_000, 1_000, 1])
})

test('a time in an aggregate report is a number of seconds since 1970 with at most 11 digits, or an RFC 3339 time', () => {
  expect(reportTime('0')).toEqual(new Date(0))
  expect(reportTime('1795305600')).toEqual(new Date('2026-11-22T00:00:00Z'))
  expect(reportTime('99999999999')).toEqual(new Date(99_999_999_999_000))
  expect(reportTime('2026-11-22T01:00:00+01:00')).toEqual(new Date('2026-11-22T00:00:00Z'))
})

test.each([
  ...['', 'soon', '100000000000', '2026-13-01T00:00:00Z'],
  ...['-010000-01-01T00:00:00Z', 'January 1', '-1'],
])('a report with the text "%s" as a time is refused', (text) => {
  expect(() => reportTime(text)).toThrow(new ReportError('its dates are no times'))
})

test('a count in an aggregate report is a whole number; a count above a billion is read as a billion, and an invalid count as 0', () => {
  expect(['1', 7, ' 5 '].map(reportCount)).toEqual([1, 7, 5])
  expect([1_000_000_000, 1_000_000_001].map(reportCount)).toEqual([1_000_000_000, 1_000_000_000])
  expect(['', '0', '-1', '1.5', 'many', null, undefined, 1e300].map(reportCount)).toEqual([
    0, 0, 0, 0, 0, 0, 0, 0,
  ])
  const odd = [true, [5], '0x10', '1e3', { toString: 1, valueOf: 1 }]
  expect(odd.map(reportCount)).toEqual([0, 0, 0, 0, 0])
})
