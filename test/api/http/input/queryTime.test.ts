import { expect, test } from 'bun:test'
import { queryTime, readRange } from '../../../../api/http/input/queryTime.ts'

const [AFTER, BEFORE] = ['2026-01-31T09:30:00Z', '2026-02-01']

test('a time range contains a limit (after or before) only if the query contains it', () => {
  const [after, before] = [new Date(AFTER), new Date('2026-02-01T00:00:00Z')]
  expect(readRange({})).toStrictEqual({})
  expect(readRange({ after: AFTER })).toStrictEqual({ after })
  expect(readRange({ before: BEFORE })).toStrictEqual({ before })
  expect(readRange({ after: AFTER, before: BEFORE })).toStrictEqual({ after, before })
})

test('a time without a time zone is refused with an error that names its parameter', () => {
  expect(() => queryTime('since', '2026-01-31T09:30:00')).toThrow(
    expect.objectContaining({
      status: 400,
      message: 'since must be an ISO 8601 time with its zone, or a date',
    }),
  )
  expect(queryTime('since', undefined)).toBeUndefined()
})
