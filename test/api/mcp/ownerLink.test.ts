/**
 * Tests mail that waits for approval, over MCP revision 2026-07-28. The MCP host shows a link to the owner, and then
 * repeats the tool call.
 */
import { afterAll, beforeAll, expect, setSystemTime, test } from 'bun:test'
import { changingBefore } from '../../support/database/beforeStatement.ts'
import { whileFailing } from '../../support/database/failingStatements.ts'
import { heldAgent, heldPath } from '../../support/mail/held.ts'
import { type Sink, startSink } from '../../support/mail/sink.ts'
import { connectMcp } from '../../support/mcp.ts'
import { type Agent, startTestService, type TestService } from '../../support/service.ts'

let service: TestService
let sink: Sink
let agent: Agent
beforeAll(async () => {
  sink = await startSink()
  service = await startTestService({ smtp: false, env: { SMTP_RELAY_URL: sink.url } })
  agent = await heldAgent(service)
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await sink[Symbol.asyncDispose]()
})

const MAIL = { to: ['ada@example.com'], subject: 'Offer', text: 'Shall I?' }
const URLS = { elicitation: { url: {} } }

type Call = { capabilities?: object; key?: string; state?: string; args?: object; name?: string }

/** Calls an MCP tool once, in revision 2026-07-28 of MCP. The default tool is `mail.send`. */
async function send({
  capabilities = URLS,
  key = agent.key,
  state,
  args = MAIL,
  name = 'mail.send',
}: Call = {}) {
  const response = await fetch(`${service.url}/mcp`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': name,
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: {
        name,
        arguments: args,
        ...(state === undefined
          ? {}
          : { requestState: state, inputResponses: { approval: { action: 'accept' } } }),
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientCapabilities': capabilities,
        },
      },
    }),
  })
  return (await response.json()) as any
}

const sentMails = async () => {
  const { rows } = await service.database.pool.query(
    `select count(*)::int as n from messages where project_id = $1 and direction = 'sent'`,
    [agent.project.id],
  )
  return rows[0].n as number
}

test('an MCP host that can show links gets a link to the console, and learns the owner’s decision when it repeats the call', async () => {
  const { result } = await send()
  expect(result.resultType).toBe('input_required')
  const { method, params } = result.inputRequests.approval
  expect([method, params.mode]).toEqual(['elicitation/create', 'url'])
  const [, approvalId] = /\/console#\/projects\/[^/]+\/approvals\/(apr_[0-9a-f]{24})$/.exec(
    params.url,
  )!
  const before = await sentMails()
  const waiting = (await send({ state: result.requestState })).result
  expect(waiting.structuredContent).toMatchObject({ deliveryStatus: 'held', subject: 'Offer' })
  const held = (await service.platform.get(heldPath(agent, approvalId!))).body
  await service.platform.post(`${heldPath(agent, approvalId!)}/approve`, { sha256: held.sha256 })
  const approved = (await send({ state: result.requestState })).result
  expect(approved.structuredContent.messageId).toBe(waiting.structuredContent.messageId)
  expect(approved.structuredContent.deliveryStatus).toBeUndefined()
  // The repeated MCP call did not send the held mail a second time.
  expect(await sentMails()).toBe(before)
})

test('an MCP host that repeats the call days later learns the owner’s decision, and sends no second mail', async () => {
  const { result } = await send()
  const approvalId = result.inputRequests.approval.params.url.split('/').at(-1)
  const held = (await service.platform.get(heldPath(agent, approvalId))).body
  await service.platform.post(`${heldPath(agent, approvalId)}/approve`, { sha256: held.sha256 })
  const before = await sentMails()
  setSystemTime(Date.now() + 29 * 24 * 3_600_000)
  try {
    const approved = await send({ state: result.requestState })
    expect(approved.result?.structuredContent).toMatchObject({ subject: 'Offer' })
    expect(await sentMails()).toBe(before)
  } finally {
    setSystemTime()
  }
})

test('if the database fails after a mail was accepted, the tool still reports that the mail waits for approval', async () => {
  const answer = await whileFailing('from approvals', () => send())
  expect(answer.result.structuredContent).toMatchObject({ deliveryStatus: 'held' })
})

test('if the owner decides before the MCP tool has made the approval link, the tool does not ask the MCP host to open a link', async () => {
  const reject = async () => {
    const { body } = await service.platform.get(`${heldPath(agent)}?state=waiting&limit=1`)
    const path = heldPath(agent, body.held[0].approvalId)
    expect((await service.platform.post(`${path}/reject`, {})).status).toBe(200)
  }
  const { result } = await changingBefore('a.kind = $2 and a.subject', reject, () => send())
  expect(result.resultType).not.toBe('input_required')
  expect(result.structuredContent).toMatchObject({ subject: 'Offer' })
})

test('a tool that reads or labels a mail that waits for approval returns the mail, and does not ask the MCP host to open the approval link', async () => {
  const sent = (await send({ capabilities: {} })).result.structuredContent
  const { messageId } = sent
  const { result } = await send({ name: 'mail.get_message', args: { messageId } })
  expect(result.resultType).not.toBe('input_required')
  expect(result.structuredContent).toMatchObject({ deliveryStatus: 'held', text: 'Shall I?' })
  const labelled = await send({
    name: 'mail.update_labels',
    args: { messageId, addLabels: ['seen'] },
  })
  expect(labelled.result.structuredContent.labels).toContain('seen')
})

test('if an owner approves a mail with sendAt, the tool reports that the mail is scheduled', async () => {
  const args = { ...MAIL, sendAt: new Date(Date.now() + 3_600_000).toISOString() }
  const { result } = await send({ args })
  const approvalId = result.inputRequests.approval.params.url.split('/').at(-1)
  const held = (await service.platform.get(heldPath(agent, approvalId))).body
  await service.platform.post(`${heldPath(agent, approvalId)}/approve`, { sha256: held.sha256 })
  const approved = (await send({ args, state: result.requestState })).result
  const { messageId, labels, deliveryStatus } = approved.structuredContent
  expect([deliveryStatus, labels]).toEqual(['scheduled', ['sent', 'scheduled']])
  expect(approved.content[0].text).toStartWith('Accepted for its time')
  expect((await agent.get(`/v0/messages/${encodeURIComponent(messageId)}`)).body).toMatchObject({
    deliveryStatus,
  })
})

test('if the owner has rejected a held mail, the MCP call that is repeated after the decision gets an error that says so', async () => {
  const { result } = await send()
  const approvalId = result.inputRequests.approval.params.url.split('/').at(-1)
  await service.platform.post(`${heldPath(agent, approvalId)}/reject`, { reason: 'No' })
  const rejected = (await send({ state: result.requestState })).result
  expect([rejected.isError, rejected.content[0].text]).toEqual([
    true,
    'conflict: The mail is rejected and is not sent. Do not send it again unasked.',
  ])
})

test('the requestState of a mail that waits for approval is accepted only with its valid signature, the same API key and the same arguments', async () => {
  const { result } = await send()
  const state = result.requestState
  const other = await service.newAgent()
  const before = await sentMails()
  expect((await send({ state, key: other.key })).error.code).toBe(-32602)
  expect((await send({ state: `${state.slice(0, -4)}AAAA` })).error.code).toBe(-32602)
  const changed = (await send({ state, args: { ...MAIL, text: 'Another' } })).result
  expect(changed.content[0].text).toContain('requestState must come with the arguments')
  expect(await sentMails()).toBe(before)
})

test('if an MCP host cannot show links, its call returns the mail with the delivery status held (waiting for approval)', async () => {
  for (const capabilities of [{}, { elicitation: {} }, { elicitation: { form: {} } }]) {
    const { result } = await send({ capabilities })
    expect([capabilities, result.structuredContent?.deliveryStatus]).toEqual([capabilities, 'held'])
  }
  await using client = await connectMcp(service.url, agent.key)
  const old: any = await client.callTool({ name: 'mail.send', arguments: MAIL })
  expect(old.structuredContent.deliveryStatus).toBe('held')
})

test('the icon of the MCP server is a PNG file from the origin of the service', async () => {
  const response = await fetch(`${service.url}/console/assets/icon.png`)
  expect(response.headers.get('content-type')).toBe('image/png')
  expect(
    Buffer.from(await response.arrayBuffer())
      .subarray(1, 4)
      .toString(),
  ).toBe('PNG')
})
