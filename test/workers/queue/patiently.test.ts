/**
 * Tests that the service repeats database work while the database is unreachable and after a deadlock, but only for a
 * limited time.
 */
import { expect, test } from 'bun:test'
import { patiently } from '../../../workers/queue/patiently.ts'

const failing = (code: string, times = Number.POSITIVE_INFINITY) => {
  const state = { calls: 0 }
  const work = async () => {
    if (++state.calls <= times) throw Object.assign(new Error(code), { code })
    return 'done'
  }
  return { state, work }
}

test('database work is repeated after a database outage or a deadlock until the work succeeds', async () => {
  for (const code of ['ECONNREFUSED', '40P01']) {
    const { state, work } = failing(code, 2)
    expect(await patiently(work)).toBe('done')
    expect(state.calls).toBe(3)
  }
})

test('database work is not repeated after an error that is neither an outage nor a deadlock', async () => {
  const { state, work } = failing('23505')
  await expect(patiently(work)).rejects.toThrow('23505')
  expect(state.calls).toBe(1)
})

test('if a database outage is longer than the allowed waiting time, database work throws an error', async () => {
  const { state, work } = failing('ECONNREFUSED')
  await expect(patiently(work, 250)).rejects.toThrow('ECONNREFUSED')
  expect(state.calls).toBeGreaterThan(1)
  expect(state.calls).toBeLessThan(10)
})
