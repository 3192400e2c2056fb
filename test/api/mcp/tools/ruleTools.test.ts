import { afterAll, beforeAll, expect, test } from 'bun:test'
import { callTool, connectMcp, failTool, textOf } from '../../../support/mcp.ts'
import { startTestService, type TestService } from '../../../support/service.ts'
import '../../../support/long.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
})
afterAll(() => service[Symbol.asyncDispose]())

test('MCP tools add, list and delete email rules as REST does', async () => {
  const agent = await service.newAgent()
  await using mcp = await connectMcp(service.url, agent.key)
  const rule = await callTool(mcp, 'mail.add_rule', {
    type: 'BLOCK',
    scope: 'RECEIVE',
    value: '*@Spam.example',
  })
  expect(rule.value).toBe('*@spam.example')
  expect(await callTool(mcp, 'mail.list_rules')).toEqual((await agent.get('/v0/email-rules')).body)
  const other = { type: 'ALLOW', scope: 'RECEIVE', value: '*@spam.example' }
  expect(await failTool(mcp, 'mail.add_rule', other)).toContain('mail.list_rules has its id')
  expect(await failTool(mcp, 'mail.add_rule', { ...other, value: '*' })).toContain('value must be')
  expect(await callTool(mcp, 'mail.delete_rule', { ruleId: rule.id })).toEqual({
    ruleId: rule.id,
    deleted: true,
  })
  expect(await failTool(mcp, 'mail.delete_rule', { ruleId: rule.id })).toContain('Rule not found')
  expect((await agent.get('/v0/email-rules')).body.count).toBe(0)
})

test('MCP tools list and remove suppressed addresses', async () => {
  const agent = await service.newAgent()
  await using mcp = await connectMcp(service.url, agent.key)
  await service.database.pool.query(
    `insert into suppressions (project_id, address, reason, detail) values ($1, 'gone@example.com', 'bounce', '550')`,
    [agent.project.id],
  )
  const page = await callTool(mcp, 'mail.list_suppressions')
  // The mail host of an untrusted recipient wrote the text that explains a suppression, so the model must treat this
  // text as data.
  expect(page).toMatchObject({ ...(await agent.get('/v0/suppressions')).body, untrusted: true })
  expect(page.suppressions[0]).toMatchObject({ address: 'gone@example.com', reason: 'bounce' })
  const { removed } = await callTool(mcp, 'mail.remove_suppression', {
    address: 'gone@example.com',
  })
  expect(removed).toBe(true)
  expect(await failTool(mcp, 'mail.remove_suppression', { address: 'gone@example.com' })).toContain(
    'Suppression not found',
  )
})

test('the text of each list result tells an MCP host without structured results how to get the next page', async () => {
  const agent = await service.newAgent()
  await using mcp = await connectMcp(service.url, agent.key)
  for (const value of ['a@x.example', 'b@x.example']) {
    await callTool(mcp, 'mail.add_rule', { type: 'BLOCK', scope: 'RECEIVE', value })
    await callTool(mcp, 'mail.create_draft', { subject: value })
    await service.database.pool.query(
      `insert into suppressions (project_id, address, reason, detail) values ($1, $2, 'bounce', '550')`,
      [agent.project.id, value],
    )
  }
  for (const name of ['mail.list_rules', 'mail.list_drafts', 'mail.list_suppressions']) {
    const page: any = await mcp.callTool({ name, arguments: { limit: 1 } })
    const { nextPageToken } = page.structuredContent
    expect([name, textOf(page)]).toEqual([
      name,
      expect.stringContaining(`More: pass pageToken "${nextPageToken}".`),
    ])
    const last: any = await mcp.callTool({
      name,
      arguments: { limit: 1, pageToken: nextPageToken },
    })
    expect([name, textOf(last)]).toEqual([name, expect.not.stringContaining('More:')])
  }
})
