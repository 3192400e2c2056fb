/** Starts local HTTP and TCP servers for guardedRequest, and calls them. */
import type { LookupAddress } from 'node:dns'
import { createServer as createHttpServer, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import {
  type GuardedRequestParameters,
  guardedRequest,
  type Resolve,
} from '../../../workers/http/guardedRequest.ts'

const closers: (() => void)[] = []

/** Closes all local servers after the tests of a file. */
export function closeServers(): void {
  for (const close of closers.splice(0)) close()
}
export async function listen(server: Server): Promise<number> {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  closers.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

export const serve = (listener: RequestListener) => listen(createHttpServer(listener))

/**
 * Starts a local TCP server. `onSocket` gets each connection and writes every byte of the response itself.
 */
export async function serveRaw(onSocket: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>()
  const server = createTcpServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    onSocket(socket)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  closers.push(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

export const answering = (...addresses: string[]): Resolve => {
  const list: LookupAddress[] = addresses.map((address) => ({
    address,
    family: address.includes(':') ? 6 : 4,
  }))
  return (_hostname, answer) => answer(null, list)
}

export const get = (url: string, more: Partial<GuardedRequestParameters> = {}) =>
  guardedRequest({ url, method: 'GET', timeoutMs: 2_000, allowPrivate: false, ...more })

export const getLocal = (port: number, more: Partial<GuardedRequestParameters> = {}) =>
  get(`http://127.0.0.1:${port}/`, { allowPrivate: true, ...more })
