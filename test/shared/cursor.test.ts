import { expect, test } from 'bun:test'
import { decodeCursor, encodeCursor } from '../../shared/cursor.ts'

test('a page cursor has the form of an ISO 8601 time, and its last digits contain the row number', () => {
  const cursor = { atMs: Date.parse('2026-01-05T09:30:00.007Z'), row: 42n }
  const token = encodeCursor(cursor)
  expect(token).toBe('2026-01-05T09:30:00.0070000000000000000042Z')
  expect(decodeCursor(token)).toEqual(cursor)
  const largest = { atMs: 0, row: 2n ** 63n - 1n, asOfMs: 1_795_000_000_000 }
  expect(decodeCursor(encodeCursor(largest))).toEqual(largest)
  expect(Number.isNaN(Date.parse(token))).toBe(false)
})

test('a text that is not an ISO 8601 time with a position is refused as a page cursor', () => {
  for (const text of [
    '',
    '2026-01-05T09:30:00Z',
    '2026-01-05T09:30:00.007Z',
    '2026-13-05T09:30:00.0070000000000000000042Z',
    '2026-01-05T09:30:00.0079999999999999999999Z',
    ' 2026-01-05T09:30:00.0070000000000000000042Z',
    '2026-01-05T09:30:00.0070000000000000000042Z\n',
    '2026-01-05T09:30:00.00700000000000000000421Z',
  ]) {
    expect([text, decodeCursor(text)]).toEqual([text, null])
  }
})
