import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from '../../sql/embedded/embeddedPostgres.ts'
import { waitFor } from '../support/waitFor.ts'
import { type RoughProxy, startRoughProxy } from './harms/roughProxy.ts'
import { childrenOf, freeze, isAlive } from './processes.ts'

const RESTART_LIMIT_MS = 60_000

/** Describes the database of the test environment. It is behind a proxy whose port never changes. */
export type Database = {
  /** Holds the database URL that leads through the proxy. */
  url: string
  /** Returns the database URL that does not go through the proxy. This URL changes at each start of the database. */
  directUrl(): string
  proxy: RoughProxy
  /** Holds the database server that the harness may kill, or null if the harness did not start the server. */
  server: OwnServer | null
  stop(): Promise<void>
}

/** Describes a durable PostgreSQL server that the harness may kill. */
type OwnServer = {
  /** Kills the main process of PostgreSQL with SIGKILL, and starts the server again on the same data. */
  killPostmaster(): Promise<void>
  /** Stops the PostgreSQL server in an orderly way, and starts it again. */
  restart(): Promise<void>
  /** Pauses all processes of the database server for a number of milliseconds. */
  freeze(ms: number): Promise<void>
}

/** Starts a PostgreSQL server behind a proxy. */
export async function startPostgres(dataDir: string): Promise<Database> {
  const start = () => startEmbeddedPostgres({ dataDir, durable: true, onLog: () => {} })
  let running: EmbeddedPostgres = await start()
  const portOf = ({ url }: EmbeddedPostgres) => Number(new URL(url).port)
  const proxy = await startRoughProxy(portOf(running))
  const postmaster = () =>
    Number(readFileSync(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8').split('\n')[0])
  const startAgain = async () => {
    // A new database server refuses to start until the last process of the killed server has ended.
    running = await waitFor(
      'the database to start again',
      () => start().catch(() => null),
      RESTART_LIMIT_MS,
    )
    proxy.target = portOf(running)
  }
  return {
    url: running.url.replace(`:${portOf(running)}/`, `:${proxy.port}/`),
    directUrl: () => running.url,
    proxy,
    server: {
      async killPostmaster() {
        const pid = postmaster()
        process.kill(pid, 'SIGKILL')
        await waitFor('the postmaster to be gone', () => !isAlive(pid))
        await startAgain()
      },
      async restart() {
        await running.stop()
        await startAgain()
      },
      async freeze(ms) {
        const pid = postmaster()
        await freeze([pid, ...childrenOf(pid)], ms)
      },
    },
    async stop() {
      await proxy[Symbol.asyncDispose]()
      await running.stop()
    },
  }
}
