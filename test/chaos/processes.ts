import { readdirSync, readFileSync } from 'node:fs'

/** Finds the processes whose parent is the given process, by /proc. */
export function childrenOf(pid: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((child) => parentOf(child) === pid)
}

/** Finds all descendants of the given process: its children, the children of the children, and so on. */
export const descendantsOf = (pid: number): number[] =>
  childrenOf(pid).flatMap((child) => [child, ...descendantsOf(child)])

/** Reads the fourth field of /proc/PID/stat. The second field is in brackets and may hold any text. */
function parentOf(pid: number): number | null {
  const stat = readProc(pid, 'stat')
  if (stat === null) return null
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
}

/** Returns the arguments of a process, with spaces between. */
export const commandOf = (pid: number): string =>
  readProc(pid, 'cmdline')?.replaceAll('\0', ' ').trim() ?? ''

/** Finds the processes that have the given value in their environment. */
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

/** Returns whether a process runs. A process that has ended and waits for its parent does not run. */
export function isAlive(pid: number): boolean {
  const stat = readProc(pid, 'stat')
  return stat !== null && stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3) !== 'Z'
}

/** Sends a signal to a process. Returns false when the process has ended. */
export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name)
  } catch {
    return false
  }
}

/** Stops processes for a number of milliseconds. */
export async function freeze(pids: readonly number[], ms: number): Promise<void> {
  for (const pid of pids) signal(pid, 'SIGSTOP')
  try {
    await Bun.sleep(ms)
  } finally {
    for (const pid of pids) signal(pid, 'SIGCONT')
  }
}
