import { readdirSync, readFileSync } from 'node:fs'

export type TreeProcess = { pid: number; command: string }

/** Returns all descendants of a process (Linux). */
export function processesBelow(pid: number): TreeProcess[] {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap(readProcess)
  const below = (parent: number): TreeProcess[] =>
    all
      .filter((one) => one.parent === parent)
      .flatMap((one) => [{ pid: one.pid, command: one.command }, ...below(one.pid)])
  return below(pid)
}

function readProcess(name: string): (TreeProcess & { parent: number })[] {
  try {
    // In /proc/PID/stat the name of the program is in parentheses and may contain blanks.
    const [, parent] = /^.*\) \S (\d+)/s.exec(readFileSync(`/proc/${name}/stat`, 'utf8')) ?? []
    const command = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
    return [{ pid: Number(name), parent: Number(parent), command }]
  } catch {
    // The process ended before this function read its files in /proc, so it is left out.
    return []
  }
}
