import { Database } from 'bun:sqlite'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import pino, { type Logger } from 'pino'
import { type Config, ConfigError } from '../shared/config/config.ts'
import { LOG_DESTINATION } from '../shared/process/logOptions.ts'
import { type Running, runService } from '../shared/process/service.ts'
import { bootstrap } from '../sql/account/bootstrap.ts'
import { checkDatabase } from '../sql/checkDatabase.ts'
import { startEmbeddedPostgres } from '../sql/embedded/embeddedPostgres.ts'
import { checkMasterKeys } from '../sql/keyring/keyring.ts'
import { migrate } from '../sql/migrate.ts'
import { startProcess } from './operations/childProcess.ts'
import { supervise } from './operations/supervise.ts'
import { welcome } from './operations/welcome.ts'

/**
 * Names the entry file and the command-line arguments of each part of the service. Payments have separate worker
 * processes, because in a shared process, a payment would wait while a worker processes bytes from unauthenticated
 * senders.
 */
const PARTS: Record<string, [file: string, ...args: string[]]> = {
  api: ['api/main.ts'],
  smtp: ['api/smtp/main.ts'],
  'mail workers': ['workers/main.ts', '--pool', 'mail'],
  'request workers': ['workers/main.ts', '--pool', 'webhooks,vault,purse'],
  'payment workers': ['workers/main.ts', '--pool', 'payments'],
}

/**
 * `npm start` starts and migrates the database and creates the first keys. After that, it starts each part of the
 * service as a process, with the command that an operator would use by hand. If a part ends, `npm start` starts this
 * part again. When `npm start` ends, it stops the parts in reverse order.
 */
await runService(
  process,
  {
    name: 'purser',
    // Standard output is for the welcome text, so the log goes to standard error.
    openLog: (options) => pino(options, pino.destination({ ...LOG_DESTINATION, dest: 2 })),
    drainLimitMs: 29_000,
  },
  async (config, log) => {
    const lock = holdDataDir(config)
    const stops: (() => Promise<void>)[] = [async () => lock.close()]
    const stop = async () => {
      for (const step of stops.toReversed()) await step()
    }
    try {
      const url = config.databaseUrl ?? (await startDatabase(config, log, stops))
      if (config.databaseUrl !== undefined) await checkDatabase(url)
      const applied = await migrate(url)
      log.debug({ applied }, 'the database is up to date')
      await checkMasterKeys(url, config)
      const keys = await bootstrap(url, config)
      const chain = await startChain(config, log, stops)
      const env = { ...process.env, DATABASE_URL: url, DEVNET_PORT: String(chain.devnetPort) }
      await startParts(env, log, stops)
      process.stdout.write(welcome({ ...config, chain }, keys, keys.signInToken))
      return { stop } satisfies Running
    } catch (error) {
      await stop()
      throw error
    }
  },
)

type Environment = Record<string, string | undefined>
type Stops = (() => Promise<void>)[]

/** Starts all parts of the service. If a part of the service cannot start, stops all parts that have started. */
async function startParts(env: Environment, log: Logger, stops: Stops): Promise<void> {
  const starts = await Promise.allSettled(
    Object.entries(PARTS).map(async ([name, command]) => {
      const part = await supervise(name, () => startProcess(name, command, env), log)
      return part
    }),
  )
  const parts = starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []))
  stops.push(async () => {
    await Promise.all(parts.map((part) => part.stop()))
  })
  for (const start of starts) if (start.status === 'rejected') throw start.reason
}

/** Starts the local devnet unless RPC_URL is set. The devnet keeps its port after a restart. */
async function startChain(config: Config, log: Logger, stops: Stops): Promise<Config['chain']> {
  const { chain } = config
  if (!chain.embeddedDevnet) return chain
  let env: Environment = process.env
  const devnet = await supervise(
    'devnet',
    async () => {
      const started = await startProcess('devnet', ['workers/devnet/main.ts'], env)
      env = { ...process.env, DEVNET_PORT: started.facts.port }
      return started
    },
    log,
  )
  stops.push(() => devnet.stop())
  const devnetPort = Number(env.DEVNET_PORT)
  if (!chain.devnetPortIsGiven && devnetPort !== chain.devnetPort) {
    log.warn({ port: devnetPort }, `port ${chain.devnetPort} is taken: the devnet uses another`)
  }
  return { ...chain, devnetPort, rpcUrls: [`http://127.0.0.1:${devnetPort}`] }
}

async function startDatabase(config: Config, log: Logger, stops: Stops): Promise<string> {
  let port = 0
  let url = ''
  const database = await supervise(
    'database',
    async () => {
      const started = await startEmbeddedPostgres({
        dataDir: config.dataDir,
        port,
        onLog: (line) => log.debug({ line }, 'postgres'),
      })
      ;({ port, url } = started)
      return started
    },
    log,
  )
  stops.push(() => database.stop())
  return url
}

/**
 * Locks DATA_DIR for this process with a lock on an SQLite file. The operating system releases the lock when the
 * process ends.
 * @throws {ConfigError} if this process cannot write to DATA_DIR, or if another process has locked DATA_DIR.
 */
function holdDataDir({ dataDir }: Config): Database {
  let lock: Database
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
    lock = new Database(join(dataDir, 'lock.sqlite'), { create: true })
    lock.run('pragma user_version = 1')
  } catch (error) {
    const { code, message } = error as { code?: string; message: string }
    if (code === 'SQLITE_BUSY') throw inUse(dataDir)
    throw new ConfigError(
      `DATA_DIR: ${dataDir} cannot be written (${code ?? message}); name a folder that this user may write to`,
    )
  }
  try {
    lock.run('pragma busy_timeout = 0')
    lock.run('begin exclusive')
  } catch {
    throw inUse(dataDir)
  }
  return lock
}

function inUse(dataDir: string): ConfigError {
  return new ConfigError(
    `DATA_DIR: ${dataDir} is in use by another running service; stop that one, or name another folder`,
  )
}
