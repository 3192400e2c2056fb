import { readFileSync } from 'node:fs'
import { processesBelow } from '../support/process/processTree.ts'

/** Linux counts CPU time in ticks of this length, milliseconds. */
const TICK_MS = 10

/** CPU milliseconds so far of the worker processes and of PostgreSQL, below this process (Linux). */
export function cpuMs(): { workers: number; database: number } {
  const sum = { workers: 0, database: 0 }
  for (const { pid, command } of processesBelow(process.pid)) {
    if (command.includes('workers/main.ts')) sum.workers += cpuMsOf(pid)
    if (/postgres/.test(command.split(' ')[0] ?? '')) sum.database += cpuMsOf(pid)
  }
  return sum
}

/** Fields 14 to 17 of /proc/PID/stat: user and system time of the process and of its ended children (proc(5)). */
function cpuMsOf(pid: number): number {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    return fields.slice(11, 15).reduce((ms, ticks) => ms + Number(ticks) * TICK_MS, 0)
  } catch {
    // It ended in between.
    return 0
  }
}
