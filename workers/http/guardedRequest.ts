/**
 * Sends all HTTP requests to URLs from tenants: webhooks, endpoint verification, and requests with a secret of the
 * vault (docs/decisions/guarded-requests.md). No other code may send requests to a URL from a tenant.
 *
 * The guarded HTTP client uses node:http instead of `fetch`, because `fetch` obeys HTTP_PROXY. With a proxy, a check of
 * the resolved address would be meaningless. `fetch` also inflates compressed bodies: 48 KB became 50 MB in 126 ms.
 * node:http ignores HTTP_PROXY and does not inflate bodies. Its lookup hook can check the address to which it connects.
 */
import type { LookupAddress } from 'node:dns'
import {
  type ClientRequest,
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
} from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import type { LookupFunction } from 'node:net'
import { errorCode } from '../../shared/errorCode.ts'
import { outboundUrlFault } from '../../shared/http/outboundUrl.ts'
import { isPublicAddress } from '../../shared/http/publicAddress.ts'
import { traced } from '../../shared/process/tracing.ts'
import { traceparent } from '../../shared/process/workContext.ts'

/**
 * Limits how many bytes of an HTTP response are read. When the client has read this number of bytes, it closes the
 * connection.
 */
export const RESPONSE_BYTES_MAX = 64 * 1024

/**
 * Limits the bytes of the headers of an HTTP response. The default of node:http is 16 KB, but the header with the
 * challenge of a seller may have 32 KB.
 */
const HEADERS_BYTES_MAX = 64 * 1024

const USER_AGENT = 'Purser/1'
const PAYMENT_REQUIRED = 'payment-required'

/**
 * Resolves a host name to all its addresses. In production, `lookup` of node:dns with `all: true` resolves host names.
 */
export type Resolve = (
  hostname: string,
  answer: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

/** Decides which network addresses a request may reach. */
export type OutboundPolicy = {
  /**
   * Allows requests to private, loopback and link-local addresses, and to any port. Only development needs such
   * requests.
   */
  allowPrivate: boolean
  /** Resolves host names to their addresses. By default the resolver of the operating system is used. */
  resolve?: Resolve
  /**
   * Leaves the trace id out of the request, because a seller could otherwise see which purchases belong together.
   */
  hidesTrace?: true
}

export type GuardedRequestParameters = OutboundPolicy & {
  url: string
  method: string
  headers?: Record<string, string>
  body?: string | Uint8Array
  /**
   * Limits the milliseconds of a whole HTTP exchange: name resolution, connection, sending, and reading of the
   * response.
   */
  timeoutMs: number
  /** Limits how many bytes of the response are read. The default limit is {@link RESPONSE_BYTES_MAX}. */
  responseBytesMax?: number
  /** Adds certificate authorities in PEM form for this request. */
  ca?: string
  /**
   * Names the owner of open HTTP connections that this request may reuse. If `kept` is absent, the HTTP connection is
   * closed after the response.
   */
  kept?: { by: KeptConnections; owner: string }
}

/**
 * Describes an HTTP response as the service received it. The array `headers` alternates between header names and header
 * values.
 */
export type Exchange =
  | {
      ok: true
      status: number
      statusText: string
      headers: string[]
      body: Buffer
      truncated: boolean
      ms: number
    }
  | Failure

/**
 * Returns the value of the first response header with the given lower-case name. Returns `null` if the response has no
 * header with the given name.
 */
export function headerOf(headers: readonly string[], wanted: string): string | null {
  const at = headers.findIndex((name, n) => n % 2 === 0 && name.toLowerCase() === wanted)
  return at === -1 ? null : (headers[at + 1] ?? null)
}

export type GuardedResponse =
  | {
      ok: true
      status: number
      /** Holds the value of the header `PAYMENT-REQUIRED` of x402 version 2. */
      paymentRequired?: string | undefined
      bodyPrefix: string
      truncated: boolean
      ms: number
    }
  | Failure

/**
 * Describes a failed HTTP request. The text `detail` names no resolved address, so it may be shown to the tenant. If
 * `secured` is set, the TLS handshake had succeeded before the failure, so the server may have got the request.
 */
type Failure = {
  ok: false
  kind: 'blocked' | 'timeout' | 'network'
  detail: string
  ms: number
  secured?: true
}

class BlockedError extends Error {
  override readonly name = 'BlockedError'
}

/**
 * Looks up a host name with c-ares, which also reads /etc/hosts. The usual lookup of the runtime blocks a thread, and
 * there are only as many threads as processors. With that lookup, four host names whose name server never answers
 * stopped the lookups of all projects.
 */
const systemResolve: Resolve = (hostname, answer) => {
  Bun.dns.lookup(hostname, { backend: 'c-ares' }).then(
    (found) => answer(null, found),
    (error: Error & { code?: string }) => {
      // The error gets the code that getaddrinfo would give, because the callers know these codes and conclude that no
      // request was sent.
      const code = /ENOTFOUND|EFORMERR/.test(error.code ?? '') ? 'ENOTFOUND' : 'EAI_AGAIN'
      answer(Object.assign(new Error(error.message), { code }), [])
    },
  )
}

/**
 * Checks the addresses of a host before a connection is opened. Node calls this lookup hook for each new connection, so
 * the checked address is the address to which Node connects.
 */
function guardedLookup(resolve: Resolve, allowPrivate: boolean): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, (error, addresses) => {
      const first = addresses?.[0]
      if (error !== null || first === undefined) {
        callback(error ?? Object.assign(new Error('no address'), { code: 'ENOTFOUND' }), '', 0)
        return
      }
      // A host that has both public and private addresses is an attack or a mistake, so no connection to this host is
      // opened.
      if (!allowPrivate && !addresses.every(({ address }) => isPublicAddress(address))) {
        callback(new BlockedError('address is not public'), '', 0)
        return
      }
      if (options.all === true) callback(null, addresses)
      else callback(null, first.address, first.family)
    })
  }
}

function openRequest(parameters: GuardedRequestParameters): ClientRequest {
  const { url, method, headers, body, allowPrivate, resolve = systemResolve, ca, kept } = parameters
  const parsed = new URL(url)
  const trace = parameters.hidesTrace ? null : traceparent()
  const isSecure = parsed.protocol === 'https:'
  const start = isSecure ? httpsRequest : httpRequest
  return start(parsed, {
    method,
    headers: {
      'user-agent': USER_AGENT,
      accept: '*/*',
      'accept-encoding': 'identity',
      ...(trace === null ? {} : { traceparent: trace }),
      ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
      ...headers,
    },
    // A reused connection skips the lookup hook, because its address was checked when the connection was opened.
    ...(kept === undefined
      ? { agent: false }
      : { agent: isSecure ? kept.by.https : kept.by.http, owner: kept.owner }),
    lookup: guardedLookup(resolve, allowPrivate),
    maxHeaderSize: HEADERS_BYTES_MAX,
    ...(ca === undefined ? {} : { ca }),
  })
}

type Body = { body: Buffer; truncated: boolean }

/**
 * Keeps HTTP connections open after a response, for a burst of requests to one receiver. Two owners never share an HTTP
 * connection, because one owner must not see the responses to the other owner. An idle connection is closed before the
 * first retry of a webhook delivery, so the retry opens a new connection.
 */
export type KeptConnections = { http: HttpAgent; https: HttpsAgent }

const KEPT_MS = 500
const KEPT = { keepAlive: true, timeout: KEPT_MS, maxFreeSockets: 32, scheduling: 'lifo' } as const

type Owned = { owner?: string }

class OwnedHttpAgent extends HttpAgent {
  override getName = (options?: Parameters<HttpAgent['getName']>[0] & Owned): string =>
    `${super.getName(options)}:${options?.owner}`
}

class OwnedHttpsAgent extends HttpsAgent {
  override getName = (options?: Parameters<HttpsAgent['getName']>[0] & Owned): string =>
    `${super.getName(options)}:${options?.owner}`
}

export const keepConnections = (): KeptConnections => ({
  http: new OwnedHttpAgent(KEPT),
  https: new OwnedHttpsAgent(KEPT),
})

function readPrefix(response: IncomingMessage, bytesMax: number): Promise<Body> {
  return new Promise((done, fail) => {
    const chunks: Buffer[] = []
    let bytes = 0
    const finish = (truncated: boolean) => {
      done({ body: Buffer.concat(chunks), truncated })
    }
    response.on('data', (chunk: Buffer) => {
      const room = bytesMax - bytes
      if (room > 0) chunks.push(chunk.subarray(0, room))
      bytes += chunk.length
      if (bytes > bytesMax) finish(true)
    })
    response.on('end', () => finish(false))
    response.on('error', fail)
    response.on('close', () => fail(new Error('closed')))
  })
}

/**
 * Sends one HTTP request, follows no redirect, and reads only the first bytes of the response, up to a limit.
 *
 * @returns `ok: true` for a response with any HTTP status. A failure of the remote host is returned as a value, and
 * never thrown as an exception.
 */
export async function guardedExchange(parameters: GuardedRequestParameters): Promise<Exchange> {
  const { url, allowPrivate } = parameters
  const startedMs = performance.now()
  const ms = () => Math.round(performance.now() - startedMs)
  const fault = outboundUrlFault(url, allowPrivate)
  if (fault !== null) return { ok: false, kind: 'blocked', detail: fault, ms: ms() }

  return traced(
    `HTTP ${parameters.method}`,
    { kind: 'client', attributes: { 'server.address': new URL(url).hostname } },
    async (span) => {
      const answer = await exchange(parameters, ms)
      if (answer.ok) span.set({ 'http.response.status_code': answer.status })
      else span.fail(answer.kind)
      return answer
    },
  )
}

async function exchange(parameters: GuardedRequestParameters, ms: () => number): Promise<Exchange> {
  const { body, timeoutMs, responseBytesMax = RESPONSE_BYTES_MAX } = parameters
  const request = openRequest(parameters)
  let isWhole = false
  let hasFailed = false
  let secured: { secured?: true } = {}
  request.on('socket', (socket) => {
    const isSecured = () => {
      secured = { secured: true }
    }
    // On a reused connection, the TLS handshake took place before this request, so the request counts as secured at
    // once.
    if (socket.connecting) socket.once('secureConnect', isSecured)
    else isSecured()
  })
  let timer: Timer | undefined
  try {
    type Answer = { status: number; statusText: string; headers: string[] } & Body
    const answered = new Promise<Answer>((done, fail) => {
      let received: IncomingMessage | undefined
      request.on('error', (error) => {
        hasFailed = true
        // Some servers send bytes after the end of their response, such as a body with the status 204.
        if (received?.complete !== true) fail(error)
      })
      request.on('response', (response) => {
        received = response
        readPrefix(response, responseBytesMax).then(
          (read) =>
            done({
              status: response.statusCode ?? 0,
              statusText: response.statusMessage ?? '',
              headers: response.rawHeaders,
              ...read,
            }),
          fail,
        )
      })
    })
    const expired = new Promise<'expired'>((done) => {
      timer = setTimeout(() => done('expired'), timeoutMs)
    })
    request.end(body)
    const outcome = await Promise.race([answered, expired])
    if (outcome === 'expired') {
      return { ok: false, kind: 'timeout', detail: `no answer within ${timeoutMs} ms`, ms: ms() }
    }
    isWhole = parameters.kept !== undefined && !outcome.truncated && !hasFailed
    return { ok: true, ...outcome, ms: ms() }
  } catch (error) {
    if (error instanceof BlockedError) {
      return { ok: false, kind: 'blocked', detail: error.message, ms: ms() }
    }
    return { ok: false, kind: 'network', detail: faultOf(error), ms: ms(), ...secured }
  } finally {
    clearTimeout(timer)
    // `destroy` closes the HTTP connection if the service has read only a part of the response, or has got no response.
    request.on('error', () => {})
    if (!isWhole) request.destroy()
  }
}

/**
 * Sends one request like `guardedExchange`, and returns the response body as text.
 *
 * @example
 * const answer = await guardedRequest({
 *   url: 'https://seller.example/hook', method: 'POST', body, timeoutMs: 10_000, allowPrivate: false,
 * })
 */
export async function guardedRequest(
  parameters: GuardedRequestParameters,
): Promise<GuardedResponse> {
  const answer = await guardedExchange(parameters)
  if (!answer.ok) return answer
  const { status, headers, body, truncated, ms } = answer
  const at = headers.findIndex((name, n) => n % 2 === 0 && name.toLowerCase() === PAYMENT_REQUIRED)
  const paymentRequired = at === -1 ? undefined : headers[at + 1]
  return { ok: true, status, paymentRequired, bodyPrefix: body.toString(), truncated, ms }
}

/**
 * Returns the code of a network error, such as ECONNREFUSED. The message of the error is not returned, because it could
 * name the address to which the service connected.
 */
function faultOf(error: unknown): string {
  return errorCode(error) || 'connection failed'
}
