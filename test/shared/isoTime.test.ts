import { expect, test } from 'bun:test'
import { isoSeconds, parseDuration, parseIsoTime } from '../../shared/isoTime.ts'

test('the parser reads ISO 8601 dates, and times with a time zone', () => {
  for (const [text, iso] of [
    ['2026-12-31T23:59:59Z', '2026-12-31T23:59:59.000Z'],
    ['2026-12-31T23:59Z', '2026-12-31T23:59:00.000Z'],
    ['2026-12-31T23:59:59.123456Z', '2026-12-31T23:59:59.123Z'],
    ['2026-12-31T23:59:59,5Z', '2026-12-31T23:59:59.500Z'],
    ['2026-12-31T23:59:59+01:00', '2026-12-31T22:59:59.000Z'],
    ['2026-12-31T23:59:59+0100', '2026-12-31T22:59:59.000Z'],
    ['2026-12-31T23:59:59-05', '2027-01-01T04:59:59.000Z'],
    ['2024-02-29', '2024-02-29T00:00:00.000Z'],
    ['1000-01-01', '1000-01-01T00:00:00.000Z'],
    ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
  ]) {
    expect([text!, parseIsoTime(text!)?.toISOString()]).toEqual([text!, iso!])
  }
})

test('the parser refuses malformed times and times without a time zone', () => {
  for (const text of [
    '',
    'now',
    '0',
    '1798761599',
    '2026',
    '2026-12',
    '2026-13-01',
    '2026-02-30',
    '2026-02-29T00:00:00Z',
    '2026-12-31T24:00:00Z',
    '2026-12-31T23:60:00Z',
    '2026-12-31T23:59:60Z',
    '2026-12-31T23:59:59',
    '2026-12-31 23:59:59Z',
    '2026-12-31T23:59:59+99:00',
    '9999-12-31T23:59:59-05:00',
    '0999-01-01',
    '+012026-12-31T23:59:59Z',
    ' 2026-12-31',
    '2026-12-31T23:59:59Z\n',
  ]) {
    expect([text, parseIsoTime(text)]).toEqual([text, null])
  }
})

test('a duration is written as a whole number with the unit s, m, h, d or w', () => {
  expect(['1s', '30m', '12h', '7d', '2w', '3660d'].map(parseDuration)).toEqual([
    1_000, 1_800_000, 43_200_000, 604_800_000, 1_209_600_000, 316_224_000_000,
  ])
  for (const text of [
    '',
    '7',
    'd',
    '0d',
    '-1d',
    '1.5h',
    '07d',
    '7 d',
    '7D',
    '1y',
    '3661d',
    '999999999w',
  ]) {
    expect([text, parseDuration(text)]).toEqual([text, null])
  }
})

test('the function isoSeconds writes a time without milliseconds', () => {
  expect(isoSeconds(new Date('2026-01-05T09:30:00.999Z'))).toBe('2026-01-05T09:30:00Z')
})
