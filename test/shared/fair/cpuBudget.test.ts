import { expect, test } from 'bun:test'
import { CpuBudget } from '../../../shared/fair/cpuBudget.ts'

test('an owner who has used more CPU time than allowed at once waits until the excess is paid back', () => {
  let nowMs = 0
  const budget = new CpuBudget({ burstMs: 1_000, perSecondMs: 100 }, () => nowMs)
  budget.charge('a', 999)
  expect(budget.delayMs('a')).toBe(0)
  budget.charge('a', 1_001)
  expect(budget.delayMs('a')).toBeGreaterThanOrEqual(10_000)
  expect(budget.delayMs('b')).toBe(0)
  nowMs += budget.delayMs('a')
  expect(budget.delayMs('a')).toBe(0)
})

test('the excess CPU time of an owner is still known after ten thousand other owners', () => {
  let nowMs = 0
  const budget = new CpuBudget({ burstMs: 1_000, perSecondMs: 100 }, () => nowMs)
  budget.charge('heavy', 500_000)
  for (let n = 0; n < 9_999; n++) budget.charge(`light ${n}`, 1)
  nowMs = 1_000
  budget.charge('one more', 1)
  expect(budget.delayMs('heavy')).toBeGreaterThan(0)
})
