/**
 * Measures the functions that read untrusted text in a separate process, because the measurement replaces built-in
 * methods. The arguments are the bundle, the name of its export, and the effort as JSON. The program prints its report
 * as JSON.
 */
import { countBuiltIns } from './builtIns.ts'
import { type Effort, type Growth, growthOf } from './measure.ts'
import type { Reader } from './readers/reader.ts'
import { countRegexes, differences } from './regex/regexes.ts'

export type Report = { growths: (Growth & { isLinear: boolean })[]; differences: string[] }

const [, , bundle, table, effort, filter] = process.argv
countBuiltIns()
countRegexes()
const readers = (await import(bundle!))[table!] as Reader[]
const growths: Report['growths'] = []
for (const reader of readers) {
  if (filter !== undefined && !reader.name.includes(filter)) continue
  const started = performance.now()
  const { isLinear, worst } = await growthOf(reader, JSON.parse(effort!) as Effort)
  growths.push({ ...worst, isLinear })
  if (process.env.STEPS_VERBOSE) {
    const ms = Math.round(performance.now() - started)
    const { ratio, steps, length, shape } = worst
    process.stderr.write(
      `${isLinear ? 'linear' : 'OVER'} ${reader.name}: ${ratio.toFixed(2)}, ${steps} steps for ${length} of ${shape}, ${ms} ms\n`,
    )
  }
}
process.stdout.write(JSON.stringify({ growths, differences } satisfies Report))
