import type { Span } from '../../shared/process/span.ts'
import { isUnavailable } from './errors.ts'
import type { Budget } from './gate.ts'
import { SMALL_BYTES } from './limits/heldAnswers.ts'
import type { RequestState } from './requestState.ts'
import type { Services } from './services.ts'

const MINUTE_MS = 60_000
/**
 * Sets the size in bytes from which Bun may send the head and the body of a response separately, because Bun's send
 * buffer holds only 16 KB.
 */
const LARGE_BYTES = 12_000
/**
 * Matches the media type of JSON responses. No route streams a JSON response, so its body is always one value in
 * memory. Streamed responses have the media type application/jsonl.
 */
const WHOLE_JSON = /^application\/json(?:;|$)/

/**
 * Names the trace span of a request by the pattern of its route, because the path itself may contain an id of a tenant.
 */
export function describe(
  span: Span,
  { method }: Request,
  { status }: Response,
  state: RequestState,
) {
  const route = state.route?.path ?? null
  if (route !== null) span.rename(`${method} ${route}`)
  span.set({
    'http.request.method': method,
    'http.response.status_code': status,
    'purser.request_id': state.requestId,
    ...(route === null ? {} : { 'http.route': route }),
  })
  if (status >= 500) span.fail(String(status))
}

/** Adds the headers that every HTTP response has, and writes the log line of the request. */
export function finish(
  { log, config, metrics }: Services,
  request: Request,
  response: Response,
  state: RequestState,
  durationMs: number,
): void {
  const { headers } = response
  headers.set('x-request-id', state.requestId)
  headers.set('x-content-type-options', 'nosniff')
  // Caches may not store an error of a public route, because from a shared cache, the error would reach other clients.
  if (state.route?.access !== 'public' || response.status >= 400) {
    headers.set('cache-control', 'no-store')
  }
  if (state.route?.cors === true) headers.set('access-control-allow-origin', '*')
  // The response to a console request shows no rate limit, because no rate limit counts such a request.
  const ofConsole = state.route?.path.startsWith('/console') === true
  const budget =
    state.budget ?? (ofConsole ? null : untouchedBudget(config.limits.requestsPerMinute))
  if (budget !== null) {
    headers.set('x-ratelimit-limit', String(budget.limit))
    headers.set('x-ratelimit-remaining', String(budget.remaining))
    headers.set('x-ratelimit-reset', String(Math.floor(budget.resetsAt.getTime() / 1000)))
  }
  metrics.observe({
    method: request.method,
    route: state.route?.path ?? null,
    status: response.status,
    seconds: durationMs / 1000,
  })
  const line = {
    method: request.method,
    route: state.route?.path ?? null,
    status: response.status,
    ms: Math.round(durationMs * 10) / 10,
  }
  if (state.error !== undefined) log.error({ ...line, err: state.error }, 'request failed')
  if (state.error === undefined || isUnavailable(state.error)) log.info(line, 'request')
}

/**
 * Returns the response to a CORS preflight request for a public route. {@link finish} adds the header with the allowed
 * origin. The preflight response allows all request headers, because wallets send headers that other clients do not
 * send.
 */
export const preflight = (method: string): Response =>
  new Response(null, {
    status: 204,
    headers: {
      'access-control-allow-methods': method === 'GET' ? 'GET, HEAD' : method,
      'access-control-allow-headers': '*, Authorization',
      'access-control-max-age': '86400',
    },
  })

/** Returns the rate-limit values for a request that no rate limit counts. */
function untouchedBudget(limit: number): Budget | null {
  if (limit === 0) return null
  const resetsAt = new Date((Math.floor(Date.now() / MINUTE_MS) + 1) * MINUTE_MS)
  return { limit, remaining: limit, resetsAt }
}

/**
 * Replaces the string in the body of a large JSON response by a stream, which saves system calls. With a string as its
 * body, a response of 25 KB costs 33 system calls and 0.2 ms of CPU. With a direct stream, it costs two system calls.
 * If a handler returns its response after an `await`, Bun makes one system call for each part of each header
 * (oven-sh/bun pull request 41341). Only a response whose head and body fit into the send buffer is sent at once.
 * @param held is a function that makes the body of a response above 256 KB. It counts the memory of the body until the
 * client has read the response.
 */
export async function sendLargeAtOnce(
  response: Response,
  held?: (bytes: Buffer) => Promise<Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>>,
): Promise<Response> {
  if (!WHOLE_JSON.test(response.headers.get('content-type') ?? '')) return response
  // A download stays unchanged even if its media type is JSON, because the sender of the file chose this media type.
  if (response.headers.has('content-disposition')) return response
  const text = await response.text()
  const { status, headers } = response
  const size = Buffer.byteLength(text)
  if (size < LARGE_BYTES) return new Response(text, { status, headers })
  if (held !== undefined && size > SMALL_BYTES) {
    return new Response(await held(Buffer.from(text)), { status, headers })
  }
  const body = new ReadableStream({
    type: 'direct',
    pull(sink) {
      sink.write(text)
      sink.close()
    },
  })
  return new Response(body, { status, headers })
}
