/** Tests that reads over MCP share the limit on large responses with the reads of the REST API. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { LoopTime } from '../../../api/http/limits/loopTime.ts'
import { callMcp, toolCall } from '../../support/oauth.ts'
import { type Agent, startTestService, type TestService } from '../../support/service.ts'

let service: TestService
let agent: Agent
let messageId: string
beforeAll(async () => {
  // A response of 1.8 MB counts as 63 ms of a project's time for large responses, so one large read uses up this time.
  const loopTime = new LoopTime(undefined, { burstMs: 50, perSecondMs: 1 })
  service = await startTestService({ smtp: false, workers: false, loopTime })
  agent = await service.newAgent()
  const text = 'x'.repeat(1_800_000)
  const sent = await agent.post('/v0/messages/send', { to: ['a@example.com'], subject: 's', text })
  messageId = sent.body.messageId
})
afterAll(() => service[Symbol.asyncDispose]())

const results = async (messages: object): Promise<any[]> => {
  const { status, body } = await callMcp(service.url, agent.key, messages)
  expect(status).toBe(200)
  return [body].flat().map(({ result }: any) => result)
}
const refusal = {
  isError: true,
  content: [
    { type: 'text', text: 'rate_limited: Too many large responses: read smaller pages or wait.' },
  ],
  _meta: { 'purser/error': expect.objectContaining({ status: 429 }) },
}

test('if a project has used up its time for large responses, a large read over MCP is refused, but its other calls succeed', async () => {
  const read = toolCall('mail.get_message', { messageId })
  const change = { ...toolCall('mail.update_labels', { messageId, addLabels: ['done'] }), id: 2 }
  const [first] = await results(read)
  expect(first.structuredContent.text).toHaveLength(1_800_000)
  expect(await results(read)).toEqual([refusal])
  expect(await results(toolCall('mail_get_message', { messageId }))).toEqual([refusal])
  expect((await results(toolCall('whoami')))[0].isError).toBeUndefined()
  const [refused, changed] = await results([read, change])
  expect(refused).toEqual(refusal)
  expect(changed.structuredContent.labels).toContain('done')
})

test('an MCP batch with large results uses up the project’s limit on large responses, and later batches get no large result', async () => {
  const other = await service.newAgent()
  const mail = { to: ['a@example.com'], subject: 's', text: 'x'.repeat(1_800_000) }
  const own = (await other.post('/v0/messages/send', mail)).body.messageId
  const batch = [
    toolCall('mail.get_thread', { threadId: 'thd_none' }),
    { ...toolCall('mail.get_message', { messageId: own }), id: 2 },
  ]
  const read = async () => (await callMcp(service.url, other.key, batch)).body.at(-1).result
  expect((await read()).structuredContent.text).toHaveLength(1_800_000)
  expect(await read()).toEqual(refusal)
})
