/**
 * Tests how the stdio relay passes MCP messages from an MCP host to a service, and the responses of the service back to
 * the host.
 */
import { afterAll, describe, expect, test } from 'bun:test'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js'
import { relay } from '../../../api/mcp/relay.ts'
import { closeServers, serve } from '../../support/process/localServer.ts'
import { freePort } from '../../support/process/process.ts'
import { waitFor } from '../../support/waitFor.ts'

afterAll(closeServers)

const VERSION_FIELD = 'io.modelcontextprotocol/protocolVersion'

type Asked = {
  path: string
  headers: IncomingHttpHeaders
  body: any
  answer: ServerResponse
  isClosed: () => boolean
}
type Given = { status?: number; body: string; headers?: Record<string, string> }

/**
 * Starts a relay between a fake host and a fake service. `reply` returns the service's response to each request, or
 * null for no response.
 */
async function start(
  reply: (asked: Asked) => Given | null,
  toolNames: 'dotted' | 'underscore' = 'dotted',
) {
  const asked: Asked[] = []
  const port = await serve(async (request, answer) => {
    let body = ''
    for await (const chunk of request) body += chunk
    let isClosed = false
    answer.on('close', () => {
      isClosed = true
    })
    const one = {
      path: request.url!,
      headers: request.headers,
      body: body === '' ? null : JSON.parse(body),
      answer,
      isClosed: () => isClosed,
    }
    asked.push(one)
    const given = reply(one)
    if (given !== null) answer.writeHead(given.status ?? 200, given.headers).end(given.body)
  })
  const sent: any[] = []
  const host: Transport = {
    start: async () => {},
    close: async () => host.onclose?.(),
    send: async (message) => {
      sent.push(message)
    },
  }
  const url = `http://127.0.0.1:${port}`
  let isOver = false
  const done = relay(host, { url, apiKey: 'loid-key', toolNames }).then(() => {
    isOver = true
  })
  return {
    url,
    asked,
    sent,
    done,
    isOver: () => isOver,
    say: (message: object) =>
      host.onmessage!({ jsonrpc: '2.0', ...message } as unknown as JSONRPCMessage),
    end: async () => {
      host.onclose!()
      await done
    },
  }
}

const result = (id: unknown, given: object = {}) => ({
  body: JSON.stringify({ jsonrpc: '2.0', id, result: given }),
})
const echo = ({ body }: Asked) => result(body.id, { echoed: body.method })

/**
 * Passes one message through the relay to a service that gives one response.
 * @returns the messages that the relay sends to the host.
 */
async function answerTo(message: object, given: Given) {
  const { say, sent, end } = await start(() => given)
  say(message)
  await end()
  return sent
}

describe('the relay passes each message of the MCP host to the service, and the response back to the host', () => {
  test('the MCP relay (stdio to HTTP) sends a message with the API key and the chosen form of tool names, and returns the service’s answer', async () => {
    const { say, asked, sent, end } = await start(echo, 'underscore')
    say({ id: 1, method: 'tools/list', params: { a: 'é' } })
    await end()
    expect(sent).toEqual([{ jsonrpc: '2.0', id: 1, result: { echoed: 'tools/list' } }])
    const [{ path, headers, body }] = asked as [Asked]
    expect([path, headers.authorization]).toEqual(['/mcp?names=underscore', 'Bearer loid-key'])
    expect([headers['content-type'], headers.accept]).toEqual([
      'application/json',
      'application/json, text/event-stream',
    ])
    expect(body).toEqual({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { a: 'é' } })
  })

  test('the MCP host gets no response to a notification or a response, even if the service sends one', async () => {
    const notification = { method: 'notifications/initialized' }
    const response = { id: 5, result: {} }
    for (const message of [notification, response]) {
      expect(await answerTo(message, { status: 202, body: '' })).toEqual([])
      expect(await answerTo(message, { status: 500, body: 'broken' })).toEqual([])
      expect(await answerTo(message, result(5))).toEqual([])
    }
  })

  test('the MCP relay sends a message without waiting for the answer to an earlier message', async () => {
    const { say, asked, sent, end } = await start((one) => (one.body.id === 1 ? null : echo(one)))
    say({ id: 1, method: 'slow' })
    say({ id: 'two', method: 'fast' })
    await waitFor('the second answer', () => sent.length === 1)
    expect(sent[0].id).toBe('two')
    const slow = await waitFor('the first request', () => asked.find(({ body }) => body.id === 1))
    slow.answer.end(result(1).body)
    await end()
    expect(sent.map(({ id }) => id)).toEqual(['two', 1])
  })

  test('if the MCP host closes its connection after a message, it still gets the response before the relay ends', async () => {
    const { say, asked, sent, end, isOver } = await start(() => null)
    say({ id: 1, method: 'slow' })
    await waitFor('the request', () => asked.length === 1)
    const ended = end()
    await Promise.resolve()
    expect(isOver()).toBe(false)
    asked[0]!.answer.end(result(1).body)
    await ended
    expect(sent).toHaveLength(1)
  })
})

describe('the relay reports each error of the service to the host', () => {
  const call = { id: 1, method: 'tools/list' }
  const messageOf = async (given: Given) => {
    const [{ error }] = await answerTo(call, given)
    expect(error.code).toBe(-32_000)
    return error.message as string
  }

  test('the MCP relay passes on an error of the service with its code, its message and the time to wait', async () => {
    const body = JSON.stringify({
      error: 'rate_limited',
      message: 'Too many requests',
      status: 429,
    })
    expect(await messageOf({ status: 429, body })).toBe('rate_limited: Too many requests.')
    expect(await messageOf({ status: 429, body, headers: { 'retry-after': '7' } })).toBe(
      'rate_limited: Too many requests. Wait 7 seconds and try again.',
    )
  })

  test.each(['', '<h1>Bad gateway</h1>', 'null', '"Bad gateway"', '{}', '[]', '{"message":"x"}'])(
    'if a proxy answers with an error and the body %p, the MCP relay reports the HTTP status',
    async (body) => {
      expect(await messageOf({ status: 502, body })).toBe(
        'HTTP 502 without a message of the service',
      )
    },
  )

  test('if an error is already a JSON-RPC message, the relay passes it on unchanged', async () => {
    const error = { jsonrpc: '2.0', id: 1, error: { code: -32_601, message: 'no such method' } }
    expect(await answerTo(call, { status: 400, body: JSON.stringify(error) })).toEqual([error])
  })

  test('an error response without an id gets the id of its call, so that the MCP host does not wait for ever', async () => {
    const error = { code: -32_000, message: 'Bad Request: Unsupported protocol version' }
    const body = JSON.stringify({ jsonrpc: '2.0', id: null, error })
    expect(await answerTo(call, { status: 400, body })).toEqual([{ jsonrpc: '2.0', id: 1, error }])
    const tool = { id: 7, method: 'tools/call', params: { name: 'whoami' } }
    const [answer] = await answerTo(tool, { status: 400, body })
    expect([answer.id, answer.result.isError, answer.result.content[0].text]).toEqual([
      7,
      true,
      error.message,
    ])
  })

  test('the relay reports an error if the service does not respond to a call', async () => {
    expect(await messageOf({ status: 202, body: '' })).toBe('The service gave no answer')
  })

  test('an error in a tool call is returned as a tool error, because a model sees only tool errors', async () => {
    const tool = { id: 7, method: 'tools/call', params: { name: 'whoami' } }
    expect(await answerTo(tool, { status: 502, body: '' })).toEqual([
      {
        jsonrpc: '2.0',
        id: 7,
        result: {
          isError: true,
          content: [
            {
              type: 'text',
              text: 'HTTP 502 without a message of the service. The call may have been carried out: check before you repeat it.',
            },
          ],
        },
      },
    ])
  })

  test('if the connection breaks after the request, the tool error warns that the service may have carried out the call', async () => {
    const { say, sent, end, url } = await start(({ answer }) => {
      answer.socket!.destroy()
      return null
    })
    say({ id: 7, method: 'tools/call', params: { name: 'mail.send' } })
    await end()
    expect(sent[0].result.content[0].text).toBe(
      `Could not reach ${url}: is it running? The call may have been carried out: check before you repeat it.`,
    )
  })

  test('if no connection opens, the tool error does not warn that the service may have carried out the call', async () => {
    const sent: any[] = []
    const url = `http://127.0.0.1:${await freePort()}`
    const host: Transport = {
      start: async () => {},
      close: async () => {},
      send: async (message) => void sent.push(message),
    }
    const done = relay(host, { url, apiKey: 'loid-key', toolNames: 'dotted' })
    host.onmessage!({ jsonrpc: '2.0', id: 7, method: 'tools/call' } as JSONRPCMessage)
    host.onclose!()
    await done
    expect(sent[0].result.content[0].text).toBe(`Could not reach ${url}: is it running?`)
  })

  test('the relay reports a redirect as an error, so that the API key is sent to no other host', async () => {
    const other = await start(echo)
    const { say, sent, end, url } = await start(() => ({
      status: 307,
      body: '',
      headers: { location: `${other.url}/mcp` },
    }))
    say(call)
    await end()
    expect(sent[0].error.message).toBe(`Could not reach ${url}: is it running?`)
    expect(other.asked).toEqual([])
    await other.end()
  })
})

describe('if the host cancels a call, the relay closes the connection of this call to the service', () => {
  const cancel = (requestId?: unknown) => ({
    method: 'notifications/cancelled',
    ...(requestId === undefined ? {} : { params: { requestId } }),
  })

  test.each([[1], ['one'], [0]])(
    'if a call with the id %p is cancelled, its connection is closed, and the host gets no answer to it',
    async (id) => {
      const { say, asked, sent, end } = await start((one) =>
        one.body.id === id ? null : echo(one),
      )
      say({ id, method: 'tools/call' })
      await waitFor('the request', () => asked.length === 1)
      say(cancel(id))
      await waitFor('the end of the connection', () => asked[0]!.isClosed())
      say({ id: 2, method: 'ping' })
      await end()
      expect(sent.map((one) => one.id)).toEqual([2])
      expect(asked).toHaveLength(2)
    },
  )

  test('an MCP cancellation with an unknown or invalid request id affects no call', async () => {
    const { say, asked, sent, end } = await start(() => null)
    say({ id: 1, method: 'tools/call' })
    await waitFor('the request', () => asked.length === 1)
    say(cancel(2))
    say(cancel('1'))
    expect(asked[0]!.isClosed()).toBe(false)
    asked[0]!.answer.end(result(1).body)
    await end()
    expect(sent.map((one) => one.id)).toEqual([1])
    expect(asked).toHaveLength(1)
  })

  test('a call of another method with a parameter `requestId` is not a cancellation', async () => {
    const { say, asked, sent, end } = await start((one) => (one.body.id === 1 ? null : echo(one)))
    say({ id: 1, method: 'tools/call' })
    await waitFor('the request', () => asked.length === 1)
    say({ id: 2, method: 'other', params: { requestId: 1 } })
    await waitFor('the other answer', () => sent.length === 1)
    expect([sent[0].id, asked[0]!.isClosed()]).toEqual([2, false])
    asked[0]!.answer.end(result(1).body)
    await end()
  })

  test('an MCP cancellation whose request id is neither text nor number is passed on to the service like any other notification', async () => {
    for (const id of [undefined, null, true]) {
      const { say, asked, end } = await start(() => ({ status: 202, body: '' }))
      say(cancel(id))
      await end()
      expect(asked.map(({ body }) => body.method)).toEqual(['notifications/cancelled'])
    }
  })
})

describe('after the handshake, the relay names the agreed version of MCP in its requests', () => {
  const versionAfter = async (first: object, given: (asked: Asked) => Given) => {
    const { say, asked, sent, end } = await start(given)
    say(first)
    await waitFor('the first answer', () => sent.length === 1)
    say({ id: 2, method: 'ping' })
    await end()
    return asked.map(({ headers }) => headers['mcp-protocol-version'])
  }
  const initialize = { id: 1, method: 'initialize', params: { protocolVersion: '2025-03-26' } }

  test('after the handshake, the MCP relay names the agreed MCP version in each later message', async () => {
    const agreed = ({ body }: Asked) => result(body.id, { protocolVersion: '2025-11-25' })
    expect(await versionAfter(initialize, agreed)).toEqual([undefined, '2025-11-25'])
    expect(await versionAfter({ ...initialize, method: 'other' }, agreed)).toEqual([
      undefined,
      undefined,
    ])
  })

  test('the relay passes the error of a failed handshake unchanged to the MCP host, and also gets an error if the service does not respond to the handshake', async () => {
    const error = { jsonrpc: '2.0', id: 1, error: { code: 1, message: 'no' } }
    expect(await answerTo(initialize, { body: JSON.stringify(error) })).toEqual([error])
    const [absent] = await answerTo(initialize, { status: 202, body: '' })
    expect(absent.error.message).toBe('The service gave no answer')
  })

  test('after a failed handshake, the MCP relay names no MCP version in its requests', async () => {
    const refused = { body: JSON.stringify({ jsonrpc: '2.0', id: 1, error: { code: 1 } }) }
    for (const given of [refused, { status: 202, body: '' }, result(1, { protocolVersion: 7 })])
      expect(await versionAfter(initialize, () => given)).toEqual([undefined, undefined])
  })
})

describe('if a message of the MCP host names the MCP version itself, the relay uses this version', () => {
  const headersOf = async (method: string, params: object, version: unknown = '2026-07-28') => {
    const { say, asked, end } = await start(echo)
    say({ id: 1, method, params: { ...params, _meta: { [VERSION_FIELD]: version } } })
    await end()
    const { headers } = asked[0]!
    return [headers['mcp-protocol-version'], headers['mcp-method'], headers['mcp-name']]
  }

  test.each([
    ['tools/call', { name: 'whoami' }, 'whoami'],
    ['prompts/get', { name: 'a b' }, 'a b'],
    ['resources/read', { uri: 'file:///x' }, 'file:///x'],
    ['resources/read', { name: 'n', uri: 'u' }, 'n'],
    ['tools/list', { name: 'whoami' }, undefined],
    ['tools/call', {}, undefined],
    ['tools/call', { name: 7 }, undefined],
  ] as const)(
    'if a message names its MCP version, the relay copies the method %s and the name in the parameters %j into the HTTP headers',
    async (method, params, name) => {
      expect(await headersOf(method, params)).toEqual(['2026-07-28', method, name])
    },
  )

  test.each([
    ['é', 'w6k='],
    [' a', 'IGE='],
    ['a ', 'YSA='],
    ['a\nb', 'YQpi'],
    ['', ''],
  ])(
    'the relay encodes the tool name %p in base64, because an HTTP header cannot hold this name',
    async (name, base64) => {
      expect((await headersOf('tools/call', { name }))[2]).toBe(`=?base64?${base64}?=`)
    },
  )

  test('if the MCP version in a message is not a date, the relay copies no version, method or name into the HTTP headers', async () => {
    for (const version of ['2026-7-28', '2026-07-28\r\nx: y', 20260728, null])
      expect(await headersOf('tools/call', { name: 'whoami' }, version)).toEqual([
        undefined,
        undefined,
        undefined,
      ])
  })

  test('the relay uses the MCP version that a message names, although the handshake agreed on another version', async () => {
    const { say, asked, sent, end } = await start(({ body }) =>
      result(body.id, { protocolVersion: '2025-11-25' }),
    )
    say({ id: 1, method: 'initialize' })
    await waitFor('the first answer', () => sent.length === 1)
    say({ id: 2, method: 'ping', params: { _meta: { [VERSION_FIELD]: '2026-07-28' } } })
    await end()
    expect(asked.map(({ headers }) => headers['mcp-protocol-version'])).toEqual([
      undefined,
      '2026-07-28',
    ])
  })
})
