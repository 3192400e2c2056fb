import { afterAll, beforeAll, expect, test } from 'bun:test'
import { ForbiddenError, Purser, type PurserEvent } from '../../../api/client/main.ts'
import { startApi } from '../../../api/http/server.ts'
import { silentLog } from '../../support/logs.ts'
import { closeServers, serve } from '../../support/process/localServer.ts'
import { startTcpProxy } from '../../support/process/tcpProxy.ts'
import {
  type Agent,
  startTestService,
  type TestService,
  waitForMessages,
} from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/long.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService()
})
afterAll(async () => {
  closeServers()
  await service[Symbol.asyncDispose]()
})

const deliver = (agent: Agent, subject: string) =>
  service.deliver({ from: 'ada@example.com', to: agent.address, subject, text: 'Text.' })

/** Collects the events of an event stream until the caller aborts the stream. */
function follow(purser: Purser, query: Parameters<Purser['events']>[0] = {}) {
  const abort = new AbortController()
  const told: PurserEvent[] = []
  const ended = (async () => {
    for await (const event of purser.events(query, { signal: abort.signal })) told.push(event)
  })().catch((error) => error)
  return { told, abort, ended, subjects: () => told.map(({ data }) => data.subject) }
}

test('client.wait returns the next message, or undefined after the timeout', async () => {
  const agent = await service.newAgent()
  const purser = new Purser({ apiKey: agent.key, baseUrl: service.url })
  const waiting = purser.messages.wait({ subject: 'code', timeout: 30 })
  await deliver(agent, 'Something else')
  await deliver(agent, 'Your code')
  expect((await waiting)?.subject).toBe('Your code')
  expect(await purser.messages.wait({ timeout: 0 })).toBeUndefined()
})

test('the client gets each event once, even if connections break and the service restarts', async () => {
  const agent = await service.newAgent()
  const { config, database } = service
  let api = startApi(config, database.url, silentLog)
  await using proxy = await startTcpProxy(api.port)
  const purser = new Purser({ apiKey: agent.key, baseUrl: `http://127.0.0.1:${proxy.port}` })
  const { told, abort, ended, subjects } = follow(purser, {
    types: ['message.received'],
    lastEventId: '0',
  })
  await deliver(agent, 'One')
  await waitFor('one', () => told.length === 1)
  await proxy.cut()
  await deliver(agent, 'Two')
  await proxy.mend()
  await deliver(agent, 'Three')
  await waitFor('three', () => told.length === 3)
  await api.stop()
  await deliver(agent, 'Four')
  api = startApi({ ...config, http: { ...config.http, port: api.port } }, database.url, silentLog)
  await waitFor('four', () => told.length === 4)
  await deliver(agent, 'Five')
  await waitFor('five', () => told.length === 5)
  expect(subjects()).toEqual(['One', 'Two', 'Three', 'Four', 'Five'])
  expect(told.map(({ id }) => Number.parseInt(id, 10))).toEqual([1, 2, 3, 4, 5])
  expect(told[0]).toMatchObject({ type: 'message.received', data: { from: ['ada@example.com'] } })
  const reason = new Error('enough')
  abort.abort(reason)
  expect(await ended).toBe(reason)
  await api.stop()
})

test('the client misses no event if its connection breaks before the first event', async () => {
  const agent = await service.newAgent()
  await deliver(agent, 'Past')
  await waitForMessages(agent, 1)
  await using proxy = await startTcpProxy(service.api.port)
  let begun = false
  const purser = new Purser({
    apiKey: agent.key,
    baseUrl: `http://127.0.0.1:${proxy.port}`,
    fetch: async (request) => {
      const response = await fetch(request)
      const noted = new TransformStream<Uint8Array, Uint8Array>({
        transform(chunk, controller) {
          controller.enqueue(chunk)
          begun = true
        },
      })
      return new Response(response.body?.pipeThrough(noted), response)
    },
  })
  const { told, abort, ended, subjects } = follow(purser)
  await waitFor('the beginning', () => begun)
  await proxy.cut()
  await deliver(agent, 'Meanwhile')
  await waitForMessages(agent, 2)
  await proxy.mend()
  await waitFor('the first event', () => told.length > 0)
  await deliver(agent, 'Next')
  await waitFor('the next', () => subjects().includes('Next'))
  expect(subjects()).toEqual(['Meanwhile', 'Next'])
  abort.abort(new Error('enough'))
  await ended
})

/** Returns a client whose event stream has the given text and then stays open. */
const streaming = (text: string) =>
  new Purser({
    apiKey: `loid-${'0'.repeat(64)}`,
    fetch: async ({ signal }) =>
      new Response(
        new ReadableStream<Uint8Array>({
          start(controller) {
            controller.enqueue(Buffer.from(text))
            signal.addEventListener('abort', () => controller.error(signal.reason))
          },
        }),
      ),
  })

test('the client reads an event whose data contains U+2028, because this character ends no line of an event stream', async () => {
  const told = (n: number, subject: string) =>
    `id: ${n}-1\nevent: message.received\ndata: ${JSON.stringify({ type: 'message.received', data: { subject } })}\n\n`
  const { abort, ended, subjects } = follow(
    streaming(told(1, 'one\u2028two\u2029three') + told(2, 'last')),
  )
  await waitFor('the last event', () => subjects().includes('last'))
  expect(subjects()).toEqual(['one\u2028two\u2029three', 'last'])
  abort.abort(new Error('enough'))
  await ended
})

test('if the client has missed events, it passes on the event stream.gap with the event id after which the stream continues', async () => {
  const { told, abort, ended } = follow(
    streaming('retry: 2000\nid: 7-5\n\nevent: stream.gap\ndata: {}\n\n'),
  )
  await waitFor('the gap', () => told.length === 1)
  expect(told[0]).toMatchObject({ type: 'stream.gap', id: '7-5' })
  abort.abort(new Error('enough'))
  await ended
})

test('if a proxy sends an error and the connection breaks within this response, the client reconnects', async () => {
  let calls = 0
  const port = await serve((request, response) => {
    if (++calls === 1) {
      response.writeHead(503, { 'content-length': '100' })
      response.write('{', () => request.socket.destroy())
      return
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('id: 1-1\nevent: vault.used\ndata: {"type":"vault.used","data":{}}\n\n')
  })
  const apiKey = `loid-${'0'.repeat(64)}`
  const purser = new Purser({ apiKey, baseUrl: `http://127.0.0.1:${port}` })
  const { told, abort, ended } = follow(purser)
  await Promise.race([waitFor('the event', () => told.length === 1), ended])
  expect(told.map(({ id }) => id)).toEqual(['1-1'])
  abort.abort(new Error('enough'))
  await ended
})

test('if the service responds with an error, the client’s iteration over events ends', async () => {
  const agent = await service.newAgent({ scopes: ['mail:read'] })
  const purser = new Purser({ apiKey: agent.key, baseUrl: service.url })
  expect(await follow(purser, { types: ['payment.settled'] }).ended).toBeInstanceOf(ForbiddenError)
})

test('if the caller aborts while the client waits to reconnect, the client makes no further request', async () => {
  let requests = 0
  const purser = new Purser({
    apiKey: `loid-${'0'.repeat(64)}`,
    fetch: async () => {
      requests++
      throw new TypeError('the network is away')
    },
  })
  const { abort, ended } = follow(purser)
  await waitFor('the first request', () => requests === 1)
  await Bun.sleep(100)
  const reason = new Error('enough')
  abort.abort(reason)
  expect([await ended, requests]).toEqual([reason, 1])
})
