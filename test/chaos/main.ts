/**
 * The command `bun run chaos` runs the service under load and injected faults for a while, and then audits the service.
 * The exit code is 1 if the audit finds a contradiction.
 */
import { parseArgs } from 'node:util'
import { runChaos } from './chaos.ts'
import { HARM_NAMES, HARMS } from './harms/harms.ts'
import { reportLines } from './report.ts'

const USAGE = `usage: bun run chaos [--seconds 120] [--seed 1] [--harm ${HARM_NAMES.join(',')}|none] [--log FILE]`
const write = (line: string) => process.stdout.write(`${line}\n`)

function readArguments() {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string', default: '120' },
      seed: { type: 'string', default: String(crypto.getRandomValues(new Uint32Array(1))[0]) },
      harm: { type: 'string', default: HARM_NAMES.join(',') },
      log: { type: 'string' },
    },
  })
  const seconds = Number(values.seconds)
  const seed = Number(values.seed)
  const kinds = values.harm === 'none' ? [] : values.harm.split(',')
  if (!(seconds > 0) || !Number.isSafeInteger(seed)) throw new Error(USAGE)
  const chosen = Object.entries(HARMS).filter(([name]) => kinds.includes(name))
  if (chosen.length !== kinds.length) throw new Error(USAGE)
  const harms = Object.fromEntries(chosen)
  return { seconds, seed, harms, ...(values.log === undefined ? {} : { logFile: values.log }) }
}

const interrupted = new AbortController()
process.once('SIGINT', () => interrupted.abort())
try {
  const options = readArguments()
  write(`seed ${options.seed}`)
  let seconds = 0
  const report = await runChaos({
    ...options,
    onLine: write,
    onProgress: (line) => {
      if (process.stdout.isTTY) process.stdout.write(`\r${line}`)
      else if (seconds++ % 10 === 9) write(line)
    },
    signal: interrupted.signal,
  })
  for (const line of reportLines(report)) write(line)
  process.exit(report.findings.length === 0 ? 0 : 1)
} catch (error) {
  write((error as Error).message)
  process.exit(2)
}
