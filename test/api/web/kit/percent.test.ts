import { expect, test } from 'bun:test'
import { percent } from '../../../../api/web/kit/percent.ts'

test('a percentage is shown as 0 or 100 only if the exact value is 0 or 100', () => {
  expect([0, 1 / 1_000, 0.5, 999 / 1_000, 1].map(percent)).toEqual([
    '0 %',
    '1 %',
    '50 %',
    '99 %',
    '100 %',
  ])
})
