/** Relays the wire protocol between the service and PostgreSQL, and cuts a connection at a chosen round trip. */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export const MOMENTS = ['before', 'after'] as const

/**
 * Tells when, relative to a round trip, the proxy cuts a connection. The value `before` means that the server never
 * receives the statement. The value `after` means that the server has responded, but the client never receives the
 * response.
 */
export type CutMoment = (typeof MOMENTS)[number]

export type PostgresProxy = AsyncDisposable & {
  port: number
  /** Holds the URL of the same database through this proxy. */
  url: string
  /**
   * Cuts one database connection once, at the round trip with the given number, counted from now on. The next round
   * trip has the number 1. The round trips of all connections are counted together, in the order in which the clients
   * send them.
   * @param only decides which round trips are counted. A round trip for which it returns false is not counted.
   */
  cutAt(number: number, moment: CutMoment, only?: (sent: string) => boolean): void
  /** Cancels a planned cut of a connection if its round trip has not come yet. */
  disarm(): void
  /**
   * Ends every connection and refuses new connections until `accept` is called.
   * @param only gets the start-up message of a connection. A connection for which it returns false continues.
   */
  refuse(only?: (startup: string) => boolean): void
  accept(): void
  /**
   * Holds the SQL statement of the round trip at which the proxy cut the connection, or null if no connection was cut
   * yet.
   */
  cutStatement: string | null
  /** Counts the round trips of all connections through the proxy. */
  roundTrips: number
}

type Cut = { left: number; moment: CutMoment; only: (sent: string) => boolean }

/**
 * Sets the length of the type byte at the beginning of a PostgreSQL message. Only the first message of a connection has
 * no type byte.
 */
const TYPE_BYTES = 1
const LENGTH_BYTES = 4

/** Lists the PostgreSQL messages after which a client waits: Query, Sync, PasswordMessage, FunctionCall. */
const ENDS_REQUEST = new Set(['Q', 'S', 'p', 'F'])

/** Starts a proxy in front of the PostgreSQL server of the given URL. */
export async function startPostgresProxy(databaseUrl: string): Promise<PostgresProxy> {
  const target = new URL(databaseUrl)
  const sockets = new Set<Socket>()
  const startups = new Map<Socket, string>()
  let cut: Cut | null = null
  const isCut = (sent: string): CutMoment | null => {
    proxy.roundTrips++
    if (cut === null || !cut.only(sent) || --cut.left > 0) return null
    const { moment } = cut
    cut = null
    proxy.cutStatement = sent
    return moment
  }
  let refused: (startup: string) => boolean = () => false
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname)
    for (const [socket, peer] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        startups.delete(socket)
        peer.destroy()
      })
    }
    let doomed = false
    let started = false
    let request: Buffer[] = []
    const requests = splitMessages(false, (message, type) => {
      if (doomed) return
      request.push(message)
      // The start-up message is forwarded at once, because the server then asks for the password.
      if (!started || type === 'p' || type === 'X') {
        if (!started) {
          startups.set(client, message.toString('latin1'))
          if (refused(startups.get(client)!)) return client.destroy()
        }
        started = true
        upstream.write(Buffer.concat(request))
        request = []
      } else if (type !== null && ENDS_REQUEST.has(type)) {
        const bytes = Buffer.concat(request)
        request = []
        const moment = isCut(bytes.toString('latin1').replaceAll('\0', ' '))
        doomed = moment !== null
        if (moment === 'before') return client.destroy()
        upstream.write(bytes)
      }
    })
    const answers = splitMessages(true, (message, type) => {
      if (!doomed) client.write(message)
      else if (type === 'Z') client.destroy()
    })
    client.on('data', requests)
    upstream.on('data', answers)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const url = new URL(databaseUrl)
  url.port = String(port)
  const proxy: PostgresProxy = {
    port,
    url: url.href,
    roundTrips: 0,
    cutStatement: null,
    cutAt(number, moment, only = () => true) {
      proxy.cutStatement = null
      cut = { left: number, moment, only }
    },
    refuse(only = () => true) {
      refused = only
      for (const [client, startup] of startups) if (only(startup)) client.destroy()
    },
    accept() {
      refused = () => false
    },
    disarm() {
      cut = null
    },
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
  return proxy
}

/**
 * Calls the callback for each whole message of a PostgreSQL stream. If `typed` is true, the first message begins with a
 * type byte, as all other messages do.
 */
function splitMessages(
  typed: boolean,
  onMessage: (message: Buffer, type: string | null) => void,
): (chunk: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0)
  let first = !typed
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    for (;;) {
      const prefix = first ? 0 : TYPE_BYTES
      if (rest.length < prefix + LENGTH_BYTES) return
      const size = prefix + rest.readUInt32BE(prefix)
      if (rest.length < size) return
      const message = rest.subarray(0, size)
      rest = rest.subarray(size)
      const type = first ? null : String.fromCharCode(message[0]!)
      first = false
      onMessage(message, type)
    }
  }
}
