import { Database } from 'bun:sqlite'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { type Config, ConfigError } from '../shared/config.ts'
import { type Running, runService } from '../shared/service.ts'
import { bootstrap } from '../sql/bootstrap.ts'
import { freePort, startEmbeddedPostgres } from '../sql/embedded.ts'
import { checkMasterKeys } from '../sql/keyring.ts'
import { migrate } from '../sql/migrate.ts'
import { startDevnetPart, startParts } from './parts.ts'
import { welcome } from './welcome.ts'

/**
 * `npm start`: everything in one go. It brings up the database, migrates it, makes sure that there are keys, starts the
 * three parts as processes of their own — the very ones an operator starts by hand — and stops them in reverse order.
 */
await runService(
  process,
  { name: 'purser', logTo: 'stderr', drainLimitMs: 29_000 },
  async (config, log) => {
    const lock = holdDataDir(config)
    const stops: (() => Promise<void>)[] = [async () => lock.close()]
    const stop = async () => {
      for (const step of stops.toReversed()) await step()
    }
    try {
      const url = config.databaseUrl ?? (await startDatabase(config, log, stops))
      const applied = await migrate(url)
      log.debug({ applied }, 'the database is up to date')
      await checkMasterKeys(url, config)
      const keys = await bootstrap(url, config)
      const chain = await startChain(config, log, stops)
      const env = { ...process.env, DATABASE_URL: url, DEVNET_PORT: String(chain.devnetPort) }
      const parts = await startParts(env, log)
      stops.push(() => parts.stop())
      process.stdout.write(welcome({ ...config, chain }, keys, keys.signInToken))
      return { stop } satisfies Running
    } catch (error) {
      await stop()
      throw error
    }
  },
)

/** Brings up the devnet unless there is an RPC to use; of port 0 it makes one that is free. */
async function startChain(
  config: Config,
  log: Logger,
  stops: (() => Promise<void>)[],
): Promise<Config['chain']> {
  const { chain } = config
  if (!chain.embeddedDevnet) return chain
  const devnetPort = chain.devnetPort === 0 ? await freePort() : chain.devnetPort
  const devnet = await startDevnetPart({ ...process.env, DEVNET_PORT: String(devnetPort) }, log)
  stops.push(() => devnet.stop())
  return { ...chain, devnetPort, rpcUrl: `http://127.0.0.1:${devnetPort}` }
}

async function startDatabase(
  config: Config,
  log: Logger,
  stops: (() => Promise<void>)[],
): Promise<string> {
  const database = await startEmbeddedPostgres({
    dataDir: config.dataDir,
    onLog: (line) => log.debug({ line }, 'postgres'),
  })
  stops.push(() => database.stop())
  return database.url
}

/**
 * Holds DATA_DIR for this process: an SQLite lock, which the system frees when the process ends, however it ends.
 * @throws {ConfigError} when another process holds it.
 */
function holdDataDir(config: Config): Database {
  mkdirSync(config.dataDir, { recursive: true, mode: 0o700 })
  const lock = new Database(join(config.dataDir, 'lock.sqlite'), { create: true })
  try {
    lock.run('pragma busy_timeout = 0')
    lock.run('begin exclusive')
  } catch {
    throw new ConfigError(`DATA_DIR: ${config.dataDir} is in use by another running service`)
  }
  return lock
}
