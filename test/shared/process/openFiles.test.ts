import { expect, test } from 'bun:test'
import { watchOpenFiles } from '../../../shared/process/openFiles.ts'
import { waitFor } from '../../support/waitFor.ts'

/**
 * Starts to watch the file descriptors of a process with the given limit. `lines` collects the log lines.
 */
function watch(limit: number | null) {
  const lines: [string, object, string][] = []
  let open = 0
  let looks = 0
  const say = (level: string) => (fields: object, message: string) => {
    lines.push([level, fields, message])
  }
  const log = { warn: say('warn'), error: say('error') }
  const files = {
    limit: () => limit,
    count() {
      looks++
      return open
    },
  }
  watchOpenFiles(log as never, files, 1)
  return {
    lines,
    looks: () => looks,
    async open(count: number) {
      open = count
      const before = looks
      await waitFor('two looks at the open files', async () => looks >= before + 2)
    },
  }
}

const SHORT = 'open files run out: connections wait; raise the limit (ulimit -n)'
const FREE = 'open files are free again'

test('a process logs an error when it has opened 90 % of its allowed files, and another line when it is below 80 % again', async () => {
  const { lines, open } = watch(10_000)
  await open(8_999)
  expect(lines).toEqual([])
  await open(9_000)
  await open(9_500)
  await open(8_000)
  expect(lines).toEqual([['error', { open: 9_000, limit: 10_000 }, SHORT]])
  await open(7_999)
  expect(lines.at(-1)).toEqual(['warn', { open: 7_999, limit: 10_000 }, FREE])
  await open(10_000)
  expect(lines).toHaveLength(3)
})

test('if a process cannot count its open files, it logs as if all allowed files were open', async () => {
  const { lines, open } = watch(10_000)
  await open(Number.POSITIVE_INFINITY)
  expect(lines).toEqual([['error', { open: 10_000, limit: 10_000 }, SHORT]])
})

test('a process logs a warning at its start if its limit on open files is below 1,024', () => {
  const low = 'the limit of open files is low: set it to 1024 or more (ulimit -n)'
  expect(watch(1_023).lines).toEqual([['warn', { limit: 1_023 }, low]])
  expect(watch(1_024).lines).toEqual([])
})

test('the open files of a process are not watched on a system without a limit', async () => {
  const unlimited = watch(null)
  const limited = watch(10_000)
  await limited.open(0)
  expect([unlimited.looks(), unlimited.lines]).toEqual([0, []])
})
