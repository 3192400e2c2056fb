/** Tests a paid MCP tool of a server that uses version 2 of the MCP SDK, over HTTP and with the SDK's own client. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import { ExactEvmScheme } from '@x402/evm'
import { x402Client } from '@x402/fetch'
import { z } from 'zod'
import { Purser } from '../../../api/client/main.ts'
import { requirePayment } from '../../../api/client/paywalls/mcpPaywall.ts'
import { newPayer, startTestTill, type TestTill } from '../../support/till/till.ts'
import { balanceOf } from '../buyers.ts'

const RESOURCE = 'https://tools.example.com/mcp/weather'

let till: TestTill
let server: ReturnType<typeof Bun.serve>
const clients: Client[] = []
let calls = 0

beforeAll(async () => {
  till = await startTestTill()
  const seller = await till.newSeller({ resource: RESOURCE })
  const purser = new Purser({ apiKey: seller.key, baseUrl: till.service.url })
  const { fetch } = createMcpHandler(() => {
    const mcp = new McpServer({ name: 'weather', version: '1' })
    mcp.registerTool(
      'weather',
      { inputSchema: z.object({ city: z.string() }) },
      requirePayment({ purser, amount: '0.01', resource: RESOURCE }, ({ city }) => {
        calls++
        return { content: [{ type: 'text' as const, text: `Fine in ${city}.` }] }
      }),
    )
    return mcp
  })
  server = Bun.serve({ port: 0, fetch: (request) => fetch(request) })
})
afterAll(async () => {
  for (const client of clients) await client.close()
  await server.stop(true)
  await till[Symbol.asyncDispose]()
})

type Mode = 'legacy' | 'auto'

/**
 * Connects a client that sends the given HTTP headers. The mode `auto` selects the MCP revision 2026-07-28, and the
 * mode `legacy` selects an earlier revision.
 * @returns a function that calls the tool.
 */
async function connect(headers: Record<string, string> = {}, mode: Mode = 'auto') {
  const client = new Client({ name: 'buyer', version: '1' }, { versionNegotiation: { mode } })
  clients.push(client)
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${server.port}/mcp`), {
      requestInit: { headers },
    }),
  )
  return async (_meta: Record<string, unknown> = {}): Promise<any> =>
    await client.callTool({ name: 'weather', arguments: { city: 'Oslo' }, _meta })
}

test.each(['legacy', 'auto'] as const)(
  'a tool of the MCP SDK 2 serves a payment once, and a repeated call gets the same answer again (mode %s)',
  async (mode) => {
    calls = 0
    const ask = await connect({}, mode)
    const account = await newPayer(till.client)
    const wallet = new x402Client().register('eip155:*', new ExactEvmScheme(account as never))
    const unpaid = await ask()
    expect([unpaid.isError, calls]).toEqual([true, 0])
    const payment = await wallet.createPaymentPayload(unpaid.structuredContent)
    const paid = await ask({ 'x402/payment': payment })
    expect([paid.isError, paid.content[0].text]).toEqual([undefined, 'Fine in Oslo.'])
    expect(paid._meta['x402/payment-response']).toMatchObject({ success: true })
    expect((await ask({ 'x402/payment': payment })).content).toEqual(paid.content)
    expect(calls).toBe(1)
    expect(await balanceOf(till, account.address)).toBe(990_000n)
  },
)

test('a caller who copies a payment but has other credentials than the payer does not get the payer’s answer', async () => {
  const mine = await connect({ authorization: 'Bearer mine' })
  const others = await connect({ authorization: 'Bearer other' })
  const account = await newPayer(till.client)
  const wallet = new x402Client().register('eip155:*', new ExactEvmScheme(account as never))
  const payment = await wallet.createPaymentPayload((await mine()).structuredContent)
  expect((await mine({ 'x402/payment': payment })).content[0].text).toBe('Fine in Oslo.')
  const copied = await others({ 'x402/payment': payment })
  expect([copied.isError, copied.structuredContent.error]).toEqual([true, 'duplicate_settlement'])
})
