import pg from 'pg'
import { connectionTo, singleConnection } from './connectionTo.ts'

export type Subscription = { stop(): Promise<void> }

const RECONNECT_MS = 500
/**
 * Sets the time between two heartbeats on a listening database connection. Without a heartbeat, the connection never
 * notices that the PostgreSQL server vanished.
 */
const HEARTBEAT_MS = 5_000
const ANSWER_TIMEOUT_MS = 5_000

/**
 * Listens on a PostgreSQL channel over a separate database connection, and reconnects until the caller calls `stop`.
 * @param onConnect runs after each new connection, when notifications arrive again. It should read the changes that the
 * service announced while no connection existed.
 */
export function subscribe(options: {
  databaseUrl: string
  channel: string
  name: string
  onNotify: (payload: string) => void
  onConnect: () => void
  onError: (error: Error) => void
}): Subscription {
  let stopped = false
  let client: pg.Client | undefined
  let retry: ReturnType<typeof setTimeout> | undefined

  const connect = async () => {
    const current = singleConnection({
      ...connectionTo(options.databaseUrl, options.name),
      keepAlive: true,
      connectionTimeoutMillis: ANSWER_TIMEOUT_MS,
      query_timeout: ANSWER_TIMEOUT_MS,
    })
    client = current
    let ended = false
    let heartbeat: ReturnType<typeof setInterval> | undefined
    const again = (error?: Error) => {
      if (ended) return
      ended = true
      clearInterval(heartbeat)
      current.end().catch(() => {})
      if (stopped) return
      if (error !== undefined) options.onError(error)
      retry = setTimeout(connect, RECONNECT_MS)
    }
    current.on('error', again)
    current.on('end', () => again())
    current.on('notification', ({ payload }) => options.onNotify(payload ?? ''))
    try {
      await current.connect()
      await current.query(`listen ${pg.escapeIdentifier(options.channel)}`)
      if (stopped) return
      heartbeat = setInterval(() => current.query('select').catch(again), HEARTBEAT_MS)
      options.onConnect()
    } catch (error) {
      again(error as Error)
    }
  }
  void connect()

  return {
    async stop() {
      stopped = true
      clearTimeout(retry)
      await client?.end().catch(() => {})
    },
  }
}
