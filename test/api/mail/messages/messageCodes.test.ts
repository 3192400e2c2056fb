/** Tests one-time codes and links in mail through the public API. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Purser } from '../../../../api/client/main.ts'
import { callTool, connectMcp, failTool, textOf } from '../../../support/mcp.ts'
import {
  type Agent,
  messagePath,
  startTestService,
  type TestService,
  waitForMessages,
} from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService()
})
afterAll(() => service[Symbol.asyncDispose]())

const CODE = {
  kind: 'numeric',
  value: '482913',
  confidence: expect.closeTo(0.98, 1),
  part: 'html',
  line: '4 8 2 9 1 3',
}
const LINKS = [
  {
    href: 'https://s.example/reset?token=Ab12Cd34Ef56',
    text: 'Reset password',
    purpose: 'reset',
    sensitive: true,
  },
  { href: 'https://s.example/help', text: 'Help', purpose: 'other', sensitive: false },
]
const HTML = `<p>Your one-time code</p><table><tr>${[...'482913'].map((digit) => `<td>${digit}</td>`).join('')}</tr></table><p>It lasts.</p><a href="${LINKS[0]!.href}">Reset password</a> <a href="${LINKS[1]!.href}">Help</a>`

const deliver = (to: Agent, id: string, mail: object = { html: HTML, text: 'See the HTML.' }) =>
  service.deliver({
    from: 'no-reply@s.example',
    to: to.address,
    subject: 'Hello',
    messageId: `<${id}@s.example>`,
    ...mail,
  })

const waiters = async () =>
  Number(
    /purser_event_readers (\d+)/.exec(await (await fetch(`${service.url}/metrics`)).text())?.[1],
  )

test('a received message shows its one-time codes and links only when a client reads this message, and not in lists and threads', async () => {
  const agent = await service.newAgent()
  await deliver(agent, 'get')
  const [item] = await waitForMessages(agent, 1)
  const { body } = await agent.get(messagePath(item.messageId))
  expect(body.codes).toEqual([CODE])
  expect(body.links).toEqual(LINKS)
  const { body: thread } = await agent.get(`/v0/threads/${item.threadId}`)
  const labelled = await agent.patch(messagePath(item.messageId), { addLabels: ['x'] })
  for (const one of [item, thread.messages[0], labelled.body]) {
    expect(one).not.toHaveProperty('codes')
    expect(one).not.toHaveProperty('links')
  }
})

test('a message that the project sent shows neither codes nor links', async () => {
  const agent = await service.newAgent()
  const mail = { to: ['a@example.com'], subject: 's', text: 'Your code is 482913.' }
  const { body } = await agent.post('/v0/messages/send', mail)
  const { body: sent } = await agent.get(messagePath(body.messageId))
  expect(sent).not.toHaveProperty('codes')
  expect(sent).not.toHaveProperty('links')
})

test('a waiting call with has=code returns the first message that has a one-time code', async () => {
  const agent = await service.newAgent()
  const waiting = agent.get('/v0/messages/wait?has=code&timeout=60')
  await waitFor('the waiter', async () => (await waiters()) === 1)
  await deliver(agent, 'order', { text: 'Order 482913 has shipped.' })
  await waitForMessages(agent, 1)
  await deliver(agent, 'code', { text: 'Your code is 771204.' })
  const { status, body } = await waiting
  expect(status).toBe(200)
  expect(body).toMatchObject({
    messageId: '<code@s.example>',
    codes: [{ value: '771204' }],
    links: [],
  })
})

test('a waiting call with has=code and the parameter after returns at once the oldest message since this time that has a one-time code', async () => {
  const agent = await service.newAgent()
  const after = new Date(Date.now() - 60_000).toISOString()
  for (const id of ['none', 'first', 'second']) {
    const text =
      id === 'none' ? 'Order 482913.' : `Your code is ${id === 'first' ? 111222 : 333444}.`
    await deliver(agent, `after-${id}`, { text, from: `${id}@s.example` })
    await waitFor(id, async () =>
      (await agent.get('/v0/messages')).body.messages.some((one: any) =>
        one.messageId.startsWith(`<after-${id}`),
      ),
    )
  }
  const path = `/v0/messages/wait?has=code&timeout=0&after=${after}`
  expect((await agent.get(path)).body.codes[0].value).toBe('111222')
  expect((await agent.get(`${path}&from=second@s.example`)).body.codes[0].value).toBe('333444')
  expect((await agent.get(`${path}&from=none@s.example`)).status).toBe(204)
  expect((await agent.get(`${path}&labels=absent`)).status).toBe(204)
  const wrong = await agent.get('/v0/messages/wait?has=link')
  expect(wrong).toMatchObject({
    status: 400,
    body: { message: 'has must be "code", "text" or "invite"' },
  })
})

test('an API key without mail:codes gets no codes and links, and may not wait for a code', async () => {
  const agent = await service.newAgent({ scopes: ['mail:read'] })
  await deliver(agent, 'scope')
  const [item] = await waitForMessages(agent, 1)
  const { body } = await agent.get(messagePath(item.messageId))
  expect(body.text.trim()).toBe('See the HTML.')
  expect(body).not.toHaveProperty('codes')
  expect(body).not.toHaveProperty('links')
  const after = new Date(Date.now() - 60_000).toISOString()
  const waited = await agent.get(`/v0/messages/wait?timeout=0&after=${after}`)
  expect(waited.body).not.toHaveProperty('codes')
  expect(await agent.get('/v0/messages/wait?has=code&timeout=0')).toMatchObject({
    status: 403,
    body: { error: 'forbidden', message: 'Missing required scope: mail:codes' },
  })
  await using mcp = await connectMcp(service.url, agent.key)
  const { tools } = await mcp.listTools()
  expect(tools.map(({ name }) => name)).not.toContain('mail.wait_for_code')
  expect(await failTool(mcp, 'mail.wait_for_code', {})).toContain('mail:codes')
  const read = await callTool(mcp, 'mail.get_message', { messageId: item.messageId })
  expect(read).not.toHaveProperty('links')
})

test('an API key that has only the scope mail:codes cannot read mail', async () => {
  const agent = await service.newAgent({ scopes: ['mail:codes'] })
  await using mcp = await connectMcp(service.url, agent.key)
  expect(await failTool(mcp, 'mail.wait_for_code', { timeout: 0 })).toContain('mail:read')
  expect((await agent.get('/v0/messages/wait?has=code&timeout=0')).status).toBe(403)
})

test('a running call that waits for a one-time code ends if its API key loses the scope mail:codes', async () => {
  const agent = await service.newAgent()
  const before = await waiters()
  const waiting = agent.get('/v0/messages/wait?has=code&timeout=60')
  await waitFor('the waiter', async () => (await waiters()) === before + 1)
  await service.platform.patch(`/v0/platform/projects/${agent.project.id}`, {
    removeScopes: ['mail:codes'],
  })
  // The waiting call checks the API key once more after its start. If the key was changed before this check, the call
  // is refused.
  expect([204, 403]).toContain((await waiting).status)
  expect((await agent.get('/v0/messages/wait?has=code&timeout=0')).status).toBe(403)
})

test('the MCP tool mail.wait_for_code returns the code and its message', async () => {
  const agent = await service.newAgent()
  await using mcp = await connectMcp(service.url, agent.key)
  expect(await callTool(mcp, 'mail.wait_for_code', { timeout: 0 })).toMatchObject({
    found: false,
    code: null,
    message: null,
  })
  const after = new Date(Date.now() - 60_000).toISOString()
  await deliver(agent, 'tool')
  const args = { from: 'no-reply@s.example', after, timeout: 60 }
  const result: any = await mcp.callTool({ name: 'mail.wait_for_code', arguments: args })
  expect(result.structuredContent).toMatchObject({
    found: true,
    code: '482913',
    message: { codes: [CODE], links: LINKS },
    untrusted: true,
  })
  expect(textOf(result)).toContain('Code: 482913')
})

test('the client library waits for a mail with a one-time code, and returns the code', async () => {
  const agent = await service.newAgent()
  const purser = new Purser({ apiKey: agent.key, baseUrl: service.url })
  expect(await purser.messages.waitForCode({ timeout: 0 })).toBeUndefined()
  await deliver(agent, 'client')
  const after = new Date(Date.now() - 60_000).toISOString()
  const found = await purser.messages.waitForCode({ after, timeout: 60 })
  expect(found?.code).toBe('482913')
  expect(found?.message.links).toEqual(LINKS as never)
})

test('if an earlier version of the service stored a message, the service finds the message’s codes when a client reads it', async () => {
  const agent = await service.newAgent()
  await deliver(agent, 'old', { text: 'Your code is 482913.\nhttps://s.example/help' })
  const [item] = await waitForMessages(agent, 1)
  await service.database.pool.query(
    'update messages set codes = null, links = null where project_id = $1',
    [agent.project.id],
  )
  const { body } = await agent.get(messagePath(item.messageId))
  expect(body.codes).toMatchObject([{ value: '482913', part: 'text' }])
  expect(body.links).toMatchObject([{ href: 'https://s.example/help', purpose: 'other' }])
})

test('the webhook event about a message with a one-time code does not contain the code', async () => {
  const agent = await service.newAgent()
  await deliver(agent, 'no-event', { text: 'Order 482913 has shipped.' })
  await waitForMessages(agent, 1)
  await deliver(agent, 'event', { text: 'Your code is 482913.' })
  await waitForMessages(agent, 2)
  const { rows } = await service.database.pool.query(
    'select type, data from events where project_id = $1 order by seq',
    [agent.project.id],
  )
  expect(rows.map(({ type, data }) => [type, data.messageId])).toEqual([
    ['message.received', '<no-event@s.example>'],
    ['message.received', '<event@s.example>'],
    ['message.code', '<event@s.example>'],
  ])
  expect(JSON.stringify(rows.at(-1))).not.toContain('482913')
  const narrow = await service.newAgent({ scopes: ['mail:read'] })
  expect(await narrow.get('/v0/events?types=message.code')).toMatchObject({ status: 403 })
})

test('the audit log has an entry for each API response with a one-time code or a password reset link from a mail', async () => {
  const agent = await service.newAgent()
  const mails = [
    ['order', { text: 'Order 482913 has shipped.' }],
    ['code', { text: 'Your code is 482913.' }],
    ['link', { text: `Reset password:\n${LINKS[0]!.href}` }],
  ] as const
  for (const [id, mail] of mails) await deliver(agent, `audit-${id}`, mail)
  await waitForMessages(agent, 3)
  for (const [id] of mails) {
    expect((await agent.get(messagePath(`<audit-${id}@s.example>`))).status).toBe(200)
  }
  const { body } = await agent.get('/v0/logs?action=message.codes')
  const told = body.logs.map(({ subject, outcome, actor }: any) => [subject, outcome, actor])
  expect(told.toSorted()).toEqual(
    ['code', 'link'].map((id) => [`<audit-${id}@s.example>`, 'ok', agent.project.apiKeyPrefix]),
  )
  expect(JSON.stringify(body)).not.toContain('482913')
})
