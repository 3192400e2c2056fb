import { readdirSync, readFileSync } from 'node:fs'

/** Finds in /proc the processes whose parent is the given process. */
export function childrenOf(pid: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((child) => parentOf(child) === pid)
}

/** Finds all descendants of the given process: its children, the children of the children, and so on. */
export const descendantsOf = (pid: number): number[] =>
  childrenOf(pid).flatMap((child) => [child, ...descendantsOf(child)])

/**
 * Reads the fourth field of /proc/PID/stat. The second field is in brackets and may contain any text, so the position
 * of the fourth field is counted from the last bracket.
 */
function parentOf(pid: number): number | null {
  const stat = readProc(pid, 'stat')
  if (stat === null) return null
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
}

/** Returns the arguments of a process, separated by spaces. */
export const commandOf = (pid: number): string =>
  readProc(pid, 'cmdline')?.replaceAll('\0', ' ').trim() ?? ''

/** Finds the processes whose environment contains the given value. */
export const processesWith = (name: string, value: string): number[] =>
  readdirSync('/proc')
    .filter((pid) => /^\d+$/.test(pid))
    .map(Number)
    .filter((pid) => isAlive(pid))
    .filter((pid) => readProc(pid, 'environ')?.split('\0').includes(`${name}=${value}`))

function readProc(pid: number, file: string): string | null {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return null
  }
}

/**
 * Tells whether a process is running. A zombie (a process that has ended and only waits until its parent collects it)
 * does not count as running.
 */
export function isAlive(pid: number): boolean {
  const stat = readProc(pid, 'stat')
  return stat !== null && stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3) !== 'Z'
}

/** Sends a signal to a process. Returns false if the process has ended. */
export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name)
  } catch {
    return false
  }
}

/** Pauses processes for a number of milliseconds. */
export async function freeze(pids: readonly number[], ms: number): Promise<void> {
  for (const pid of pids) signal(pid, 'SIGSTOP')
  try {
    await Bun.sleep(ms)
  } finally {
    for (const pid of pids) signal(pid, 'SIGCONT')
  }
}
