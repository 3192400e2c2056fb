import type { ChaosReport } from './chaos.ts'

const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`

/** Returns the lines of the report at the end of a chaos run. */
export function reportLines(report: ChaosReport): string[] {
  const { seed, harms, tally, longestSilence, findings } = report
  const silences = Object.entries(longestSilence).map(
    ([part, { ms, fromMs }]) => `${part} ${seconds(ms)} (from ${seconds(fromMs)})`,
  )
  return [
    `seed ${seed}, ${report.seconds} s`,
    `harms: ${[...harms].map(([kind, count]) => `${kind} ${count}`).join(', ') || 'none'}`,
    ...tally.lines(),
    report.repeats,
    `longest silence: ${silences.join(', ')}`,
    ...(findings.length === 0
      ? ['no findings']
      : [`${findings.length} findings:`, ...findings.map((finding) => `  ${finding}`)]),
  ]
}
