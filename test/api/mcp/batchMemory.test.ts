/**
 * Tests how much memory the response to an MCP batch may occupy, and that the response still reports each change if a
 * read is refused.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import { LoopTime } from '../../../api/http/limits/loopTime.ts'
import { callMcp, toolCall } from '../../support/oauth.ts'
import { type Agent, startTestService, type TestService } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'

const LIMIT_BYTES = 8 * 1024 * 1024

let service: TestService
let agent: Agent
let messageId: string
beforeAll(async () => {
  // The tests read more than the limit on the time for large responses allows.
  const loopTime = new LoopTime(undefined, { burstMs: 1e9, perSecondMs: 1e9 })
  service = await startTestService({ smtp: false, workers: false, loopTime })
  agent = await service.newAgent()
  const text = 'x'.repeat(1_800_000)
  const sent = await agent.post('/v0/messages/send', { to: ['a@example.com'], subject: 's', text })
  messageId = sent.body.messageId
})
afterAll(() => service[Symbol.asyncDispose]())

const call = (id: number, name: string, args: object) => ({ ...toolCall(name, args), id })
const read = (id: number) => call(id, 'mail.get_message', { messageId })
const change = (label: string) => call(99, 'mail.update_labels', { messageId, addLabels: [label] })

async function post(batch: object): Promise<{ status: number; bytes: number; results: any[] }> {
  const { status, body } = await callMcp(service.url, agent.key, batch)
  const results = [body].flat().map(({ result }: any) => result)
  return { status, bytes: Buffer.byteLength(JSON.stringify(body)), results }
}

/** Returns the labels of a message from the result of the last call in an MCP batch. This call changes the labels. */
const labelsIn = (results: any[]): string[] => results.at(-1).structuredContent.labels

/** Sends an MCP batch and reads only the first bytes of the answer. */
function readNothing(batch: object): Promise<{ socket: Socket; head: string }> {
  const body = JSON.stringify(batch)
  const socket = connect(service.api.port, '127.0.0.1').on('error', () => {})
  socket.write(
    `POST /mcp HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${agent.key}\r\nContent-Type: application/json\r\n` +
      `Accept: application/json, text/event-stream\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
  return new Promise((resolve) =>
    socket.once('data', (bytes) => {
      socket.pause()
      resolve({ socket, head: bytes.toString('latin1') })
    }),
  )
}

test('the reads in an MCP batch return at most 8 MB together, but a change after these reads still gets its response', async () => {
  const alone = await post(read(1))
  expect(alone.bytes).toBeWithin(LIMIT_BYTES / 8, LIMIT_BYTES)
  const reads = [1, 2, 3, 4, 5, 6, 7].map(read)
  for (const batch of [reads, [...reads, change('answered')]]) {
    const { status, bytes, results } = await post(batch)
    expect(status).toBe(200)
    const ofChange = batch.length > reads.length ? alone.bytes : 0
    expect(bytes).toBeWithin(alone.bytes, LIMIT_BYTES + ofChange + 10_000)
    const refused = results.filter(({ isError }) => isError)
    expect(refused.length).toBeWithin(1, 7)
    for (const { _meta, content } of refused) {
      expect(_meta['purser/error'].status).toBe(413)
      expect(content[0].text).toContain('send this call alone')
    }
    if (ofChange > 0) expect(labelsIn(results)).toContain('answered')
  }
})

test('responses to MCP batches that clients do not read get a limited part of the memory, and a change in a later batch is still answered', async () => {
  const sockets: Socket[] = []
  try {
    let head = ''
    while (!head.includes('"isError":true') && sockets.length < 40) {
      // The results of this MCP batch fit into the limit of 8 MB in any order. Therefore only a lack of memory can
      // refuse a read.
      const batch = [...[1, 2, 3].map(read), change(`unread${sockets.length}`)]
      const begun = await readNothing(batch)
      sockets.push(begun.socket)
      head = begun.head
      expect(head).toStartWith('HTTP/1.1 200')
    }
    expect(sockets.length).toBeWithin(2, 40)
    const { results } = await post(change('alone'))
    expect(labelsIn(results)).toEqual(
      expect.arrayContaining([`unread${sockets.length - 1}`, 'alone']),
    )
  } finally {
    for (const socket of sockets) socket.destroy()
  }
  await waitFor('the memory of the ended connections', async () => {
    const { results } = await post([change('later'), read(1)])
    return results.every(({ isError }) => isError === undefined)
  })
})

test('an MCP batch that waits for mail occupies no memory that the responses of other batches need', async () => {
  const waits = Array.from({ length: 40 }, () =>
    post([call(1, 'mail.wait', { subject: 'never', timeout: 1 }), read(2)]),
  )
  const answers = await Promise.all(waits)
  expect(answers.map(({ status }) => status)).toEqual(waits.map(() => 200))
  expect(answers.flatMap(({ results }) => results).filter(({ isError }) => isError)).toEqual([])
})
