import { afterAll, beforeAll, expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import { readJsonValue } from '../../../../api/http/input/body.ts'
import { HeldBodies } from '../../../../api/http/input/heldBodies.ts'
import { newRequestState, type RequestState } from '../../../../api/http/requestState.ts'
import { type Agent, startTestService, type TestService } from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

const MB = 1024 * 1024
const crowded = expect.objectContaining({ status: 503, code: 'unavailable' })

/** Returns the state that the API keeps for an HTTP request from the given project and IP address. */
function requestOf(projectId: string, clientAddress: string): RequestState {
  const identity = { kind: 'project', keyId: `k${projectId}`, keyPrefix: '', scopes: [] } as const
  return {
    ...newRequestState('req_test'),
    clientAddress,
    identity: { ...identity, projectId, inboxAddress: 'a@mail.test', scopes: [] },
  }
}

const never = () => expect.unreachable()

test('all unfinished request bodies of one project together use at most 96 MB of memory, even if they come from several networks', () => {
  const bodies = new HeldBodies()
  for (const n of [1, 2, 3]) bodies.hold(requestOf('greedy', `10.0.${n}.1`), 32 * MB, never)
  expect(() => bodies.hold(requestOf('greedy', '10.0.5.1'), MB, never)).toThrow(crowded)
  bodies.hold(requestOf('other', '10.1.1.1'), 35 * MB, never)
})

test('the people at the console get memory for request bodies although the agent of their project has used up its own', () => {
  const bodies = new HeldBodies()
  for (const n of [1, 2, 3]) bodies.hold(requestOf('greedy', `10.0.${n}.1`), 32 * MB, never)
  const person = { ...requestOf('greedy', '10.1.1.1'), session: {} as never }
  bodies.hold(person, 35 * MB, never)
})

test('all unfinished request bodies of one network together use at most 192 MB of memory, even if they belong to several projects', () => {
  const bodies = new HeldBodies()
  for (const n of [1, 2, 3]) bodies.hold(requestOf(`p${n}`, '2001:db8::1'), 64 * MB, never)
  expect(() => bodies.hold(requestOf('p5', '2001:db8::2'), MB, never)).toThrow(crowded)
  bodies.hold(requestOf('p6', '2001:db8:1::2'), 35 * MB, never)
})

test('if a new request body needs memory, an unfinished body of the project that uses the most memory is refused', () => {
  const bodies = new HeldBodies()
  const ended: string[] = []
  const hold = (project: string, megabytes: number) => {
    const state = requestOf(project, `10.${ended.length}.${megabytes}.1`)
    bodies.hold(state, megabytes * MB, () => ended.push(`${project} ${megabytes}`))
    return state
  }
  hold('a', 40)
  hold('a', 50)
  bodies.complete(hold('b', 91))
  hold('c', 70)
  expect(ended).toEqual([])
  hold('late', 35)
  expect(ended).toEqual(['a 50'])
  hold('later', 35)
  expect(ended).toEqual(['a 50', 'c 70'])
})

test('all request bodies together use up to 256 MB; above this limit, a caller that already uses as much memory as any other caller is refused', () => {
  const bodies = new HeldBodies()
  const ended: string[] = []
  const hold = (project: string, bytes: number) =>
    bodies.hold(requestOf(project, `10.0.${project}.1`), bytes, () => ended.push(project))
  for (const project of ['1', '2']) hold(project, 90 * MB)
  hold('3', 76 * MB)
  expect(ended).toEqual([])
  expect(() => hold('4', 90 * MB)).toThrow(crowded)
  expect(ended).toEqual([])
})

test('clients of one network without an API key together get as much memory for request bodies as one caller', () => {
  const bodies = new HeldBodies()
  const stranger = { ...requestOf('', '10.0.0.1'), identity: null }
  bodies.hold({ ...stranger }, 90 * MB, never)
  expect(() => bodies.hold({ ...stranger }, 7 * MB, never)).toThrow(crowded)
  bodies.hold({ ...stranger, clientAddress: '10.1.0.1' }, 7 * MB, never)
  bodies.complete({ ...stranger })
})

test('a small request body is never refused, even if a project has used up its memory for request bodies', () => {
  const bodies = new HeldBodies()
  bodies.hold(requestOf('p', '10.0.0.1'), 96 * MB, never)
  expect(() => bodies.hold(requestOf('p', '10.0.0.1'), 64 * 1024 + 1, never)).toThrow(crowded)
  for (let n = 0; n < 10_000; n++) bodies.hold(requestOf('p', '10.0.0.1'), 64 * 1024, never)
})

test('after a request gets its response, the memory of the request body is free again', () => {
  const bodies = new HeldBodies()
  const first = requestOf('p', '10.0.0.1')
  bodies.hold(first, 96 * MB, never)
  expect(() => bodies.hold(requestOf('p', '10.0.0.1'), MB, never)).toThrow(crowded)
  bodies.release(first)
  bodies.release(first)
  bodies.hold(requestOf('p', '10.0.0.1'), 95 * MB, never)
})

test('a request whose body arrives slower than the minimum rate gets status 408', async () => {
  const patience = { graceMs: 50, bytesPerS: 1_000, totalMs: 60_000 }
  const body = new ReadableStream({ start: (stream) => stream.enqueue(new Uint8Array(5)) })
  const request = new Request('http://x/', { method: 'POST', body })
  const read = readJsonValue(request, { maxBytes: MB, patience })
  await expect(read).rejects.toMatchObject({ status: 408, code: 'request_timeout' })
})

let service: TestService
let owner: Agent
let stranger: Agent

beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
  owner = await service.newAgent()
  stranger = await service.newAgent({ scopes: ['mail:read'] })
})
afterAll(() => service[Symbol.asyncDispose]())

/** Sends the header section of a request and a part of its body, and leaves the request unfinished. */
async function beginBody(key: string, path: string, bytes: number): Promise<Socket> {
  const socket = connect(service.api.port, '127.0.0.1')
  socket.on('error', () => {})
  socket.write(
    `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\n` +
      `content-type: application/json\r\ncontent-length: ${35 * MB}\r\n\r\n`,
  )
  socket.write(`{"attachments":"${'a'.repeat(bytes)}`)
  return socket
}

test('an API key without mail:send may not send a large request body to /mcp', async () => {
  const socket = await beginBody(stranger.key, '/mcp', MB)
  let answer = ''
  socket.on('data', (chunk) => {
    answer += chunk
  })
  await waitFor('the answer', async () => answer.includes('\r\n\r\n'))
  socket.destroy()
  expect(answer).toStartWith('HTTP/1.1 413')
})

test('if one project has many unfinished request bodies, requests of other projects are not delayed', async () => {
  const other = await service.newAgent()
  const sockets = await Promise.all(
    Array.from({ length: 10 }, () => beginBody(owner.key, '/mcp', 30 * MB)),
  )
  let refusals = 0
  for (const socket of sockets) {
    socket.on('data', (chunk) => {
      if (String(chunk).startsWith('HTTP/1.1 503')) refusals++
    })
  }
  await waitFor('a refusal of all but three bodies', async () => refusals === 7)
  const small = await owner.get('/v0/whoami')
  expect(small.status).toBe(200)
  const mail = { to: ['a@b.test'], subject: 's', text: 'x'.repeat(100_000) }
  expect((await other.post('/v0/messages/send', mail)).status).toBe(201)
  for (const socket of sockets) socket.destroy()
})

test('a JSON body with 260,000 items is refused before it is parsed', async () => {
  const to = Array<string>(260_000).fill('a@b.c')
  const sent = await owner.post('/v0/messages/send', { to, subject: 's', text: 't' })
  expect(sent).toMatchObject({
    status: 400,
    body: { message: 'The body must have at most 20000 values' },
  })
})

test('commas, quotes and brackets inside of strings do not count as JSON items', async () => {
  const text = ',"[]{}:\\"'.repeat(30_000)
  const sent = await owner.post('/v0/messages/send', { to: ['a@b.test'], subject: 's', text })
  expect(sent.status).toBe(201)
})

test('the service reads large bodies of one caller at 32 MB a second, while small bodies and other callers do not wait', () => {
  const bodies = new HeldBodies()
  expect(bodies.hold(requestOf('p', '10.0.0.1'), 8 * MB, never)).toBe(0)
  expect(bodies.hold(requestOf('p', '10.0.0.1'), 16 * MB, never)).toBeGreaterThan(400)
  expect(bodies.hold(requestOf('p', '10.0.0.1'), 64 * 1024, never)).toBe(0)
  expect(bodies.hold(requestOf('q', '10.0.0.1'), 8 * MB, never)).toBe(0)
})
