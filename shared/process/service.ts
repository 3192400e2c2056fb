import type { Logger, LoggerOptions } from 'pino'
import { type Config, ConfigError, parseConfig } from '../config/config.ts'
import { AwayError } from '../config/configError.ts'
import { misspeltLine, misspeltVariables } from '../config/misspelt.ts'
import { ALL_SECRETS, type ReadSecret } from '../config/secrets.ts'
import { serveHealth } from './healthPort.ts'
import { logOptions } from './logOptions.ts'
import { watchOpenFiles } from './openFiles.ts'
import { startTracing } from './tracing.ts'

/**
 * Describes the operating system process that runs a service. Only the entry file reads the environment, and passes it
 * to the service in this object.
 */
export type Host = Pick<
  NodeJS.Process,
  'env' | 'on' | 'exit' | 'exitCode' | 'send' | 'connected'
> & {
  stderr: { write(text: string): unknown }
}

/**
 * Reports that a process could not start, for a reason that no setting can repair. The `message` explains the failure
 * in one line.
 */
export class StartError extends Error {}

/** Describes a message of a service to its parent process. */
export type ServiceMessage =
  | { ready: Record<string, string> }
  | { failed: { line: string; isSetting: boolean } }

export type Running = {
  /**
   * Holds a promise that resolves with a reason when the service ends by itself. A service without the promise `ended`
   * never ends by itself.
   */
  ended?: Promise<string>
  /** Holds facts about the service for its parent process, such as a port that the service chose. */
  facts?: Record<string, string>
  /**
   * Refuses new work and finishes accepted work. The promise resolves when the service has finished all accepted work.
   */
  stop(): Promise<void>
}

/**
 * Sets the time for which a stopping service waits for accepted work. The time is limited, because the supervisor of
 * the service must end within 30 s.
 */
const DRAIN_LIMIT_MS = 20_000

/** Sets the maximum number of milliseconds for writing the last log lines before the process ends. */
const FLUSH_LIMIT_MS = 1_000

/**
 * Runs a service from its entry file. The function reads the configuration, starts the service, and tells a parent
 * process that the service is ready. On SIGTERM or SIGINT the service finishes accepted work and exits with code 0. A
 * wrong setting ends the process with one line on stderr and exit code 78 (EX_CONFIG). An unreachable server ends the
 * process with exit code 1, so that the process supervisor starts the process again.
 */
export async function runService(
  host: Host,
  {
    name,
    openLog,
    secrets = () => ALL_SECRETS,
    drainLimitMs = DRAIN_LIMIT_MS,
  }: {
    name: string
    openLog: (options: LoggerOptions) => Logger
    /**
     * Returns the secrets that the process uses. If `secrets` is absent, the process uses all secrets. @throws
     * {ConfigError} if the process has wrong arguments.
     */
    secrets?: () => readonly ReadSecret[]
    drainLimitMs?: number
  },
  start: (config: Config, log: Logger) => Promise<Running>,
): Promise<void> {
  let log: Logger | undefined
  const exit = (code: number) => {
    if (log === undefined) host.exit(code)
    log?.flush(() => host.exit(code))
    setTimeout(() => host.exit(code), FLUSH_LIMIT_MS)
  }
  let running: Promise<Running> | undefined
  let tracing: { stop(): Promise<void> } | undefined
  let ready = false
  let stopping = false
  const stop = async (signal: string) => {
    if (stopping) return
    stopping = true
    log?.info({ signal }, 'draining')
    const limit = setTimeout(() => {
      log?.error('drain took too long')
      exit(1)
    }, drainLimitMs)
    try {
      await (await running)?.stop()
      await tracing?.stop()
      clearTimeout(limit)
      log?.info('stopped')
      exit(0)
    } catch (error) {
      log?.error({ err: error }, 'drain failed')
      exit(1)
    }
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) host.on(signal, () => void stop(signal))

  try {
    const config = parseConfig(host.env, secrets())
    const opened = openLog(logOptions(name, config.logLevel))
    log = opened
    // A service with a parent process does not warn about misspelt variables, because the parent process has the same
    // environment and warns only once.
    if (!host.connected) {
      for (const one of misspeltVariables(host.env)) opened.warn(misspeltLine(one))
    }
    watchOpenFiles(opened)
    if (config.health !== null) {
      const { port } = serveHealth(config.health, () => ready && !stopping)
      opened.info({ port }, 'health')
    }
    if (config.traceEndpoint !== null) {
      tracing = await startTracing({ endpoint: config.traceEndpoint, service: name })
    }
    running = start(config, opened)
    const { ended, facts = {} } = await running
    ready = true
    opened.info('ready')
    void ended?.then((reason) => {
      if (stopping) return
      opened.fatal({ reason }, 'the service ended by itself')
      exit(1)
    })
    // When the parent process ends, the service stops. Otherwise a second start would run a second process beside the
    // old one.
    host.on('disconnect', () => void stop('disconnect'))
    host.send?.({ ready: facts } satisfies ServiceMessage)
  } catch (error) {
    if (stopping) return
    const isSetting = error instanceof ConfigError && !(error instanceof AwayError)
    const line = startFailure(name, error)
    // A service with a parent process does not print the reason of its failed start, because the parent prints it. The
    // parent prints the reason only once, even if it starts the service several times.
    if (host.connected) host.send?.({ failed: { line, isSetting } } satisfies ServiceMessage)
    else host.stderr.write(`${line}\n`)
    exit(isSetting ? 78 : 1)
  }
}

function startFailure(name: string, error: unknown): string {
  if (error instanceof ConfigError || error instanceof StartError) return error.message
  return `${name} could not start: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`
}
