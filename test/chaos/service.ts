import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { waitFor } from '../support/waitFor.ts'
import { childrenOf, commandOf, descendantsOf, processesWith, signal } from './processes.ts'

const ROOT = join(import.meta.dir, '../..')
const READY_LIMIT_MS = 60_000
const RESTART_DELAY_MS = 500
const LEAVE_LIMIT_MS = 5_000
const READY = /"service":"purser","msg":"ready"/

/** Maps the parts of the service that `npm start` supervises to the files that they run. */
const PARTS = {
  api: 'api/main.ts',
  smtp: 'api/smtp/main.ts',
  workers: 'workers/main.ts',
} as const
export type PartName = keyof typeof PARTS

/**
 * Describes the whole service, which the harness starts as `npm start` does. If the service ends, the harness starts it
 * again.
 */
export type Service = {
  logFile: string
  /**
   * Lists the process ids of one part of the service. The list is empty while this part or the supervisor is starting.
   */
  pidsOf(part: PartName): number[]
  /** Kills every process of the service at once, as a power cut would. */
  killAll(): void
  /** Waits until the service is ready after its last start. */
  untilReady(): Promise<unknown>
  /** Lists the exit codes of supervisors that ended by themselves after they were ready. */
  ownEnds: string[]
  /** Stops the service with SIGTERM, as an operator does. @returns the exit code of the service */
  stop(): Promise<number | string>
  /** Lists the commands of those processes of the service that still run after LEAVE_LIMIT_MS. */
  remaining(): Promise<string[]>
}

/** Starts the service and waits until the service is ready. */
export async function startService(env: Record<string, string>, logFile: string): Promise<Service> {
  const { PATH = '', HOME = '' } = process.env
  let child: ChildProcess
  let ended: Promise<number | string>
  let restart: ReturnType<typeof setTimeout> | undefined
  let stopping = false
  let killed = false
  let logBegin = 0
  const isReady = () => !killed && READY.test(readFileSync(logFile).subarray(logBegin).toString())
  const service: Service = {
    logFile,
    pidsOf(part) {
      // If a process is killed during the first start, the whole service ends. Therefore the function returns no
      // process ids before the service is ready.
      const pids = child.pid === undefined || !isReady() ? [] : childrenOf(child.pid)
      return pids.filter((pid) => commandOf(pid).split(' ').includes(join(ROOT, PARTS[part])))
    },
    killAll() {
      if (child.pid === undefined) return
      killed = true
      const pids = [child.pid, ...descendantsOf(child.pid)]
      for (const pid of pids) signal(pid, 'SIGKILL')
    },
    untilReady: () => waitFor('the service to be ready', isReady, READY_LIMIT_MS),
    ownEnds: [],
    async stop() {
      stopping = true
      clearTimeout(restart)
      child.kill('SIGTERM')
      return ended
    },
    async remaining() {
      const left = () => processesWith('DATA_DIR', env.DATA_DIR ?? '')
      await waitFor('no process', () => left().length === 0, LEAVE_LIMIT_MS).catch(() => {})
      return left().map(commandOf)
    },
  }
  const launch = () => {
    const log = openSync(logFile, 'a')
    logBegin = statSync(logFile).size
    child = spawn(process.execPath, [join(ROOT, 'api/start.ts')], {
      cwd: ROOT,
      env: { PATH, HOME, ...env },
      // The welcome text on stdout contains the API keys, so only stderr, which has the log of the service, is stored.
      stdio: ['ignore', 'ignore', log],
    })
    closeSync(log)
    killed = false
    ended = new Promise((resolve) => {
      child.once('exit', (code, name) => {
        resolve(code ?? name ?? 'unknown')
        if (stopping) return
        if (isReady()) service.ownEnds.push(String(code ?? name))
        restart = setTimeout(launch, RESTART_DELAY_MS)
      })
    })
  }
  launch()
  try {
    await service.untilReady()
  } catch (error) {
    await service.stop()
    throw error
  }
  return service
}
