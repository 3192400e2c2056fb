import { expect, test } from 'bun:test'
import { startPulses } from './pulse.ts'

test('the longest measured silence (time without a success) of a service part may begin at the start of the measurement, or last until its end', () => {
  let nowMs = 0
  const pulses = startPulses(() => nowMs)
  nowMs = 100
  pulses.beat('api')
  nowMs = 150
  pulses.beat('api')
  nowMs = 450
  pulses.end()
  nowMs = 10_000
  pulses.beat('api')
  const { api, smtp } = pulses.longest()
  expect(api).toEqual({ ms: 300, fromMs: 150 })
  expect(smtp).toEqual({ ms: 450, fromMs: 0 })
})
