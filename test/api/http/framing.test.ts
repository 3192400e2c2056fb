/**
 * Sends requests whose end is ambiguous, over raw TCP. A proxy sends the requests of many clients over one connection.
 * If the API and the proxy found different ends of a request, a stranger could hide a second request in the first. The
 * API would then send the responses to the wrong clients (RFC 9112 §11.2, request smuggling).
 */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { type Agent, startTestService, type TestService } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'

let service: TestService
let agent: Agent
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
  agent = await service.newAgent()
})
afterAll(() => service[Symbol.asyncDispose]())

/**
 * Sends the parts of a raw HTTP byte stream one after another. The first part is sent at once, and each of the other
 * parts once a response has begun to arrive. @returns the responses
 */
async function responsesTo(...parts: string[]): Promise<string[]> {
  const socket = connect(service.api.port, '127.0.0.1')
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  let answer = ''
  // The API may reset the connection while the test still sends a part, so the test ignores this error.
  socket.on('error', () => {})
  socket.on('data', (chunk) => {
    answer += chunk.toString()
  })
  socket.on('close', resolve)
  socket.write(parts[0]!)
  for (const part of parts.slice(1)) {
    await waitFor('the first response', () => answer.includes('\r\n\r\n'))
    socket.write(part)
  }
  await closed
  return answer.split(/(?=HTTP\/1\.1 \d{3} )/)
}

const statusesOf = (responses: string[]) => responses.map((one) => Number(one.split(' ')[1]))

const HIDDEN = 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'
const LAST = 'GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'

const head = (path: string, ...lines: string[]) =>
  [`POST ${path} HTTP/1.1`, 'Host: x', 'Content-Type: application/json', ...lines, '\r\n'].join(
    '\r\n',
  )
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`
const END = '0\r\n\r\n'
const LENGTH = `Content-Length: ${HIDDEN.length}`
const CHUNKED = 'Transfer-Encoding: chunked'

test('the body of a request that the API refuses early is not read as another request', async () => {
  const key = `Authorization: Bearer ${agent.key}`
  const path = '/v0/messages/send'
  const big = chunk('x'.repeat(9_000_000))
  const cases: [number, string, string][] = [
    [401, head(path, LENGTH), HIDDEN],
    [401, head(path, CHUNKED), chunk(HIDDEN) + END],
    [401, head(path, CHUNKED) + chunk('{"to":'), chunk(HIDDEN) + END],
    [404, head('/nowhere', key, LENGTH), HIDDEN],
    [413, head(path, key, CHUNKED) + big + chunk(HIDDEN) + END, ''],
  ]
  for (const [status, start, body] of cases) {
    const responses = await responsesTo(start, body + LAST)
    expect([start.slice(0, 200), ...statusesOf(responses)]).toEqual([
      start.slice(0, 200),
      status,
      404,
    ])
  }
})

test('if the end of a request is ambiguous, the API responds with an error and closes the connection', async () => {
  const five = 'Content-Length: 5'
  const cases = [
    head('/x', five, CHUNKED) + END,
    `${head('/x', CHUNKED, five)}abcde`,
    `${head('/x', five, 'Content-Length: 0')}abcde`,
    `${head('/x', 'Content-Length: 5, 5')}abcde`,
    `${head('/x', 'Content-Length: +5')}abcde`,
    `${head('/x', 'Content-Length: 0x5')}abcde`,
    head('/x', 'Transfer-Encoding : chunked') + END,
    head('/x', 'Transfer-Encoding: xchunked') + END,
    head('/x', 'Transfer-Encoding: chunked, identity') + END,
    `${head('/x', 'Transfer-Encoding: identity', five)}abcde`,
    `${head('/x', 'X: a', ` ${CHUNKED}`, five)}abcde`,
    `POST /x HTTP/1.1\nHost: x\n${five}\n\nabcde`,
    `${head('/x', CHUNKED)}5x\r\nabcde\r\n${END}`,
    `${head('/x', CHUNKED)}5\nabcde\n0\n\n`,
    `${head('/x', CHUNKED)}10000000000000005\r\nabcde\r\n${END}`,
    `${head('/x', CHUNKED)}5\r\nabcdeXX${END}`,
  ]
  for (const request of cases) {
    const statuses = statusesOf(await responsesTo(request + HIDDEN))
    expect([request, statuses.every((status) => status >= 400)]).toEqual([request, true])
  }
})

test('if a client sends a second request before the response to its first request, the client never gets the response to another request', async () => {
  const slow = `GET /v0/messages/wait?timeout=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${agent.key}\r\n\r\n`
  const statuses = statusesOf(await responsesTo(slow + HIDDEN + LAST))
  // The test also accepts that the runtime closes the connection without a valid response, because a client then sends
  // its open requests again over a new connection.
  expect([[Number.NaN], [204, 200, 404], [200, 200, 404]]).toContainEqual(statuses)
})
