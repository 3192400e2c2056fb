import { afterAll, beforeAll, expect, test } from 'bun:test'
import { callTool, connectMcp, failTool, textOf } from '../../../support/mcp.ts'
import {
  type Agent,
  startTestService,
  type TestService,
  waitForMessages,
} from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

let service: TestService
let agent: Agent
beforeAll(async () => {
  service = await startTestService()
  agent = await service.newAgent()
  await service.deliver({
    from: 'ada@example.com',
    to: agent.address,
    subject: 'Invoice',
    text: 'The invoice you asked for.',
    messageId: '<invoice@example.com>',
    attachments: [
      { filename: 'notes.txt', content: 'Paid: nö', contentType: 'text/plain; charset=utf-8' },
      { filename: 'logo.png', content: Buffer.from([137, 80, 78, 71]), contentType: 'image/png' },
      { filename: 'big.bin', content: Buffer.alloc(256 * 1024 + 1) },
      { filename: 'full.bin', content: Buffer.alloc(256 * 1024) },
    ],
  })
  await waitForMessages(agent, 1)
})
afterAll(() => service[Symbol.asyncDispose]())

test('the MCP search tool finds the same messages as REST, with highlights', async () => {
  await using mcp = await connectMcp(service.url, agent.key)
  const found = await callTool(mcp, 'mail.search', { q: 'invoice -draft', from: 'ada@example.com' })
  const rest = (await agent.get('/v0/messages?q=invoice+-draft&from=ada%40example.com')).body
  expect(found).toMatchObject({ ...rest, untrusted: true })
  expect(found.messages[0].highlights.subject[0].ranges).toEqual([[0, 7]])
  expect((await callTool(mcp, 'mail.search', { q: 'nothing' })).count).toBe(0)
  const shown = async (words: string) =>
    textOf(await mcp.callTool({ name: 'mail.search', arguments: { q: words } }))
  expect(await shown('invoice')).toMatch(/^1 messages found[\s\S]*ada@example\.com[\s\S]*Invoice/)
  expect(await shown('nothing')).toBe('0 messages found, newest first.')
  expect(await failTool(mcp, 'mail.search', { q: '-only' })).toContain(
    'q must hold at least one word',
  )
  expect(await failTool(mcp, 'mail.search', { after: 'soon' })).toContain(
    'after must be an ISO 8601 time',
  )
})

test('MCP tools read attachments as text, and on request as base64 up to a maximum size', async () => {
  await using mcp = await connectMcp(service.url, agent.key)
  const { attachments } = await callTool(mcp, 'mail.get_message', {
    messageId: '<invoice@example.com>',
  })
  const [notes, logo, big, full] = attachments.map((one: any) => ({
    messageId: '<invoice@example.com>',
    attachmentId: one.attachmentId,
  }))
  const read = await waitFor('the text', async () => {
    const page = await callTool(mcp, 'mail.get_attachment', notes)
    return page.state === 'pending' ? undefined : page
  })
  expect(read).toMatchObject({ filename: 'notes.txt', untrusted: true, text: 'Paid: nö' })
  expect(await callTool(mcp, 'mail.get_attachment', { ...notes, offset: 6 })).toMatchObject({
    text: 'nö',
  })
  expect(await callTool(mcp, 'mail.get_attachment', logo)).toMatchObject({ state: 'none' })
  expect(await callTool(mcp, 'mail.get_attachment', { ...logo, as: 'bytes' })).toMatchObject({
    size: 4,
    base64: 'iVBORw==',
  })
  expect(await callTool(mcp, 'mail.get_attachment', { ...full, as: 'bytes' })).toMatchObject({
    size: 256 * 1024,
  })
  expect(await failTool(mcp, 'mail.get_attachment', { ...big, as: 'bytes' })).toContain(
    'at most 262144',
  )
  expect(await failTool(mcp, 'mail.get_attachment', { ...big, attachmentId: 'att_9' })).toContain(
    'Attachment not found',
  )
})

test('the MCP tool that waits for mail returns the next message, or returns `found: false` after the timeout', async () => {
  await using mcp = await connectMcp(service.url, agent.key)
  const waiting = mcp.callTool({ name: 'mail.wait', arguments: { subject: 'code', timeout: 30 } })
  await service.deliver({ from: 'a@example.com', to: agent.address, subject: 'Other', text: 'x' })
  await service.deliver({
    from: 'a@example.com',
    to: agent.address,
    subject: 'Your code',
    text: '4711',
  })
  const result: any = await waiting
  expect(result.structuredContent).toMatchObject({
    found: true,
    message: { subject: 'Your code' },
    untrusted: true,
  })
  expect(textOf(result)).toContain('4711')
  expect(await callTool(mcp, 'mail.wait', { timeout: 0 })).toMatchObject({
    found: false,
    message: null,
  })
  expect(await failTool(mcp, 'mail.wait', { timeout: 61 })).toContain('timeout must')
})

test('a call of the MCP tool that waits for mail ends when its caller disconnects', async () => {
  const other = await service.newAgent()
  const waiters = async () =>
    Number(
      /purser_event_readers (\d+)/.exec(await (await fetch(`${service.url}/metrics`)).text())?.[1],
    )
  await waitFor('nobody else', async () => (await waiters()) === 0)
  const abort = new AbortController()
  const call = fetch(`${service.url}/mcp`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${other.key}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-06-18',
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'mail.wait', arguments: { timeout: 60 } },
    }),
    signal: abort.signal,
  }).catch(() => 'gone')
  await waitFor('the waiter', async () => (await waiters()) === 1)
  abort.abort()
  expect(await call).toBe('gone')
  await waitFor('its end', async () => (await waiters()) === 0)
})
