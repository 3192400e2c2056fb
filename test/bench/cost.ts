import { readFileSync } from 'node:fs'
import { processesBelow } from '../support/process/processTree.ts'
import type { Setting } from './setting.ts'

/** Holds the measured cost of one job, or of one HTTP request. */
export type Cost = {
  perSecond: number
  /** Holds the CPU time that the service’s processes use for one job or request, in milliseconds. */
  oursMs: number
  databaseMs: number
  /** Holds the average number of CPU cores that the service's processes and the database together kept busy. */
  cores: number
  walKb: number
  /**
   * The following fields hold the peak memory of the service’s processes in MB, and the number of their database
   * connections.
   */
  memoryMb: number
  connections: number
}

/**
 * Begins to measure the cost of some work. @param ours is the path of the main file of the service's processes that are
 * measured.
 * @returns a function that ends the measurement and returns the mean cost of each of the `count` jobs
 */
export async function beginCost(
  { pool }: Setting,
  ours = 'workers/main.ts',
): Promise<(count: number) => Promise<Cost>> {
  const wal = async () => {
    const { rows } = await pool.query(`select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') as n`)
    return Number(rows[0].n)
  }
  const walBefore = await wal()
  const [before, startMs] = [cpuMs(ours), performance.now()]
  return async (count) => {
    const [ms, after] = [performance.now() - startMs, cpuMs(ours)]
    const { rows } = await pool.query(
      `select count(*)::int as n from pg_stat_activity
       where datname = current_database() and application_name like 'purser %'`,
    )
    const [oursMs, databaseMs] = [after.ours - before.ours, after.database - before.database]
    return {
      perSecond: (count * 1000) / ms,
      oursMs: oursMs / count,
      databaseMs: databaseMs / count,
      cores: (oursMs + databaseMs) / ms,
      walKb: ((await wal()) - walBefore) / 1024 / count,
      memoryMb: memoryMb(ours),
      connections: rows[0].n,
    }
  }
}

/** Writes the mean costs over several measured rounds as text. */
export function costText(rounds: readonly Cost[]): string {
  const mean = (field: keyof Cost) =>
    rounds.reduce((sum, one) => sum + one[field], 0) / rounds.length
  return (
    `CPU of one: ${mean('oursMs').toFixed(2)} ms ours, ${mean('databaseMs').toFixed(2)} ms database, ` +
    `${mean('walKb').toFixed(2)} KB of WAL; ${mean('cores').toFixed(2)} cores, ${mean('memoryMb').toFixed(0)} MB, ` +
    `${mean('connections').toFixed(0)} connections`
  )
}

/** Sets the milliseconds of one clock tick, the unit in which Linux counts CPU time. */
const TICK_MS = 10

/**
 * Returns the CPU milliseconds of those descendants of this process that belong to the service or to PostgreSQL
 * (Linux).
 */
function cpuMs(ours: string): { ours: number; database: number } {
  const sum = { ours: 0, database: 0 }
  for (const { pid, command } of processesBelow(process.pid)) {
    if (command.includes(ours)) sum.ours += cpuMsOf(pid)
    if (/postgres/.test(command.split(' ')[0] ?? '')) sum.database += cpuMsOf(pid)
  }
  return sum
}

/** Returns the sum of the peak memory of the service's processes (VmHWM of proc(5)), in MB. */
function memoryMb(ours: string): number {
  const kb = processesBelow(process.pid)
    .filter(({ command }) => command.includes(ours))
    .map(({ pid }) => /VmHWM:\s+(\d+)/.exec(readProc(`/proc/${pid}/status`))?.[1] ?? '0')
  return kb.reduce((sum, one) => sum + Number(one), 0) / 1024
}

/**
 * Adds fields 14 to 17 of /proc/PID/stat, which are the user and system time of a process and of its ended children
 * (proc(5)).
 */
function cpuMsOf(pid: number): number {
  const text = readProc(`/proc/${pid}/stat`)
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return fields.slice(11, 15).reduce((ms, ticks) => ms + Number(ticks) * TICK_MS, 0)
}

/** Reads a file of /proc. @returns an empty string, '', for a process that has ended */
export function readProc(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
