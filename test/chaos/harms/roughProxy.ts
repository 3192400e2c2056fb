import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** Tells where the proxy breaks a connection: after `afterBytes` bytes in one direction. */
type Break = { way: 'question' | 'answer'; afterBytes: number }

/** Describes a proxy port that leads to another port and behaves like a bad network. */
export type RoughProxy = AsyncDisposable & {
  port: number
  /** Holds the port to which the proxy connects its clients. */
  target: number
  /** Holds the number of open connections through the proxy. */
  readonly open: number
  /**
   * Breaks one open connection of the proxy, or all open connections. @returns the number of connections that were
   * broken.
   */
  cut(choose?: (count: number) => number): number
  /**
   * Decides whether the proxy breaks a connection, and where. The function is called for every connection that carries
   * a byte. Null means that the proxy does not break the connection.
   */
  breaking: (() => Break | null) | null
  /** Holds the times at which the proxy broke connections on purpose, in milliseconds of performance.now(). */
  readonly endedMs: number[]
  /**
   * Is called with each piece of the server’s response after the proxy has forwarded the piece to the client.
   */
  onAnswer: ((chunk: Buffer) => void) | null
  /** Holds back all bytes of all connections of the proxy until `release` is called. */
  hold(): void
  release(): void
}

type Pair = { inner: Socket; outer: Socket; due: Break | null | undefined; carried: number }

/** Starts a proxy on a free port of 127.0.0.1. */
export async function startRoughProxy(target: number): Promise<RoughProxy> {
  const pairs = new Set<Pair>()
  let held = false
  const server = createServer((inner) => {
    const outer = connect(proxy.target, '127.0.0.1')
    const pair: Pair = { inner, outer, due: undefined, carried: 0 }
    pairs.add(pair)
    carry(pair, 'question', inner, outer)
    carry(pair, 'answer', outer, inner)
    if (held) for (const socket of [inner, outer]) socket.pause()
  })
  const carry = (pair: Pair, way: Break['way'], from: Socket, to: Socket) => {
    from.setNoDelay(true)
    from.on('error', () => {})
    from.on('data', (chunk) => {
      if (proxy.breaking === null) pair.due = undefined
      else if (pair.due === undefined) pair.due = proxy.breaking()
      const { due } = pair
      if (due != null && due.way === way) {
        const left = due.afterBytes - pair.carried
        pair.carried += chunk.length
        if (chunk.length >= left) {
          if (left > 0) to.write(chunk.subarray(0, left))
          return end(pair)
        }
      }
      if (!to.write(chunk)) from.pause()
      if (way === 'answer') proxy.onAnswer?.(chunk)
    })
    to.on('drain', () => {
      if (!held) from.resume()
    })
    from.on('end', () => to.end())
    from.on('close', (failed) => {
      if (to.destroyed) pairs.delete(pair)
      else if (failed) to.destroy()
      // When one side ends a connection, the proxy also ends the other side, but in order: bytes that the proxy has
      // already written still arrive.
      else to.destroySoon()
    })
  }
  const end = (pair: Pair) => {
    proxy.endedMs.push(performance.now())
    pair.inner.destroy()
    pair.outer.destroy()
  }
  const proxy: RoughProxy = {
    port: 0,
    target,
    get open() {
      return pairs.size
    },
    cut(choose) {
      const all = [...pairs]
      const chosen = choose === undefined ? all : all.slice(choose(all.length)).slice(0, 1)
      for (const pair of chosen) end(pair)
      return chosen.length
    },
    breaking: null,
    endedMs: [],
    onAnswer: null,
    hold() {
      held = true
      for (const { inner, outer } of pairs) for (const socket of [inner, outer]) socket.pause()
    },
    release() {
      held = false
      for (const { inner, outer } of pairs) for (const socket of [inner, outer]) socket.resume()
    },
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((done) => server.close(() => done()))
      for (const pair of pairs) end(pair)
      await closed
    },
  }
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  proxy.port = (server.address() as AddressInfo).port
  return proxy
}
