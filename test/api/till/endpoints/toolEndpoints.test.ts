/**
 * Tests MCP tools that are registered as paid endpoints. An MCP tool has a price, but no URL that the service could
 * check.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { changeProject } from '../../../support/changeProject.ts'
import type { Agent } from '../../../support/service.ts'
import {
  newPayer,
  pay,
  payTo,
  redeemToEnd,
  startTestTill,
  type TestTill,
} from '../../../support/till/till.ts'

const PATH = '/v0/sellers/endpoints'
const TOOL = 'mcp://tool/weather.today'
const STATED = 'by the word of the project: an MCP tool has no URL to fetch'

let till: TestTill
let seller: Agent
beforeAll(async () => {
  till = await startTestTill()
  seller = await till.newSeller()
})
afterAll(() => till[Symbol.asyncDispose]())

test('an MCP tool is registered as an endpoint, counts as verified because its project vouches for it, and can be sold', async () => {
  const { status, body } = await seller.put(PATH, { urlPattern: TOOL, priceUsdc: '0.01' })
  expect([status, body.urlPattern]).toEqual([201, TOOL])
  expect(body.verification).toEqual({
    status: 'verified',
    detail: STATED,
    checkedAt: expect.any(String),
  })
  const challenge = { amount: '0.01', resource: TOOL }
  const challenged = await seller.post('/v0/payments/challenge', challenge)
  expect([challenged.status, challenged.body.accepts[0].resource]).toEqual([200, TOOL])
  const account = await newPayer(till.client)
  const { header } = await pay({}, { account })
  const paid = await redeemToEnd(seller, header, { resource: TOOL })
  expect(paid.body.ok).toBe(true)
  expect(paid.body.signedReceipt.body).toMatchObject({
    endpointId: body.endpointId,
    resource: TOOL,
  })
  expect((await seller.get(`${PATH}/${body.endpointId}`)).body).toMatchObject({
    callCount: 1,
    revenueUsdcRaw: '10000',
  })
  const again = await seller.put(PATH, { urlPattern: TOOL, priceUsdc: '0.02' })
  expect([again.status, again.body.endpointId, again.body.priceUsdc]).toEqual([
    200,
    body.endpointId,
    '0.02',
  ])
  const verified = await seller.post(`${PATH}/${body.endpointId}/verify`, {})
  expect(verified.body.verification).toMatchObject({ status: 'verified', detail: STATED })
})

test('MCP tools with the same name in two projects are two endpoints', async () => {
  const other = await till.newSeller()
  const { address } = await newPayer(till.client, 0n)
  await changeProject(till.service.database.pool, other.project.id, { payTo: address })
  for (const [agent, payee] of [
    [seller, payTo],
    [other, address],
  ] as const) {
    await agent.put(PATH, { urlPattern: TOOL, priceUsdc: '0.01' })
    const { body } = await agent.post('/v0/payments/challenge', { amount: '0.01', resource: TOOL })
    expect(body.accepts[0].payTo).toBe(payee)
  }
  const third = await till.newSeller()
  const { status } = await third.post('/v0/payments/challenge', { amount: '0.01', resource: TOOL })
  expect(status).toBe(400)
})

test('a request to register an invalid URL of an MCP tool gets status 400 and a message that shows the valid form', async () => {
  for (const urlPattern of [
    'mcp://tool/',
    'mcp://tool/a b',
    'mcp://tool/a?b',
    'mcp://server/report',
    'MCP://tool/report',
    `mcp://tool/${'a'.repeat(129)}`,
    'mcp://tool/a\r\nPaid-To: me',
  ]) {
    const { status, body } = await seller.put(PATH, { urlPattern, priceUsdc: '0.01' })
    expect([urlPattern, status, body.message]).toEqual([
      urlPattern,
      400,
      'urlPattern must be mcp://tool/NAME for an MCP tool, with a name of 1 to 128 letters, digits and _-./',
    ])
  }
  const challenge = { amount: '0.01', resource: 'mcp://tool/none' }
  expect((await seller.post('/v0/payments/challenge', challenge)).body.message).toMatch(
    /^resource must match a registered, active endpoint/,
  )
})

test('an MCP tool appears in the public list only if its server URL is known, because agents need the server to call the tool', async () => {
  const urlPattern = 'mcp://tool/hidden'
  const put = { urlPattern, priceUsdc: '0.01', discoverable: true }
  const MESSAGE =
    'discoverable must come with mcpUrl for an MCP tool: an agent looks for its server'
  expect((await seller.put(PATH, put)).body).toMatchObject({ status: 400, message: MESSAGE })
  const { body } = await seller.put(PATH, { ...put, discoverable: false })
  const patched = await seller.patch(`${PATH}/${body.endpointId}`, { discoverable: true })
  expect(patched.body).toMatchObject({ status: 400, message: MESSAGE })
  const list = async () =>
    await (await fetch(`${till.service.url}/v0/x402/discovery/resources`)).text()
  expect(await list()).not.toContain('mcp://')
  const mcpUrl = 'https://mcp.example.com/mcp'
  const listed = await seller.patch(`${PATH}/${body.endpointId}`, { discoverable: true, mcpUrl })
  expect(listed.body).toMatchObject({ discoverable: true, mcpUrl })
  expect(await list()).toContain(mcpUrl)
  const unlisted = await seller.patch(`${PATH}/${body.endpointId}`, { mcpUrl: null })
  expect(unlisted.body).toMatchObject({ status: 400, message: MESSAGE })
})
