/** Tests how much memory the responses to changes occupy if the clients of a project do not read them. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import { type Agent, startTestService, type TestService } from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'

const MOST_CHANGES = 60

let service: TestService
let agent: Agent
let threadPath: string
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
  agent = await service.newAgent()
  const to = ['a@example.com']
  const first = await agent.post('/v0/messages/send', { to, subject: 's', text: LONG })
  for (let n = 0; n < 3; n++) {
    await agent.post(`/v0/messages/${encodeURIComponent(first.body.messageId)}/reply`, {
      text: LONG,
    })
  }
  threadPath = `/v0/threads/${first.body.threadId}`
})
afterAll(() => service[Symbol.asyncDispose]())

const LONG = 'x'.repeat(1_800_000)

/** Adds a label to the thread, and reads only the status line of the response. */
function changeUnread(label: string): Promise<{ socket: Socket; status: number }> {
  const body = JSON.stringify({ addLabels: [label] })
  const socket = connect(service.api.port, '127.0.0.1').on('error', () => {})
  socket.write(
    `PATCH ${threadPath} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${agent.key}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  )
  return new Promise((resolve) =>
    socket.once('data', (bytes) => {
      socket.pause()
      resolve({ socket, status: Number(bytes.toString('latin1').split(' ')[1]) })
    }),
  )
}

test('a project that leaves the responses to its changes unread gets 503 for its next change, and this change is not made', async () => {
  const other = await service.newAgent()
  const sockets: Socket[] = []
  const statuses: number[] = []
  try {
    while (!statuses.includes(503) && sockets.length < MOST_CHANGES) {
      const labels = [0, 1, 2, 3].map((n) => `unread${sockets.length + n}`)
      for (const { socket, status } of await Promise.all(labels.map(changeUnread))) {
        sockets.push(socket)
        statuses.push(status)
      }
    }
    expect(new Set(statuses)).toEqual(new Set([200, 503]))
    const rule = { type: 'BLOCK', scope: 'RECEIVE', value: '*@example.com' }
    expect((await agent.post('/v0/email-rules', rule)).status).toBe(503)
    expect((await agent.get('/v0/email-rules')).body.count).toBe(0)
    const { logs } = (await agent.get('/v0/logs?category=email_rule')).body
    expect(logs.map(({ outcome }: any) => outcome)).toEqual(['failed'])
    expect((await other.post('/v0/email-rules', rule)).status).toBe(201)
  } finally {
    for (const socket of sockets) socket.destroy()
  }
  const made = statuses.flatMap((status, n) => (status === 200 ? [`unread${n}`] : []))
  await waitFor('the memory of the ended connections', async () => {
    return (await agent.patch(threadPath, { addLabels: ['later'] })).status === 200
  })
  const { messages } = (await agent.get(`${threadPath}?limit=1`)).body
  const added = messages[0].labels.filter((label: string) => label.startsWith('unread'))
  expect(added.toSorted()).toEqual(made.toSorted())
})
