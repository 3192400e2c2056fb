/** Tests a paid MCP tool with the official MCP client and the wallet of x402. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { createPaymentHeader } from 'x402/client'
import { PaymentRequirementsSchema } from 'x402/types'
import { z } from 'zod'
import { Purser } from '../../../api/client/main.ts'
import { requirePayment } from '../../../api/client/paywalls/mcpPaywall.ts'
import { newPayer, startTestTill, type TestTill } from '../../support/till/till.ts'
import { balanceOf } from '../buyers.ts'

const RESOURCE = 'https://tools.example.com/mcp/weather'

let till: TestTill
let client: Client
let calls = 0
let away = false

beforeAll(async () => {
  till = await startTestTill()
  const seller = await till.newSeller({ resource: RESOURCE })
  const purser = new Purser({
    apiKey: seller.key,
    baseUrl: till.service.url,
    retries: 0,
    fetch: (request) => (away ? Promise.reject(new Error('away')) : fetch(request)),
  })
  const price = { purser, amount: '0.01', resource: RESOURCE, x402Version: 1 as const }
  const server = new McpServer({ name: 'weather', version: '1' })
  server.registerTool(
    'weather',
    { inputSchema: { city: z.string() } },
    requirePayment(price, ({ city }: { city: string }) => {
      calls++
      return { content: [{ type: 'text' as const, text: `Fine in ${city}.` }], _meta: { own: 1 } }
    }),
  )
  server.registerTool(
    'noise',
    {},
    requirePayment(price, () => ({ content: [{ type: 'text' as const, text: 'Noise.' }] })),
  )
  client = new Client({ name: 'buyer', version: '1' })
  const [here, there] = InMemoryTransport.createLinkedPair()
  await Promise.all([server.connect(there), client.connect(here)])
})
afterAll(async () => {
  await client.close()
  await till[Symbol.asyncDispose]()
})

const ask = async (
  _meta?: Record<string, unknown>,
  name = 'weather',
  city = 'Oslo',
): Promise<any> =>
  await client.callTool({
    name,
    arguments: name === 'weather' ? { city } : {},
    ...(_meta === undefined ? {} : { _meta }),
  })

test('a call of a paid MCP tool without payment gets the x402 challenge as data and as text', async () => {
  for (const _meta of [undefined, {}, { 'x402/payment': 7 }, { 'x-payment': null }]) {
    const { isError, structuredContent, content } = await ask(_meta)
    expect(isError).toBe(true)
    expect(structuredContent).toMatchObject({ x402Version: 1, accepts: [{ resource: RESOURCE }] })
    expect(JSON.parse(content[0].text)).toEqual(structuredContent)
    PaymentRequirementsSchema.parse(structuredContent.accepts[0])
  }
  expect(calls).toBe(0)
})

for (const [key, form] of [
  ['x402/payment', 'object'],
  ['x402/payment', 'base64'],
  ['x-payment', 'base64'],
  ['x-payment', 'object'],
] as const) {
  test(`a paid MCP tool accepts a payment in _meta["${key}"] as ${form} once`, async () => {
    const account = await newPayer(till.client)
    const { structuredContent } = await ask()
    const header = await createPaymentHeader(account as never, 1, structuredContent.accepts[0])
    const payment = form === 'base64' ? header : JSON.parse(atob(header))
    const before = calls
    const paid = await ask({ [key]: payment })
    expect([paid.isError, paid.content[0].text, calls]).toEqual([
      undefined,
      'Fine in Oslo.',
      before + 1,
    ])
    expect(paid._meta).toMatchObject({
      own: 1,
      'x402/payment-response': {
        success: true,
        network: 'base-sepolia',
        payer: account.address,
        transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
      },
    })
    expect(await ask({ [key]: payment })).toEqual(paid)
    const other = await ask({ [key]: payment }, 'weather', 'Bergen')
    expect([other.isError, other.structuredContent.error]).toEqual([true, 'duplicate_settlement'])
    expect(calls).toBe(before + 1)
    expect(await balanceOf(till, account.address)).toBe(990_000n)
  })
}

test('if the form of a payment is invalid, the MCP tool’s result has a new challenge, and no error about the seller', async () => {
  const depths = (levels: number) => JSON.parse(`${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`)
  const payments = {
    list: [1],
    'more than 2 MB of UTF-8': { text: '€'.repeat(900_000) },
    'deep with the text of an escape': { text: '\\u0000', deep: depths(200) },
    deep: depths(5_000),
    empty: {},
    'no text': '',
    'a null character in base64': btoa('{"a":"\\u0000"}'),
  }
  for (const [name, payment] of Object.entries(payments)) {
    const { structuredContent, content } = await ask({ 'x402/payment': payment })
    const said = structuredContent?.accepts?.length ?? content[0].text
    expect([name, said]).toEqual([name, 1])
  }
})

test('a paywall can sell an MCP tool that takes no arguments', async () => {
  const account = await newPayer(till.client)
  const { structuredContent } = await ask(undefined, 'noise')
  const header = await createPaymentHeader(account as never, 1, structuredContent.accepts[0])
  const paid = await ask({ 'x402/payment': header }, 'noise')
  expect(paid.content[0].text).toBe('Noise.')
})

test('while the service is unreachable, the payer of an MCP tool gets no new challenge, so that the payer does not pay again', async () => {
  away = true
  try {
    const { isError, structuredContent } = await ask({ 'x402/payment': 'e30=' })
    expect(isError).toBe(true)
    expect(structuredContent).toMatchObject({ error: 'unavailable', status: 503 })
    expect('accepts' in structuredContent).toBe(false)
  } finally {
    away = false
  }
})
