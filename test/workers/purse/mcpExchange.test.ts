/**
 * Tests how the call of an MCP tool becomes an HTTP exchange: the request, the responses, the challenges and the
 * failures.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import type { Exchange } from '../../../workers/http/guardedRequest.ts'
import { mcpExchange, type ToolRequest } from '../../../workers/purse/mcpExchange.ts'
import { type McpSeller, startMcpSeller } from '../../support/purse/mcpSeller.ts'

type Json = Record<string, unknown>
const CHALLENGE = { x402Version: 2, accepts: [] }

let seller: McpSeller
beforeEach(() => {
  seller = startMcpSeller()
})
afterEach(() => seller[Symbol.asyncDispose]())

const exchange = (given: Partial<ToolRequest> = {}): Promise<Exchange> =>
  mcpExchange({
    ...{ url: seller.url, allowPrivate: true, timeoutMs: 60_000, responseBytesMax: 100_000 },
    ...{ tool: 'weather', body: '{"city":"Lima"}', payment: null, ...given },
  })

/** Calls the MCP tool, and returns the response with its body as a parsed value. */
async function answered(given: Partial<ToolRequest> = {}) {
  const answer = await exchange(given)
  if (!answer.ok) throw new Error(answer.detail)
  const { status, headers, truncated, ms } = answer
  return { status, headers, truncated, ms, value: JSON.parse(answer.body.toString()) }
}
/** Responds to each tool call with a result, and returns the status and the value that the buyer gets. */
async function told(result: Json): Promise<[number, unknown]> {
  seller.call = () => ({ result })
  const { status, value } = await answered()
  return [status, value]
}
async function toldError(error: Json): Promise<[number, unknown]> {
  seller.call = () => ({ error })
  const { status, value } = await answered()
  return [status, value]
}
async function failure(given: Partial<ToolRequest> = {}) {
  const answer = await exchange(given)
  if (answer.ok) throw new Error(`the status ${answer.status} came`)
  expect(answer.ms).toBeWithin(0, 60_000)
  return [answer.kind, answer.detail]
}

describe('a buyer’s call of an MCP tool contains the arguments and the payment', () => {
  test('the buyer’s call of an MCP tool contains the tool name, the arguments and the HTTP headers of the purchase request', async () => {
    await answered({ headers: { 'x-city': 'Lima' } })
    expect(seller.calls).toEqual([{ name: 'weather', arguments: { city: 'Lima' } }])
    expect(seller.headers.map((headers) => headers.get('x-city'))).toEqual(Array(4).fill('Lima'))
    await answered({ body: null })
    expect(seller.calls[1]?.arguments).toEqual({})
  })

  test('the buyer’s call of an MCP tool contains the payment as a JSON value and not as base64 text', async () => {
    const value = Buffer.from('{"x402Version":2,"payload":{"a":"ä"}}').toString('base64')
    await answered({ payment: { name: 'PAYMENT-SIGNATURE', value } })
    expect(seller.calls[0]?._meta).toEqual({
      'x402/payment': { x402Version: 2, payload: { a: 'ä' } },
    })
  })

  test('the buyer’s call of an MCP tool opens one MCP session without an event stream, and closes the session at the end', async () => {
    await answered()
    expect(seller.requests).toEqual([
      ...['POST initialize', 'POST notifications/initialized', 'POST tools/call', 'DELETE'],
    ])
    expect(seller.headers[3]?.get('mcp-session-id')).toBe('session-1')
  })

  test('the buyer’s call of an MCP tool ignores how the server responds to notifications and to the end of the session', async () => {
    for (const status of [200, 204, 404]) {
      let notified = 0
      seller.notified = () => {
        notified++
        return new Response(null, { status: notified === 1 ? Math.min(status, 204) : status })
      }
      expect((await answered()).status).toBe(200)
      expect(notified).toBe(2)
    }
  })
})

describe('the buyer converts the response of an MCP tool into an HTTP response', () => {
  test('the buyer reports a successful MCP tool call with the status 200, and returns the tool’s result without `_meta`', async () => {
    const result = { content: [{ type: 'text', text: 'sunny' }], structuredContent: { tempC: 7 } }
    seller.call = () => ({ result: { ...result, _meta: { other: 1 } } })
    const answer = await answered()
    expect(answer).toMatchObject({ status: 200, truncated: false, value: result })
    expect(answer.headers).toEqual(['content-type', 'application/json'])
    expect(answer.ms).toBeWithin(0, 60_000)
    expect(answer.value).not.toContainKey('_meta')
  })

  test('the buyer reports the settlement of an MCP tool call in the header payment-response', async () => {
    const settlement = { success: true, transaction: '0x1' }
    for (const isError of [false, true]) {
      seller.call = () => ({
        result: { content: [], isError, _meta: { 'x402/payment-response': settlement } },
      })
      const { status, headers } = await answered()
      const [name, value] = headers.slice(2)
      expect([status, name]).toEqual([isError ? 422 : 200, 'payment-response'])
      expect(JSON.parse(Buffer.from(value!, 'base64').toString())).toEqual(settlement)
    }
    for (const none of [null, 'settled', 1]) {
      seller.call = () => ({ result: { content: [], _meta: { 'x402/payment-response': none } } })
      expect((await answered()).headers).toHaveLength(2)
    }
  })

  test('an MCP server may send the tool result as an event in a stream, even if the stream is too long after this event', async () => {
    for (const [rest, truncated] of [
      ['', false],
      [`:${'x'.repeat(2_000)}\n\n`, true],
    ] as const) {
      seller.call = () => {
        const data = JSON.stringify({ jsonrpc: '2.0', id: 1, result: { content: [] } })
        return new Response(`data: ${data}\n\n${rest}`, {
          headers: { 'content-type': 'text/event-stream' },
        })
      }
      expect(await answered({ responseBytesMax: 1_000 })).toMatchObject({ status: 200, truncated })
    }
  })
})

test('an MCP server that sends thousands of requests to the buyer gets at most 50 requests back, and its tool result counts', async () => {
  const ping = (n: number) =>
    `data: ${JSON.stringify({ jsonrpc: '2.0', id: `ping-${n}`, method: 'ping' })}\n\n`
  const pings = Array.from({ length: 3_000 }, (_, n) => ping(n)).join('')
  const done = JSON.stringify({ jsonrpc: '2.0', id: 1, result: { content: [] } })
  seller.call = () =>
    new Response(`${pings}data: ${done}\n\n`, {
      headers: { 'content-type': 'text/event-stream' },
    })
  expect(await answered({ responseBytesMax: 1024 * 1024 })).toMatchObject({
    status: 200,
    value: { content: [] },
  })
  expect(seller.requests.filter((request) => request === 'DELETE')).toHaveLength(1)
  expect(seller.requests.length).toBeWithin(4, 51)
})

describe('the buyer finds the x402 challenge of an MCP tool in the tool’s error result', () => {
  const text = (value: unknown) => [{ type: 'text', text: JSON.stringify(value) }]
  const other = { ...CHALLENGE, error: 'other' }

  test('the x402 challenge of an MCP tool is taken from the structured content, else from `_meta`, else from the first text', async () => {
    const _meta = { 'x402/error': other }
    const third = { ...CHALLENGE, error: 'third' }
    const failed = { isError: true, content: text(third) }
    expect(await told({ ...failed, structuredContent: CHALLENGE, _meta })).toEqual([402, CHALLENGE])
    expect(await told({ ...failed, structuredContent: { accepts: [] }, _meta })).toEqual([
      402,
      other,
    ])
    expect(await told({ ...failed, structuredContent: { x402Version: 2 } })).toEqual([402, third])
    expect(await told(failed)).toEqual([402, third])
  })

  test('the result of an MCP tool counts as an x402 challenge only if the tool marks the result as an error', async () => {
    for (const isError of [false, undefined, 'true', 1]) {
      const result = { isError, structuredContent: CHALLENGE, content: [] }
      expect(((await told(result)) as [number, unknown])[0]).toBe(200)
    }
  })

  test('if an error result of an MCP tool contains no x402 challenge, the buyer reports the status 422 and no challenge', async () => {
    for (const content of [
      ...[[], null, 'text', [null], [{ type: 'image' }], [{ type: 'text', text: 7 }]],
      ...[[{ type: 'text', text: 'no JSON' }], text(null), text('x402Version accepts'), text([])],
      ...[text({ x402Version: 2 }), text({ accepts: [] })],
      [{ type: 'text', text: 'first' }, ...text(CHALLENGE)],
    ]) {
      const result = { isError: true, content }
      expect([content, ...(await told(result))]).toEqual([content, 422, result])
    }
  })

  test('the data of the JSON-RPC error 402 of an MCP tool may be an x402 challenge', async () => {
    const message = 'Payment required'
    expect(await toldError({ code: 402, message, data: CHALLENGE })).toEqual([402, CHALLENGE])
  })

  test('if a JSON-RPC error of an MCP tool is no 402 error with an x402 challenge, the buyer reports the status 422 and reads no challenge', async () => {
    for (const [code, data] of [
      [402, { accepts: [] }],
      [402, null],
      [401, CHALLENGE],
      [-32602, CHALLENGE],
    ] as const) {
      const [status, value] = await toldError({ code, message: 'No', data })
      expect([code, status]).toEqual([code, 422])
      expect(value).toMatchObject({ error: { code, data } })
      expect((value as { error: Json }).error.message).toContain('No')
    }
  })
})

describe('if an MCP server does not respond as MCP demands, the buyer reports the fault of the server', () => {
  test('the buyer returns an HTTP error of an MCP server with the same status', async () => {
    for (const status of [400, 401, 403, 404, 500, 503]) {
      seller.call = () => new Response('no', { status })
      const answer = await answered()
      expect([answer.status, answer.headers.length]).toEqual([status, 2])
      expect(answer.value.error).toContain('no')
    }
    seller.initialize = () => new Response('busy', { status: 503 })
    expect((await answered()).status).toBe(503)
    expect(seller.calls.length).toBe(6)
  })

  test('if an MCP server refuses `initialize`, the buyer tries MCP 2026-07-28 once, and returns the refusal if the server refuses this too', async () => {
    seller.notified = () => new Response('no', { status: 400 })
    for (const [initialize, status] of [
      [() => ({ error: { code: -32022, message: 'No' } }), 422],
      [() => new Response('no', { status: 400 }), 400],
      [() => new Response('no', { status: 404 }), 404],
    ] as const) {
      seller.requests = []
      seller.initialize = initialize
      expect([status, (await answered()).status]).toEqual([status, status])
      expect(seller.requests).toEqual(['POST initialize', 'POST server/discover'])
    }
    for (const status of [401, 500, 503]) {
      seller.requests = []
      seller.initialize = () => new Response('no', { status })
      expect([status, (await answered()).status]).toEqual([status, status])
      expect(seller.requests).toEqual(['POST initialize'])
    }
  })

  test('a server counts as a server without MCP if it redirects, or responds with another media type or without JSON', async () => {
    const none = ['network', 'the server does not speak MCP as expected']
    for (const answer of [
      () => Response.redirect('https://elsewhere.example/', 302),
      () => new Response('<p>', { headers: { 'content-type': 'text/html' } }),
      () => new Response('{', { headers: { 'content-type': 'application/json' } }),
      () => Response.json({ id: 1 }),
    ]) {
      seller.call = answer
      expect(await failure()).toEqual(none)
      seller.initialize = answer
      expect(await failure()).toEqual(none)
      await seller[Symbol.asyncDispose]()
      seller = startMcpSeller()
    }
  })

  test('the buyer’s call of an MCP tool follows no redirect, not even within the same server', async () => {
    const none = ['network', 'the server does not speak MCP as expected']
    const payment = { name: 'X-PAYMENT', value: Buffer.from('{}').toString('base64') }
    for (const status of [301, 302, 303, 307, 308]) {
      seller.call = () => new Response(null, { status, headers: { location: '/elsewhere' } })
      expect([status, await failure({ payment })]).toEqual([status, none])
    }
    expect([...new Set(seller.paths)]).toEqual(['/mcp'])
  })

  test('the buyer reports that it did not reach an MCP server if the address is blocked or no process listens there', async () => {
    const [kind] = await failure({ allowPrivate: false })
    expect([kind, seller.requests]).toEqual(['blocked', []])
    await seller[Symbol.asyncDispose]()
    expect(await failure()).toEqual(['network', 'ECONNREFUSED'])
  })

  test('if the result of a tool is too large to be read completely, the buyer reports the status 200 and a truncated response', async () => {
    const large = { content: [{ type: 'text', text: 'x'.repeat(2_000) }] }
    seller.call = () => ({ result: large })
    const cut = { status: 200, truncated: true, value: null }
    expect(await answered({ responseBytesMax: 1_000 })).toMatchObject(cut)
    seller.initialize = () => ({ result: large })
    expect(await failure({ responseBytesMax: 1_000 })).toEqual([
      ...['network', 'the server does not speak MCP as expected'],
    ])
  })

  test('the buyer reads the compressed response of an MCP server', async () => {
    const result = { content: [{ type: 'text', text: 'x'.repeat(50_000) }] }
    const compressed = (id: number, value: Json) =>
      new Response(Bun.gzipSync(JSON.stringify({ jsonrpc: '2.0', id, ...value })), {
        headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
      })
    const { result: welcome } = seller.initialize() as { result: Json }
    seller.initialize = () => compressed(0, { result: welcome })
    seller.call = () => compressed(1, { result })
    expect(await answered()).toMatchObject({ status: 200, truncated: false, value: result })
    seller.call = () => compressed(1, { result: { content: 'x'.repeat(2 * 1024 * 1024) } })
    expect(await answered()).toMatchObject({ status: 200, truncated: true, value: null })
  })

  test('a long response to the end of the session does not count as a truncated result of the tool', async () => {
    seller.notified = () => new Response('x'.repeat(2_000))
    expect(await answered({ responseBytesMax: 1_000 })).toMatchObject({ truncated: false })
  })

  test('an MCP server counts as late if the whole call takes longer than the time limit', async () => {
    const never = new Promise<Response>(() => {})
    seller.call = () => never
    expect((await failure({ timeoutMs: 100 }))[0]).toBe('timeout')
    seller.call = () => new Response('', { headers: { 'content-type': 'text/event-stream' } })
    expect(await failure({ timeoutMs: 100 })).toEqual(['timeout', 'no answer of the tool came'])
  })
})
