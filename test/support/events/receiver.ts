import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Is one HTTP request as the receiver got the request. */
type Received = {
  method: string
  path: string
  headers: IncomingHttpHeaders
  body: Buffer
  /**
   * Are the times when the receiver got the request’s head and sent the answer, in milliseconds of performance.now().
   */
  atMs: number
  answeredMs: number
}

export type Receiver = AsyncDisposable & {
  url: string
  port: number
  requests: Received[]
  /** Answers a request. The default is 200. */
  answer: (request: Received, response: ServerResponse) => void
}

/** Starts a real HTTP server that keeps its requests. */
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

/** Makes a receiver’s answer function that gives every request the same status. */
export const status =
  (code: number, body = ''): Receiver['answer'] =>
  (_request, response) => {
    response.writeHead(code).end(body)
  }
