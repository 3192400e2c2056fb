import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbeddedPostgres } from '../../sql/embedded/embeddedPostgres.ts'
import { printed, startCommand, startProcess } from '../support/process/process.ts'
import { processesBelow, type TreeProcess } from '../support/process/processTree.ts'
import { readProc } from './cost.ts'
import { byTurns, type Row, rowOf } from './measure.ts'

/** Sets the number of processes that `npm start` runs: the supervisor, the devnet and five parts. */
const PROGRAMS = 7
/**
 * Sets the milliseconds within which every worker finishes its first sweep (the regular search for due work).
 */
const IDLE_MS = 20_000

type Start = { readyMs: number; memoryMb: number; parts: string }

/**
 * Compares `npm start` on existing data with a baseline on Linux. The baseline is PostgreSQL and as many empty Bun
 * processes as the service has.
 */
export async function startRows(): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'purser-bench-start-'))
  try {
    const [ours, empty] = await byTurns([
      () => startService(join(folder, 'ours')),
      () => startEmpty(join(folder, 'empty')),
    ])
    const figures = (starts: Start[], figure: 'readyMs' | 'memoryMb') =>
      starts.map((start) => start[figure])
    const detail = `PostgreSQL, and ${PROGRAMS} Bun processes without code`
    return [
      rowOf(
        { name: 'start to ready, warm', unit: 'ms', detail },
        figures(ours!, 'readyMs'),
        figures(empty!, 'readyMs'),
      ),
      rowOf(
        {
          name: 'memory of all parts, idle',
          unit: 'MB',
          detail: `${detail}; ${ours!.at(-1)!.parts}`,
        },
        figures(ours!, 'memoryMb'),
        figures(empty!, 'memoryMb'),
      ),
    ]
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function startService(dataDir: string): Promise<Start> {
  const others = running()
  const startMs = performance.now()
  await using service = startProcess('api/start.ts', {
    PORT: '0',
    SMTP_PORT: '0',
    DEVNET_PORT: '0',
    DATA_DIR: dataDir,
    LOG_LEVEL: 'warn',
  })
  await printed(service, /Purser is running/)
  return await measureIdle(performance.now() - startMs, others)
}

async function startEmpty(dataDir: string): Promise<Start> {
  const others = running()
  const startMs = performance.now()
  await using stack = new AsyncDisposableStack()
  const postgres = await startEmbeddedPostgres({ dataDir, onLog: () => {} })
  stack.defer(() => postgres.stop())
  const programs = Array.from({ length: PROGRAMS }, () =>
    stack.use(
      startCommand([process.execPath, '-e', 'console.log("up"); setInterval(() => {}, 1e6)'], {}),
    ),
  )
  for (const program of programs) await printed(program, /up/)
  return await measureIdle(performance.now() - startMs, others)
}

const running = () => processesBelow(process.pid)

/**
 * Waits until the workers have finished their first housekeeping. Then measures the memory of all processes except
 * those in `others`.
 */
async function measureIdle(readyMs: number, others: readonly TreeProcess[]): Promise<Start> {
  await Bun.sleep(IDLE_MS)
  const known = new Set(others.map(({ pid }) => pid))
  const parts = new Map<string, number>()
  for (const { pid, command } of running()) {
    const part = partOf(command)
    if (!known.has(pid)) parts.set(part, (parts.get(part) ?? 0) + memoryMbOf(pid))
  }
  const sorted = [...parts].toSorted(([, one], [, other]) => other - one)
  return {
    readyMs,
    memoryMb: sorted.reduce((sum, [, mb]) => sum + mb, 0),
    parts: sorted
      .filter(([, mb]) => mb >= 1)
      .map(([part, mb]) => `${part} ${mb.toFixed(0)}`)
      .join(', '),
  }
}

/** Returns the name of the worker pool or the main file of a Bun process, or the name of another program. */
function partOf(command: string): string {
  const [, file, pool] = /\/((?:api|workers)\/\S+)\.ts(?: --pool (\S+))?/.exec(command) ?? []
  if (file !== undefined) return pool ?? file
  return /^(?:\S*\/)?([\w.-]+)/.exec(command)?.[1] ?? 'other'
}

/**
 * Returns the memory of a process in MB. If several processes share a memory page, each process counts only its part of
 * the page (Pss of proc(5)).
 */
const memoryMbOf = (pid: number): number =>
  Number(/^Pss:\s+(\d+)/m.exec(readProc(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0) / 1024
