import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Running } from '../shared/service.ts'

/** The embedded devnet, which the workers need before they start. */
const DEVNET = { devnet: 'workers/till/devnetMain.ts' } as const

/** The parts of the service, and the files that start them. */
const PARTS = { api: 'api/main.ts', smtp: 'api/smtp/main.ts', workers: 'workers/main.ts' } as const

const ROOT = join(import.meta.dir, '..')
const RESTART_DELAY_MS = 1_000
const READY_TIMEOUT_MS = 25_000

/** Starts the embedded devnet as a process of its own. */
export const startDevnetPart = (env: Record<string, string | undefined>, log: Logger) =>
  startProcesses(DEVNET, env, log)

/**
 * Starts every part as a process of its own and resolves when all are ready. A part that dies is started again; a part
 * that cannot start in the first place is an error.
 */
export const startParts = (env: Record<string, string | undefined>, log: Logger) =>
  startProcesses(PARTS, env, log)

async function startProcesses(
  files: Readonly<Record<string, string>>,
  env: Record<string, string | undefined>,
  log: Logger,
): Promise<Running> {
  const parts = Object.entries(files).map(([name, file]) => superviseProcess(name, file, env, log))
  const stop = async () => {
    await Promise.all(parts.map((part) => part.stop()))
  }
  try {
    await Promise.all(parts.map((part) => part.ready))
  } catch (error) {
    await stop()
    throw error
  }
  return { stop }
}

function superviseProcess(
  name: string,
  file: string,
  env: Record<string, string | undefined>,
  log: Logger,
) {
  const { promise: ready, resolve: isReady, reject: failed } = Promise.withResolvers<void>()
  let wasReady = false
  let stopping = false
  let child: ChildProcess
  let exited: Promise<void>
  let restart: ReturnType<typeof setTimeout> | undefined

  const launch = () => {
    child = spawn(process.execPath, [join(ROOT, file)], {
      cwd: ROOT,
      env,
      // Logs go to stderr: stdout belongs to the welcome block. The fourth is the channel that says "ready".
      stdio: ['ignore', 2, 2, 'ipc'],
      // A group of its own: Ctrl-C in the terminal must reach it once, from here.
      detached: true,
    })
    child.on('message', () => {
      wasReady = true
      isReady()
    })
    exited = new Promise((resolve) => {
      child.on('exit', (code, signal) => {
        resolve()
        if (stopping) return
        if (!wasReady) return failed(new Error(`${name} could not start (exit ${code ?? signal})`))
        log.error({ part: name, code, signal }, 'a part died; starting it again')
        restart = setTimeout(launch, RESTART_DELAY_MS)
      })
    })
  }
  launch()
  const timer = setTimeout(
    () => failed(new Error(`${name} was not ready in time`)),
    READY_TIMEOUT_MS,
  )
  ready.then(
    () => clearTimeout(timer),
    () => clearTimeout(timer),
  )
  return {
    ready,
    async stop() {
      stopping = true
      clearTimeout(restart)
      child.kill('SIGTERM')
      await exited
    },
  }
}
