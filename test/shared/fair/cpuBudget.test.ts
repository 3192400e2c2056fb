import { expect, test } from 'bun:test'
import { CpuBudget } from '../../../shared/fair/cpuBudget.ts'

test('an inbox (or another user of CPU time) that exceeds its CPU budget waits until the budget covers the excess', () => {
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

test('the excess CPU time of one inbox is still known after ten thousand other inboxes', () => {
  let nowMs = 0
  const budget = new CpuBudget({ burstMs: 1_000, perSecondMs: 100 }, () => nowMs)
  budget.charge('heavy', 500_000)
  for (let n = 0; n < 9_999; n++) budget.charge(`light ${n}`, 1)
  nowMs = 1_000
  budget.charge('one more', 1)
  expect(budget.delayMs('heavy')).toBeGreaterThan(0)
})

test('an inbox that has used up its CPU time waits until it regains one millisecond', () => {
  const budget = new CpuBudget({ burstMs: 1_000, perSecondMs: 100 }, () => 0)
  budget.charge('a', 1_000)
  expect(budget.delayMs('a')).toBe(10)
  budget.charge('a', 100)
  expect(budget.delayMs('a')).toBe(1_010)
})

test('if more than ten thousand inboxes have excess CPU time, a new record replaces the oldest record', () => {
  const budget = new CpuBudget({ burstMs: 10, perSecondMs: 1 }, () => 0)
  for (let n = 0; n < 10_000; n++) budget.charge(`sharer ${n}`, 100)
  expect(budget.delayMs('sharer 0')).toBeGreaterThan(0)
  budget.charge('new', 100)
  expect(budget.delayMs('sharer 0')).toBe(0)
  expect(budget.delayMs('sharer 1')).toBeGreaterThan(0)
  budget.charge('new', 1)
  expect(budget.delayMs('sharer 1')).toBeGreaterThan(0)
})
