import type { ChaosReport } from './chaos.ts'

/** The end of a run, line by line. */
export function reportLines(report: ChaosReport): string[] {
  const { seed, seconds, harms, tally, longestSilenceMs, findings } = report
  const silences = Object.entries(longestSilenceMs).map(
    ([part, ms]) => `${part} ${(ms / 1000).toFixed(1)} s`,
  )
  return [
    `seed ${seed}, ${seconds} s`,
    `harms: ${[...harms].map(([kind, count]) => `${kind} ${count}`).join(', ') || 'none'}`,
    ...tally.lines(),
    `longest silence: ${silences.join(', ')}`,
    ...(findings.length === 0
      ? ['no findings']
      : [`${findings.length} findings:`, ...findings.map((finding) => `  ${finding}`)]),
  ]
}
