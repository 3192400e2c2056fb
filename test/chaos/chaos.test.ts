import { expect, test } from 'bun:test'
import { runChaos } from './chaos.ts'
import { HARMS } from './harms/harms.ts'
import { reportLines } from './report.ts'
import '../support/whole.ts'

const SECONDS = 45

test(`after ${SECONDS} s of load with injected faults, every operation was done exactly once, and no work is left`, async () => {
  const seed = crypto.getRandomValues(new Uint32Array(1))[0]!
  const lines: string[] = []
  const report = await runChaos({
    seed,
    seconds: SECONDS,
    harms: HARMS,
    onLine: (line) => lines.push(line),
  })
  process.stdout.write(
    `chaos: seed ${seed}, ${report.tally.sum('accepted')} accepted\n${report.repeats}\n`,
  )
  // The test prints the list of injected faults only if the audit found a contradiction.
  if (report.findings.length > 0) {
    process.stdout.write(`${[...lines, ...reportLines(report)].join('\n')}\n`)
  }
  expect(report.findings).toEqual([])
  expect(report.tally.sum('accepted')).toBeGreaterThan(0)
}, 240_000)
