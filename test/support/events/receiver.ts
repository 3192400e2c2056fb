import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Describes one HTTP request that the test receiver got. */
type Received = {
  method: string
  path: string
  headers: IncomingHttpHeaders
  body: Buffer
  /**
   * Hold two times in milliseconds of performance.now(): when the receiver got the head of the request, and when it
   * sent the response.
   */
  atMs: number
  answeredMs: number
}

export type Receiver = AsyncDisposable & {
  url: string
  port: number
  requests: Received[]
  /** Responds to a request that the receiver gets. The default status of the response is 200. */
  answer: (request: Received, response: ServerResponse) => void
}

/** Starts a real HTTP server that records the requests that it gets. */
export async function startReceiver(
  answer: Receiver['answer'] = (_request, response) => response.end('ok'),
): Promise<Receiver> {
  const server = createServer((request, response) => {
    const atMs = performance.now()
    const chunks: Buffer[] = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', () => {
      const received = {
        method: request.method ?? '',
        path: request.url ?? '',
        headers: request.headers,
        body: Buffer.concat(chunks),
        atMs,
        answeredMs: 0,
      }
      response.on('finish', () => {
        received.answeredMs = performance.now()
      })
      receiver.requests.push(received)
      receiver.answer(received, response)
    })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  const receiver: Receiver = {
    url: `http://127.0.0.1:${port}/hook`,
    port,
    requests: [],
    answer,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise<void>((done) => server.close(() => done()))
    },
  }
  return receiver
}

/** Makes a response function for the receiver that gives every request the same status. */
export const status =
  (code: number, body = ''): Receiver['answer'] =>
  (_request, response) => {
    response.writeHead(code).end(body)
  }
