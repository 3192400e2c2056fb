/** Pays from the purse (a project's wallet) for a call of a tool at another MCP server, over streamable HTTP. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import { createMcpHandler, McpServer as McpServer2 } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { Purser } from '../../../api/client/main.ts'
import { requirePayment } from '../../../api/client/paywalls/mcpPaywall.ts'
import { type Buyer, newBuyer, startPurseTill } from '../../support/purse/purseScene.ts'
import type { TestTill } from '../../support/till/till.ts'
import '../../support/long.ts'

let till: TestTill
let buyer: Buyer
let server: ReturnType<typeof Bun.serve>
let url: string
let calls: string[] = []
let authorizations: (string | null)[] = []
let fail = false
beforeAll(async () => {
  till = await startPurseTill({ parts: { pools: ['purse', 'webhooks'] } })
  let newServer: (() => McpServer) | null = null
  server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      authorizations.push(request.headers.get('authorization'))
      const transport = new WebStandardStreamableHTTPServerTransport({})
      await newServer!().connect(transport)
      return transport.handleRequest(request)
    },
  })
  url = `http://127.0.0.1:${server.port}/mcp`
  const resources = ['v1', 'v2'].map((name) => `${url}/${name}`)
  const pursers = await Promise.all(
    resources.map(async (resource) => {
      const { key } = await till.newSeller({ resource })
      return new Purser({ apiKey: key, baseUrl: till.service.url })
    }),
  )
  newServer = () => {
    const tools = new McpServer({ name: 'weather', version: '1' })
    for (const [n, resource] of resources.entries()) {
      const x402Version = (n + 1) as 1 | 2
      tools.registerTool(
        `weather${x402Version}`,
        { inputSchema: { city: z.string() } },
        requirePayment(
          { purser: pursers[n]!, amount: '0.01', resource, x402Version },
          ({ city }: { city: string }) => {
            if (fail)
              return { isError: true, content: [{ type: 'text' as const, text: 'No weather.' }] }
            calls.push(city)
            return { content: [{ type: 'text' as const, text: `Fine in ${city}.` }] }
          },
        ),
      )
    }
    tools.registerTool('free', {}, () => ({ content: [{ type: 'text' as const, text: 'Free.' }] }))
    return tools
  }
  buyer = await newBuyer(till)
  await buyer.giveMandate({ hosts: [`127.0.0.1:${server.port}`] })
})
afterAll(async () => {
  await server.stop(true)
  await till[Symbol.asyncDispose]()
})

for (const version of [1, 2]) {
  test(`a purse (wallet) calls a paid MCP tool of x402 version ${version}, and pays once`, async () => {
    calls = []
    const tool = { name: `weather${version}`, arguments: { city: 'Oslo' } }
    const { body } = await buyer.pay(url, { key: `tool-${version}`, tool })
    expect(body).toMatchObject({ state: 'answered', status: 200, tool: `weather${version}` })
    expect(JSON.parse(body.response!.body!).content[0].text).toBe('Fine in Oslo.')
    const again = await buyer.pay(url, { key: `tool-${version}`, tool })
    expect(again.body.purchaseId).toBe(body.purchaseId)
    expect(calls).toEqual(['Oslo'])
    const spent = await buyer.settled(body.purchaseId, 'spent')
    expect(spent.payment).toMatchObject({ paidWithoutContent: false })
  })
}

test('a purse (wallet) pays for a tool of a server that speaks only MCP 2026-07-28', async () => {
  const { promise: handler, resolve: serve } =
    Promise.withResolvers<(request: Request) => Promise<Response>>()
  await using modern = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: async (request) => (await handler)(request),
  })
  const resource = `http://127.0.0.1:${modern.port}/mcp`
  const { key } = await till.newSeller({ resource })
  const purser = new Purser({ apiKey: key, baseUrl: till.service.url })
  const sold: string[] = []
  const { fetch } = createMcpHandler(
    () => {
      const tools = new McpServer2({ name: 'weather', version: '1' })
      tools.registerTool(
        'weather',
        { inputSchema: z.object({ city: z.string() }) },
        requirePayment({ purser, amount: '0.01', resource }, ({ city }) => {
          sold.push(city)
          return { content: [{ type: 'text' as const, text: `Fine in ${city}.` }] }
        }),
      )
      return tools
    },
    { legacy: 'reject' },
  )
  serve((request) => fetch(request))
  await buyer.giveMandate({ hosts: [`127.0.0.1:${modern.port}`] })
  const tool = { name: 'weather', arguments: { city: 'Oslo' } }
  const { body } = await buyer.pay(resource, { tool })
  expect(body).toMatchObject({ state: 'answered', status: 200, tool: 'weather' })
  expect(JSON.parse(body.response!.body!).content[0].text).toBe('Fine in Oslo.')
  expect(sold).toEqual(['Oslo'])
  const spent = await buyer.settled(body.purchaseId, 'spent')
  expect(spent.payment).toMatchObject({ paidWithoutContent: false })
})

test('a call of an MCP tool without a price returns its result and costs nothing', async () => {
  const { body } = await buyer.pay(url, { tool: { name: 'free' } })
  expect(body).toMatchObject({ state: 'answered', status: 200, payment: null })
})

test('if an MCP tool fails after the payment, the purchase is recorded as paid but without content', async () => {
  fail = true
  const tool = { name: 'weather2', arguments: { city: 'Bergen' } }
  const { body } = await buyer.pay(url, { tool })
  fail = false
  expect(body).toMatchObject({ state: 'answered', status: 422 })
  const spent = await buyer.settled(body.purchaseId, 'spent')
  expect(spent.payment).toMatchObject({ paidWithoutContent: true })
})

test('a purchase of an MCP tool costs nothing if the tool does not exist, or if the server does not speak MCP', async () => {
  const missing = await buyer.pay(url, { tool: { name: 'missing' } })
  expect(missing.body).toMatchObject({ state: 'answered', payment: null })
  using other = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('hello') })
  await buyer.giveMandate({ hosts: [`127.0.0.1:${other.port}`] })
  const silent = await buyer.pay(`http://127.0.0.1:${other.port}/`, { tool: { name: 'weather' } })
  expect([silent.body.state, silent.body.payment]).toEqual(['unknown', null])
})

test('a purchase of an MCP tool accepts no request body, and may send a secret of the vault', async () => {
  const both = await buyer.pay(url, { tool: { name: 'free' }, body: 'x' })
  expect(both.status).toBe(400)
  await buyer.put('/v0/vault/tools', {
    type: 'API_KEY',
    data: { apiKey: 'a-secret-of-the-vault' },
    allowedHosts: [`127.0.0.1:${server.port}`],
    placement: ['header:authorization'],
  })
  authorizations = []
  const { body } = await buyer.pay(url, {
    tool: { name: 'free' },
    credential: 'tools',
    headers: { authorization: 'Bearer {{apiKey}}' },
  })
  expect(body).toMatchObject({ state: 'answered', status: 200 })
  expect(new Set(authorizations)).toEqual(new Set(['Bearer a-secret-of-the-vault']))
})
