/** Tests a paid MCP tool in x402 version 2 with the wallet of @x402/core. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { isPaymentRequired } from '@x402/core/schemas'
import { ExactEvmScheme } from '@x402/evm'
import { x402Client } from '@x402/fetch'
import { z } from 'zod'
import { Purser } from '../../../api/client/main.ts'
import { requirePayment } from '../../../api/client/paywalls/mcpPaywall.ts'
import { encodeHeader, NETWORK } from '../../support/till/headers/x402v2.ts'
import { newPayer, startTestTill, type TestTill } from '../../support/till/till.ts'
import { balanceOf } from '../buyers.ts'

const RESOURCE = 'https://tools.example.com/mcp/weather'

let till: TestTill
let client: Client
let calls = 0

beforeAll(async () => {
  till = await startTestTill()
  const seller = await till.newSeller({ resource: RESOURCE })
  const purser = new Purser({ apiKey: seller.key, baseUrl: till.service.url })
  const server = new McpServer({ name: 'weather', version: '1' })
  server.registerTool(
    'weather',
    { inputSchema: { city: z.string().optional() } },
    requirePayment(
      { purser, amount: '0.01', resource: RESOURCE },
      ({ city }: { city?: string | undefined }) => {
        calls++
        if (city === 'Atlantis' && calls % 2 === 1) {
          return { isError: true, content: [{ type: 'text' as const, text: 'Not today.' }] }
        }
        return { content: [{ type: 'text' as const, text: 'Fine.' }] }
      },
    ),
  )
  client = new Client({ name: 'buyer', version: '1' })
  const [here, there] = InMemoryTransport.createLinkedPair()
  await Promise.all([server.connect(there), client.connect(here)])
})
afterAll(async () => {
  await client.close()
  await till[Symbol.asyncDispose]()
})

const ask = async (_meta: Record<string, unknown> = {}, args = {}): Promise<any> =>
  await client.callTool({ name: 'weather', arguments: args, _meta })

test('an unpaid call of an MCP tool gets the challenge of x402 version 2 as data, as text and in _meta', async () => {
  const { isError, structuredContent, content, _meta } = await ask()
  expect([isError, isPaymentRequired(structuredContent)]).toEqual([true, true])
  expect(structuredContent).toMatchObject({ x402Version: 2, resource: { url: RESOURCE } })
  expect(JSON.parse(content[0].text)).toEqual(structuredContent)
  expect(_meta['x402/error']).toEqual(structuredContent)
  expect(calls).toBe(0)
})

for (const [key, form] of [
  ['x402/payment', 'object'],
  ['x402/payment', 'base64'],
  ['x402.payment', 'base64'],
  ['x-payment', 'object'],
] as const) {
  test(`a paid MCP tool of x402 version 2 accepts a payment in _meta["${key}"] as ${form} once`, async () => {
    const account = await newPayer(till.client)
    const wallet = new x402Client().register('eip155:*', new ExactEvmScheme(account as never))
    const { structuredContent } = await ask()
    const payload = await wallet.createPaymentPayload(structuredContent)
    const payment = form === 'base64' ? encodeHeader(payload) : payload
    const before = calls
    const paid = await ask({ [key]: payment })
    expect([paid.isError, paid.content[0].text, calls]).toEqual([undefined, 'Fine.', before + 1])
    expect(paid._meta['x402/payment-response']).toMatchObject({
      success: true,
      network: NETWORK,
      payer: account.address,
    })
    expect(await ask({ [key]: payment })).toEqual(paid)
    const other = await ask({ [key]: payment }, { city: 'Oslo' })
    expect([other.isError, other.structuredContent.error]).toEqual([true, 'duplicate_settlement'])
    expect(other._meta['x402/payment-response']).toMatchObject({ success: false })
    expect(calls).toBe(before + 1)
    expect(await balanceOf(till, account.address)).toBe(990_000n)
  })
}

test('if a paid MCP tool of x402 version 2 fails, the same call with the same payment can succeed later', async () => {
  const account = await newPayer(till.client)
  const wallet = new x402Client().register('eip155:*', new ExactEvmScheme(account as never))
  const payment = await wallet.createPaymentPayload((await ask()).structuredContent)
  calls = 0
  const call = () => ask({ 'x402/payment': payment }, { city: 'Atlantis' })
  expect((await call()).content[0].text).toBe('Not today.')
  expect((await call()).content[0].text).toBe('Fine.')
  expect((await call()).content[0].text).toBe('Fine.')
  expect(calls).toBe(2)
  expect(await balanceOf(till, account.address)).toBe(990_000n)
})
