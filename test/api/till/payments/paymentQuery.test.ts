import { afterEach, expect, setSystemTime, test } from 'bun:test'
import { readAmount, readDays, readFilter } from '../../../../api/till/payments/paymentQuery.ts'

afterEach(() => setSystemTime())

test('the parameter days selects a period that ends today and has at most 90 days', () => {
  setSystemTime(new Date('2026-03-31T23:59:59.999Z'))
  for (const [days, start] of [
    ['1', '2026-03-31'],
    ['2', '2026-03-30'],
    [undefined, '2026-03-02'],
    ['90', '2026-01-01'],
  ] as const) {
    expect([days, readDays(days)]).toEqual([days, new Date(`${start}T00:00:00Z`)])
  }
  expect(() => readDays('91')).toThrow(
    expect.objectContaining({ status: 400, message: 'days must be a whole number from 1 to 90' }),
  )
})

test('a payment filter has the value null for every absent parameter', () => {
  const none = {
    state: null,
    endpointId: null,
    payer: null,
    from: null,
    to: null,
    minAtomic: null,
    maxAtomic: null,
  }
  expect(readFilter({})).toEqual(none)
  expect(
    readFilter({
      status: 'settled',
      from: '2026-01-31',
      minAmountUsdc: '0.01',
      maxAmountUsdc: '2',
    }),
  ).toEqual({
    ...none,
    state: 'settled',
    from: new Date('2026-01-31T00:00:00Z'),
    minAtomic: 10_000n,
    maxAtomic: 2_000_000n,
  })
})

test('the error for a wrong amount in a payment filter names the query parameter', () => {
  expect(() => readAmount('minAmountUsdc', '0.0000001')).toThrow(
    expect.objectContaining({ status: 400, message: expect.stringMatching(/^minAmountUsdc /) }),
  )
})
