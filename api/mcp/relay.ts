/**
 * Provides MCP over stdio, for MCP hosts that start their servers as processes. This program passes every MCP message
 * to the `/mcp` endpoint of the service, and returns the response. It runs on the agent's machine and holds only the
 * agent's API key.
 */
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js'
import type { McpConfig } from '../../shared/config/mcpConfig.ts'

/**
 * Holds the JSON-RPC error code for an error of the service. JSON-RPC reserves the codes -32000 to -32099 for server
 * errors.
 */
const SERVER_ERROR = -32_000

type Call = Extract<JSONRPCMessage, { method: string; id: string | number }>

/**
 * Relays MCP messages between the host and the service until the host disconnects.
 * @returns a promise that resolves when the host has disconnected and the relay has written every response.
 */
export async function relay(host: Transport, config: McpConfig): Promise<void> {
  // Promise.withResolvers is not used, because the relay package also runs under Node 20, which lacks it.
  const ended = new Promise<void>((resolve) => {
    host.onclose = resolve
  })
  const underWay = new Map<string | number, AbortController>()
  const pending = new Set<Promise<void>>()
  let version: string | null = null

  const pass = async (message: JSONRPCMessage) => {
    const abort = new AbortController()
    const call = isCall(message) ? message : null
    if (call !== null) underWay.set(call.id, abort)
    try {
      const answer = await post(config, message, version, abort.signal)
      if (call === null || abort.signal.aborted) return
      if (call.method === 'initialize') version = negotiated(answer)
      await host.send(
        answer === null ? failure(call, 'The service gave no answer') : named(call, answer),
      )
    } catch (error) {
      if (call === null || abort.signal.aborted) return
      await host.send(failure(call, reasonOf(error, call, config)))
    } finally {
      if (call !== null) underWay.delete(call.id)
    }
  }
  host.onmessage = (message) => {
    const cancelled = cancelledId(message)
    if (cancelled !== null) {
      // The service keeps no MCP sessions. Therefore the program closes the HTTP connection to tell the service that
      // the MCP host has cancelled a call.
      underWay.get(cancelled)?.abort()
      return
    }
    const passed = pass(message).finally(() => pending.delete(passed))
    pending.add(passed)
  }
  await host.start()
  await ended
  await Promise.all(pending)
}

/** Reports an error response of the service. The service has not carried out the call. */
class RefusedError extends Error {}

/** Reports that a proxy responded in place of the service. The service may nevertheless have carried out the call. */
class LostAnswerError extends Error {}

async function post(
  { url, apiKey, toolNames }: McpConfig,
  message: JSONRPCMessage,
  version: string | null,
  signal: AbortSignal,
): Promise<JSONRPCMessage | null> {
  const response = await fetch(`${url}/mcp?names=${toolNames}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${apiKey}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(version === null ? {} : { 'mcp-protocol-version': version }),
      ...envelopeHeaders(message),
    },
    body: JSON.stringify(message),
    // If this program (the MCP server over stdio) followed a redirect, it would send the API key to another host.
    redirect: 'error',
    signal,
  })
  const text = await response.text()
  if (response.status === 202) return null
  const body = readObject(text)
  if (body !== null && 'jsonrpc' in body) return body as JSONRPCMessage
  if (typeof body?.error !== 'string' || typeof body.message !== 'string') {
    throw new LostAnswerError(`HTTP ${response.status} without a message of the service`)
  }
  const wait = response.headers.get('retry-after')
  const again = wait === null ? '' : ` Wait ${wait} seconds and try again.`
  throw new RefusedError(`${body.error}: ${body.message}.${again}`)
}

/** Reads a JSON object. @returns null if the text is no JSON object, for example the error page of a proxy. */
function readObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' ? (value as Record<string, unknown> | null) : null
  } catch {
    return null
  }
}

/**
 * Tells the model why a call has no response. If the request may have reached the service, the text warns that a
 * repeated call could send a mail twice.
 */
function reasonOf(error: unknown, { method }: Call, { url }: McpConfig): string {
  if (error instanceof RefusedError) return error.message
  const wasLost = error instanceof LostAnswerError
  const reason = wasLost ? error.message : `Could not reach ${url}: is it running?`
  if (method !== 'tools/call' || (!wasLost && wasNotSent(error))) return reason
  return `${reason.replace(/[^.?]$/, '$&.')} The call may have been carried out: check before you repeat it.`
}

/**
 * Names the errors of `fetch`, in Node and in Bun, that occur before a connection exists. The request then has not
 * reached the service.
 */
const UNCONNECTED = [
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ConnectionRefused',
  'FailedToOpenSocket',
]

function wasNotSent(error: unknown): boolean {
  const codeOf = (one: unknown) => (one as { code?: unknown } | undefined)?.code
  const code = codeOf(error) ?? codeOf((error as { cause?: unknown } | undefined)?.cause)
  return UNCONNECTED.includes(String(code))
}

/**
 * Returns the JSON-RPC error response for a failed call. For a tool call, this is a tool error, because a language
 * model sees only tool errors.
 */
function failure({ id, method }: Call, text: string): JSONRPCMessage {
  if (method !== 'tools/call') {
    return { jsonrpc: '2.0', id, error: { code: SERVER_ERROR, message: text } }
  }
  return { jsonrpc: '2.0', id, result: { isError: true, content: [{ type: 'text', text }] } }
}

/**
 * Returns the service's response with the id of the MCP host's call. If the service refuses a request before it has
 * read the request's id, the id in the error is null (JSON-RPC 2.0 §5). The host would then wait for ever for the
 * response to its call.
 */
function named(call: Call, answer: JSONRPCMessage): JSONRPCMessage {
  if (!('error' in answer) || (answer.id ?? null) !== null) return answer
  const { message } = answer.error
  return call.method === 'tools/call' ? failure(call, message) : { ...answer, id: call.id }
}

const isCall = (message: JSONRPCMessage): message is Call => 'method' in message && 'id' in message

function cancelledId(message: JSONRPCMessage): string | number | null {
  if (!('method' in message) || message.method !== 'notifications/cancelled') return null
  const id = message.params?.requestId
  return typeof id === 'string' || typeof id === 'number' ? id : null
}

function negotiated(answer: JSONRPCMessage | null): string | null {
  if (answer === null || !('result' in answer)) return null
  const { protocolVersion } = answer.result
  return typeof protocolVersion === 'string' ? protocolVersion : null
}

/**
 * Returns the HTTP headers of an MCP message. MCP 2026-07-28 repeats parts of a message in HTTP headers. Messages of
 * earlier revisions do not name their version, and get no headers.
 */
function envelopeHeaders(message: JSONRPCMessage): Record<string, string> {
  if (!('method' in message)) return {}
  const version = message.params?._meta?.[VERSION_FIELD]
  if (typeof version !== 'string' || !VERSION.test(version)) return {}
  const { name, uri } = message.params as { name?: unknown; uri?: unknown }
  const subject = NAMED_METHODS.includes(message.method) ? (name ?? uri) : undefined
  return {
    'mcp-protocol-version': version,
    'mcp-method': message.method,
    ...(typeof subject === 'string' ? { 'mcp-name': headerText(subject) } : {}),
  }
}

const VERSION_FIELD = 'io.modelcontextprotocol/protocolVersion'
const VERSION = /^\d{4}-\d\d-\d\d$/
const NAMED_METHODS = ['tools/call', 'resources/read', 'prompts/get']

/** Encodes a text in base64 if the text contains characters that an HTTP header cannot hold. */
const headerText = (text: string): string =>
  /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text)
    ? text
    : `=?base64?${Buffer.from(text).toString('base64')}?=`
