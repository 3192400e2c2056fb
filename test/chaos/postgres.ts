import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../sql/embedded.ts'
import { waitFor } from '../support/waitFor.ts'
import { childrenOf, freeze, isAlive } from './processes.ts'
import { type RoughProxy, startRoughProxy } from './roughProxy.ts'

const RESTART_LIMIT_MS = 60_000

/** A durable PostgreSQL server that may die, behind a port that stays. */
export type Postgres = {
  /** Through the proxy. */
  url: string
  /** Past the proxy; changes with every start. */
  directUrl(): string
  proxy: RoughProxy
  /** Kills the postmaster with SIGKILL and starts the server again on the same data. */
  killPostmaster(): Promise<void>
  /** Ends the server in order and starts it again. */
  restart(): Promise<void>
  /** Stops all its processes for a while. */
  freeze(ms: number): Promise<void>
  stop(): Promise<void>
}

/** Starts the server. */
export async function startPostgres(dataDir: string): Promise<Postgres> {
  const start = () => startEmbeddedPostgres({ dataDir, durable: true, onLog: () => {} })
  let server: EmbeddedPostgres = await start()
  const portOf = ({ url }: EmbeddedPostgres) => Number(new URL(url).port)
  const proxy = await startRoughProxy(portOf(server))
  const postmaster = () =>
    Number(readFileSync(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8').split('\n')[0])
  const startAgain = async () => {
    // Until the last process of the killed server has gone, a new one refuses to start.
    server = await waitFor(
      'the database to start again',
      () => start().catch(() => null),
      RESTART_LIMIT_MS,
    )
    proxy.target = portOf(server)
  }
  return {
    url: server.url.replace(`:${portOf(server)}/`, `:${proxy.port}/`),
    directUrl: () => server.url,
    proxy,
    async killPostmaster() {
      const pid = postmaster()
      process.kill(pid, 'SIGKILL')
      await waitFor('the postmaster to be gone', () => !isAlive(pid))
      await startAgain()
    },
    async restart() {
      await server.stop()
      await startAgain()
    },
    async freeze(ms) {
      const pid = postmaster()
      await freeze([pid, ...childrenOf(pid)], ms)
    },
    async stop() {
      await proxy[Symbol.asyncDispose]()
      await server.stop()
    },
  }
}
