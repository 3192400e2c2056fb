/**
 * Starts a child process, prints its process id, and gives it endless work. child.test.ts kills the process that runs
 * this program.
 */
import { join } from 'node:path'
import { createChildren } from '../../../workers/process/child.ts'

const children = createChildren<string, number>({
  file: join(import.meta.dir, 'childProgram.ts'),
  name: 'the program',
  limits: { timeMaxMs: 600_000, memoryMaxBytes: 1024 * 1024 * 1024 },
})
process.stdout.write(`child ${(await children.run('pid')).result}\n`)
await children.run('spin')
