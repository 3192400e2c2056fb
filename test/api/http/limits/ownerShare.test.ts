/** Tests that an agent cannot use up the memory and the time that the owner of its project needs in the console. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import { LoopTime } from '../../../../api/http/limits/loopTime.ts'
import { type ConsoleClient, signInAs } from '../../../support/console/consoleSession.ts'
import { type Agent, startTestService, type TestService } from '../../../support/service.ts'

const LONG = 'x'.repeat(1_800_000)
const MOST_REQUESTS = 60

let service: TestService
let owner: ConsoleClient
beforeAll(async () => {
  // A response of 1.8 MB counts as 63 ms of processing time, so one large read uses up its reader's time for large
  // responses.
  const loopTime = new LoopTime(undefined, { burstMs: 50, perSecondMs: 1 })
  service = await startTestService({ smtp: false, workers: false, loopTime })
  owner = await signInAs(service, 'operator')
})
afterAll(() => service[Symbol.asyncDispose]())

const send = (agent: Agent) =>
  agent.post('/v0/messages/send', { to: ['a@example.com'], subject: 's', text: LONG })

test('the owner of a project can read its mail in the console although its agent has used up its time for large responses', async () => {
  const [agent, other] = [await service.newAgent(), await service.newAgent()]
  for (const one of [agent, other]) await send(one)
  const read = ({ project }: Agent) => owner.get(`/projects/${project.id}/v0/messages`)
  // This read tells the service that the list of the console can be large.
  expect((await read(other)).status).toBe(200)
  expect((await agent.get('/v0/messages')).status).toBe(200)
  expect((await agent.get('/v0/messages')).status).toBe(429)
  expect((await read(agent)).status).toBe(200)
  expect((await read(agent)).status).toBe(429)
})

test('the owner of a project can search in the console although its agent waits for many searches', async () => {
  const agent = await service.newAgent()
  const client = await service.database.pool.connect()
  const searches: Promise<{ status: number }>[] = []
  try {
    await client.query('begin')
    await client.query('lock table messages in access exclusive mode')
    for (let n = 0; n < 30; n++) searches.push(agent.get('/v0/messages?q=word'))
    const first = await Promise.race(searches)
    expect(first.status).toBe(429)
    const path = `/projects/${agent.project.id}/v0`
    expect((await owner.get(`${path}/logs?category=vault`)).status).toBe(200)
    expect((await owner.get(`${path}/webhooks/deliveries/stats?q=hook`)).status).toBe(200)
    expect((await owner.get(`${path}/webhooks/deliveries?q=hook`)).status).toBe(200)
  } finally {
    await client.query('rollback')
    client.release()
    await Promise.allSettled(searches)
  }
})

test('the owner of a project can change its settings in the console although its agent leaves large responses unread', async () => {
  const agent = await service.newAgent()
  const { threadId, messageId } = (await send(agent)).body
  for (let n = 0; n < 3; n++) {
    await agent.post(`/v0/messages/${encodeURIComponent(messageId)}/reply`, { text: LONG })
  }
  /** Labels the thread, and reads only the status line of the response. */
  const labelUnread = (label: string): Promise<{ socket: Socket; status: number }> => {
    const body = JSON.stringify({ addLabels: [label] })
    const socket = connect(service.api.port, '127.0.0.1').on('error', () => {})
    socket.write(
      `PATCH /v0/threads/${threadId} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${agent.key}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    return new Promise((resolve) =>
      socket.once('data', (bytes) => {
        socket.pause()
        resolve({ socket, status: Number(bytes.toString('latin1').split(' ')[1]) })
      }),
    )
  }
  const sockets: Socket[] = []
  try {
    let last = 0
    while (last !== 503 && sockets.length < MOST_REQUESTS) {
      const { socket, status } = await labelUnread(`unread${sockets.length}`)
      sockets.push(socket)
      last = status
    }
    expect(last).toBe(503)
    const rule = { type: 'BLOCK', scope: 'SEND', value: '*@example.com' }
    expect((await agent.post('/v0/email-rules', rule)).status).toBe(503)
    const made = await owner.post(`/projects/${agent.project.id}/v0/email-rules`, rule)
    expect([made.status, made.body.value]).toEqual([201, '*@example.com'])
  } finally {
    for (const socket of sockets) socket.destroy()
  }
})
