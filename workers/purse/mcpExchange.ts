/**
 * Turns a call of another server's MCP tool into an HTTP exchange, so that the same code makes purchases over HTTP and
 * MCP.
 *
 * The HTTP exchange follows MCP streamable HTTP and the x402 transport for MCP. A challenge (payment request) arrives
 * as an MCP tool result that reports an error. The request contains the payment in `_meta["x402/payment"]`, and the
 * response contains the settlement in `_meta["x402/payment-response"]`.
 */
import {
  Client,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client'
import { z } from 'zod'
import type { PaymentHeader } from '../../shared/purse/paymentHeader.ts'
import { encodeHeader } from '../../shared/till/x402v2.ts'
import {
  type Exchange,
  type GuardedRequestParameters,
  guardedExchange,
} from '../http/guardedRequest.ts'
import { decompressed, headerValue } from '../vault/maskedAnswer.ts'

type Json = Record<string, unknown>

/** Describes a call of an MCP tool. The field `body` contains the arguments of the tool as JSON. */
export type ToolRequest = Omit<GuardedRequestParameters, 'method' | 'body'> & {
  body: string | null
  tool: string
  payment: PaymentHeader | null
  /** Tells whether a DELETE request with `headers` may end the MCP session. By default it may. */
  endsSession?: boolean
}

/** Reports that the HTTP request of an MCP call failed before an HTTP response arrived. */
class UnreachedError extends Error {
  override readonly name = 'UnreachedError'
  readonly failure: Extract<Exchange, { ok: false }>

  constructor(failure: Extract<Exchange, { ok: false }>) {
    super(failure.detail)
    this.failure = failure
  }
}

/**
 * Holds the first revision of MCP that has no sessions. A server that supports only this revision refuses `initialize`.
 */
const MODERN = '2026-07-28'
/** Limits the milliseconds within which a server must answer that it supports MCP without sessions. */
const PROBE_MAX_MS = 5_000
/**
 * Limits the HTTP requests of one call, besides the end of the session. The MCP client library answers each request of
 * the server with an HTTP request. A response of one megabyte would otherwise cause 16,000 requests at once.
 */
const REQUESTS_MAX = 20
/** Lists the HTTP statuses whose responses have no body (Fetch Standard). */
const NO_BODY = [204, 205, 304]
/** Holds the JSON-RPC error code of a challenge (payment request) in version 1 of the x402 transport for MCP. */
const PAYMENT_REQUIRED = 402
/**
 * Holds the HTTP status that stands for a refusal by the MCP tool. The tool would refuse a repeated call again, so the
 * service does not repeat the call.
 */
const TOOL_FAILED = 422

/**
 * Calls an MCP tool once. @returns the result of the MCP tool in the form of {@link guardedExchange}. An x402 challenge
 * is converted into a 402 response with the challenge as its body.
 */
export async function mcpExchange({
  tool,
  payment,
  body,
  endsSession = true,
  ...request
}: ToolRequest): Promise<Exchange> {
  const address = new URL(request.url).href
  const startedMs = performance.now()
  const ms = () => Math.round(performance.now() - startedMs)
  const restMs = () => Math.max(1, request.timeoutMs - ms())
  // The flag `isTooLarge` concerns only the response to the tool call. If the response to the request that ends the
  // session is too long, the result of the tool is complete nevertheless.
  let isCalling = false
  let isTooLarge = false
  let requests = 0

  async function guardedFetch(url: string | URL, init: RequestInit = {}): Promise<Response> {
    const method = init.method ?? 'GET'
    // The MCP client library follows redirects to the same host by itself. Therefore this code refuses each request that
    // results from a redirect. The limits of the mandate and of the credential allow only the address that the buyer
    // named.
    if (String(url) !== address) throw new Error('a request to another address is not sent')
    // The MCP client's GET request for server-sent events gets the status 405, because an open event stream would
    // occupy a worker.
    if (method === 'GET') return new Response(null, { status: 405 })
    if (method !== 'DELETE' && ++requests > REQUESTS_MAX) throw new Error('too many requests')
    const answer = await guardedExchange({
      ...request,
      method,
      headers: Object.fromEntries(new Headers(init.headers)),
      timeoutMs: restMs(),
      ...(typeof init.body === 'string' ? { body: init.body } : {}),
    })
    if (!answer.ok) throw new UnreachedError(answer)
    // Some servers compress the body although the request forbids it, and a `Response` does not decompress its body.
    const plain = await decompressed(answer.body, headerValue(answer, 'content-encoding'))
    isTooLarge ||= isCalling && (answer.truncated || plain === 'too-large')
    const headers = new Headers()
    for (let n = 0; n + 1 < answer.headers.length; n += 2) {
      headers.append(answer.headers[n]!, answer.headers[n + 1]!)
    }
    const { status } = answer
    const body = typeof plain === 'string' ? answer.body : Buffer.from(plain)
    return new Response(NO_BODY.includes(status) ? null : body, { status, headers })
  }

  const told = (status: number, value: unknown, headers: string[] = []): Exchange => ({
    ok: true,
    status,
    statusText: '',
    headers: ['content-type', 'application/json', ...headers],
    body: Buffer.from(JSON.stringify(value)),
    truncated: isTooLarge,
    ms: ms(),
  })

  const meta = payment === null ? {} : { _meta: { 'x402/payment': decoded(payment.value) } }
  const call = {
    method: 'tools/call',
    params: { name: tool, arguments: JSON.parse(body ?? '{}') as Json, ...meta },
  }
  let connection: Connection | undefined
  try {
    connection = await connect({ ...request, fetch: guardedFetch, restMs })
    const { client, transport } = connection
    isCalling = true
    const result = await client.request(call, Result, { timeout: restMs() })
    isCalling = false
    if (endsSession) await transport.terminateSession().catch(() => {})
    return toExchange(result, told)
  } catch (error) {
    // The server has answered the call, so the call must not be repeated as if no response had come.
    if (isTooLarge) return told(200, null)
    return failed(error, { told, ms })
  } finally {
    await connection?.client.close().catch(() => {})
  }
}

type Connection = { client: Client; transport: StreamableHTTPClientTransport }
type Mode = 'legacy' | { pin: string }
type Connecting = Pick<ToolRequest, 'url' | 'headers'> & {
  fetch: (url: string | URL, init?: RequestInit) => Promise<Response>
  restMs: () => number
}

/**
 * Connects to an MCP server in a revision of MCP with sessions. If the server refuses `initialize`, connects in the
 * first revision without sessions. If this attempt is refused too, throws the error of `initialize`.
 */
async function connect(connecting: Connecting): Promise<Connection> {
  try {
    return await connectIn('legacy', connecting)
  } catch (error) {
    if (!mayBeModern(error)) throw error
    return await connectIn({ pin: MODERN }, connecting).catch(() => {
      throw error
    })
  }
}

async function connectIn(mode: Mode, { url, headers = {}, fetch, restMs }: Connecting) {
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    fetch,
    requestInit: { headers },
    reconnectionOptions: {
      maxRetries: 0,
      initialReconnectionDelay: 1,
      maxReconnectionDelay: 1,
      reconnectionDelayGrowFactor: 1,
    },
  })
  const probe = { timeoutMs: Math.min(restMs(), PROBE_MAX_MS) }
  const client = new Client(
    { name: 'purser', version: '1' },
    { versionNegotiation: { mode, probe } },
  )
  await client.connect(transport, { timeout: restMs() })
  return { client, transport }
}

const Result = z.looseObject({})

/** Tells whether a server that refuses `initialize` may support the MCP revision that was the first to have no sessions. */
const mayBeModern = (error: unknown): boolean =>
  error instanceof ProtocolError ||
  (error instanceof SdkHttpError && [400, 404].includes(error.status))

type Told = (status: number, value: unknown, headers?: string[]) => Exchange

function toExchange({ _meta: meta, ...result }: Json, told: Told): Exchange {
  const settlement = (meta as Json | undefined)?.['x402/payment-response']
  const headers =
    typeof settlement === 'object' && settlement !== null
      ? ['payment-response', encodeHeader(settlement)]
      : []
  if (result.isError !== true) return told(200, result, headers)
  const challenge = [
    result.structuredContent,
    (meta as Json | undefined)?.['x402/error'],
    textOf(result),
  ].find(isChallenge)
  return challenge === undefined
    ? told(TOOL_FAILED, result, headers)
    : told(PAYMENT_REQUIRED, challenge, headers)
}

const isChallenge = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && 'x402Version' in value && 'accepts' in value

function textOf({ content }: Json): unknown {
  const first: unknown = Array.isArray(content) ? content[0] : null
  const text = (first as { text?: unknown } | null)?.text
  return typeof text === 'string' ? parsed(text) : null
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

const decoded = (header: string): Json =>
  JSON.parse(Buffer.from(header, 'base64').toString('utf8')) as Json

function failed(error: unknown, { told, ms }: { told: Told; ms: () => number }): Exchange {
  if (error instanceof UnreachedError) return error.failure
  if (error instanceof ProtocolError) {
    const { code, message, data } = error
    if (code === PAYMENT_REQUIRED && isChallenge(data)) return told(PAYMENT_REQUIRED, data)
    return told(TOOL_FAILED, { error: { code, message, data } })
  }
  if (error instanceof SdkHttpError && error.status >= 400) {
    return told(error.status, { error: error.message })
  }
  if (
    error instanceof SdkError &&
    (error.code === SdkErrorCode.RequestTimeout || error.code === SdkErrorCode.ConnectionClosed)
  ) {
    return { ok: false, kind: 'timeout', detail: 'no answer of the tool came', ms: ms() }
  }
  const detail = 'the server does not speak MCP as expected'
  return { ok: false, kind: 'network', detail, ms: ms() }
}
