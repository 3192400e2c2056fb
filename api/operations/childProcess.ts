import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { ConfigError } from '../../shared/config/config.ts'
import { type ServiceMessage, StartError } from '../../shared/process/service.ts'
import type { RunningPart } from './supervise.ts'

const ROOT = join(import.meta.dir, '../..')
const READY_TIMEOUT_MS = 25_000

export type ReadyProcess = RunningPart & {
  /** Holds the facts that a child process reported when it was ready. */
  facts: Record<string, string>
}

/**
 * Starts an entry file as a child process. The returned promise resolves when the child process is ready.
 * @throws {ConfigError} with the error line of a child process that refuses its settings.
 * @throws {StartError} if the child process ends before it is ready, or is not ready in time.
 */
export async function startProcess(
  name: string,
  [file, ...args]: readonly [file: string, ...args: string[]],
  env: Record<string, string | undefined>,
): Promise<ReadyProcess> {
  const child = spawn(process.execPath, [join(ROOT, file), ...args], {
    cwd: ROOT,
    // A child process opens no health port, because the supervisor process reports the health of all parts on one port.
    env: { ...env, HEALTH_PORT: undefined },
    // A child process writes its log to stderr, because stdout is for the welcome text. It exchanges messages with this
    // process over the fourth stream.
    stdio: ['ignore', 2, 2, 'ipc'],
    // The child process has a separate process group. Otherwise Ctrl-C in the terminal would reach it twice: directly,
    // and through this process.
    detached: true,
  })
  const ended = new Promise<string>((resolve) => {
    child.once('exit', (code, signal) => resolve(`${name} ended (${signal ?? `exit ${code}`})`))
    // The code also listens for `error`, because a process that cannot be started, for example during an update of the
    // program, causes no event `exit`.
    child.on('error', ({ message }) => {
      if (child.pid === undefined) resolve(`${name} could not start: ${message}`)
    })
  })
  const facts = await untilReady(name, child, ended)
  return {
    facts,
    ended,
    async stop() {
      child.kill('SIGTERM')
      await ended
    },
  }
}

async function untilReady(
  name: string,
  child: ChildProcess,
  ended: Promise<string>,
): Promise<Record<string, string>> {
  const { promise, resolve, reject } = Promise.withResolvers<Record<string, string>>()
  let failure: Error | undefined
  child.on('message', (message: ServiceMessage) => {
    if ('ready' in message) return resolve(message.ready)
    const { line, isSetting } = message.failed
    failure = isSetting ? new ConfigError(line) : new StartError(line)
  })
  const timer = setTimeout(() => {
    failure = new StartError(`${name} was not ready in ${READY_TIMEOUT_MS / 1000} s`)
    child.kill('SIGKILL')
  }, READY_TIMEOUT_MS)
  void ended.then((reason) => reject(failure ?? new StartError(reason)))
  try {
    return await promise
  } finally {
    clearTimeout(timer)
  }
}
