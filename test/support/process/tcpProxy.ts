import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** Describes a TCP proxy that can cut the connections between its clients and its target. */
export type TcpProxy = AsyncDisposable & {
  port: number
  /** Ends every connection and refuses new connections until `mend` is called. */
  cut(): Promise<void>
  mend(): Promise<void>
  /**
   * Mutes a connection after its client has sent the given text: the client gets no more responses, but the server
   * still gets the data.
   */
  muteOn: string | null
  /** Counts the connections that the proxy has muted. */
  muted: number
  /** Counts the bytes that the proxy has received from clients. */
  bytesIn: number
}

/** Starts a TCP proxy to a port. By default the address is 127.0.0.1 on both sides, and the proxy uses a free port. */
export async function startTcpProxy(
  targetPort: number,
  ownPort = 0,
  { host = '127.0.0.1', targetHost = '127.0.0.1' } = {},
): Promise<TcpProxy> {
  const sockets = new Set<Socket>()
  let server: Server | undefined
  const listen = async (port: number) => {
    server = createServer((inner) => {
      const outer = connect(targetPort, targetHost)
      for (const [socket, peer] of [
        [inner, outer],
        [outer, inner],
      ] as const) {
        sockets.add(socket)
        socket.on('error', () => {})
        socket.on('close', () => {
          sockets.delete(socket)
          peer.destroy()
        })
        socket.pipe(peer)
      }
      inner.on('data', (chunk) => {
        proxy.bytesIn += chunk.length
        if (proxy.muteOn === null || !chunk.includes(proxy.muteOn)) return
        outer.unpipe(inner)
        proxy.muted++
      })
    })
    await new Promise<void>((resolve) => server!.listen(port, host, resolve))
    return (server.address() as AddressInfo).port
  }
  const cut = async () => {
    const closed = new Promise<void>((resolve) =>
      server === undefined ? resolve() : server.close(() => resolve()),
    )
    server = undefined
    for (const socket of sockets) socket.destroy()
    await closed
  }
  const proxy: TcpProxy = {
    port: 0,
    muteOn: null,
    muted: 0,
    bytesIn: 0,
    cut,
    async mend() {
      await listen(proxy.port)
    },
    [Symbol.asyncDispose]: cut,
  }
  proxy.port = await listen(ownPort)
  return proxy
}
