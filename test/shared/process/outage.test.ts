import { expect, test } from 'bun:test'
import { createOutage } from '../../../shared/process/outage.ts'

function follow() {
  let nowMs = 0
  const lines: [string, object][] = []
  const outage = createOutage('the thing', () => nowMs)
  return {
    lines,
    pass: (ms: number) => {
      nowMs += ms
    },
    answer: () => outage.answered(),
    miss: (reason: string) =>
      outage.missed((fields, message) => lines.push([message, fields]), reason),
  }
}

test('if a repeated call begins to fail (an outage), one line is logged, and later one line with the number of failed calls', () => {
  const thing = follow()
  thing.answer()
  for (let n = 0; n < 1_000; n++) thing.miss(`reason ${n}`)
  thing.pass(5_000)
  thing.answer()
  thing.answer()
  expect(thing.lines).toEqual([
    ['the thing is away', { reason: 'reason 0' }],
    ['the thing is back', { missed: 1_000, awayMs: 5_000 }],
  ])
})

test('while a repeated call fails for a long time, one line a minute is logged', () => {
  const thing = follow()
  for (let second = 0; second <= 130; second++) {
    thing.miss('no answer')
    thing.pass(1_000)
  }
  expect(thing.lines.map(([message]) => message)).toEqual([
    'the thing is away',
    'the thing is still away',
    'the thing is still away',
  ])
})

test('if a repeated call fails for exactly a minute, no reminder is logged yet', () => {
  const thing = follow()
  thing.miss('no answer')
  thing.pass(60_000)
  thing.miss('no answer')
  expect(thing.lines).toHaveLength(1)
  thing.pass(1)
  thing.miss('no answer')
  expect(thing.lines.map(([message]) => message)).toEqual([
    'the thing is away',
    'the thing is still away',
  ])
})

test('a single success between many failures does not end an outage in the log', () => {
  const thing = follow()
  for (let n = 0; n < 10; n++) {
    thing.miss('full')
    thing.pass(100)
    thing.answer()
  }
  expect(thing.lines).toHaveLength(1)
  thing.pass(3_000)
  thing.answer()
  expect(thing.lines).toHaveLength(2)
  thing.miss('again')
  expect(thing.lines[2]).toEqual(['the thing is away', { reason: 'again' }])
})
