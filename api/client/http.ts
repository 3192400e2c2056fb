import { ApiError, ConnectionError, type ErrorAnswer, errorOf, TimeoutError } from './errors.ts'
import { KEYED, OPERATIONS, type Operations } from './operations.ts'

export type ClientOptions = {
  /** Holds the API key. A project key begins with `loid-`, and a platform key begins with `lopk-`. */
  apiKey: string
  /** Holds the URL of the service. The default URL of the service is http://127.0.0.1:3000. */
  baseUrl?: string
  /**
   * Holds the maximum duration of a call with all its retries, in milliseconds. The default time limit of a call is
   * 60,000 milliseconds.
   */
  timeoutMs?: number
  /**
   * Holds the maximum number of retries of a call after the first attempt. By default the client retries a call at most
   * 3 times.
   */
  retries?: number
  /** Holds the function that the client calls in place of the global function `fetch`. */
  fetch?: (request: Request) => Promise<Response>
}

export type CallOptions = {
  /** Holds a signal that aborts the call, even between two attempts. */
  signal?: AbortSignal | undefined
  /** Holds the maximum duration of a call with all its retries, in milliseconds. */
  timeoutMs?: number | undefined
  /**
   * Holds the longest Retry-After that the client waits out, in milliseconds. If the service asks for a longer wait,
   * the client throws the error at once. By default only `timeoutMs` limits the wait.
   */
  retryAfterMaxMs?: number | undefined
  /**
   * Holds the idempotency key of the call: 1–255 visible ASCII characters. Calls for mail, payments, refunds and
   * requests with secrets use the key. A second call with the same key gets the first response again, so the client may
   * repeat the call. The service ignores the key of any other call. Therefore the key does not make the client repeat
   * such a call.
   */
  idempotencyKey?: string | undefined
}

type OperationId = keyof Operations
type Input = {
  path?: Record<string, string | number>
  query?: Record<string, unknown>
  body?: unknown
}

const BASE_URL = 'http://127.0.0.1:3000'
const TIMEOUT_MS = 60_000
const RETRIES = 3
const BACK_OFF_MS = 250
const BACK_OFF_MAX_MS = 8_000
/**
 * Sets the maximum delay of `setTimeout` in milliseconds. A timer with a longer delay than this maximum fires at once.
 */
const TIMER_MAX_MS = 2 ** 31 - 1

/**
 * Lists the HTTP statuses after which a retry may succeed. For example, proxies return 502 and 504 while the service is
 * down.
 */
const RETRIED = new Set([429, 502, 503, 504])

/** Calls the operations of the API. */
export class Http {
  readonly #apiKey: string
  readonly #baseUrl: string
  readonly #timeoutMs: number
  readonly #retries: number
  readonly #fetch: (request: Request, init?: RequestInit) => Promise<Response>
  #clockAheadMs: number | null = null

  /** Creates a client of the API. @throws TypeError for invalid options. */
  constructor(options: ClientOptions, prefix: 'loid-' | 'lopk-') {
    const { apiKey, baseUrl = BASE_URL, timeoutMs = TIMEOUT_MS, retries = RETRIES } = options
    if (typeof apiKey !== 'string' || !apiKey.startsWith(prefix)) {
      throw new TypeError(`apiKey must be a key that starts with ${prefix}`)
    }
    if (!/^https?:\/\//.test(baseUrl)) throw new TypeError('baseUrl must be an http(s) URL')
    this.#apiKey = apiKey
    this.#baseUrl = baseUrl.replace(/\/+$/, '')
    this.#timeoutMs = timeoutMs
    this.#retries = retries
    const { fetch: given } = options
    this.#fetch = given === undefined ? (request, init) => fetch(request, init) : given
  }

  /**
   * Calls an operation of the API, and retries the call if this is safe. The client retries every call after a 429,
   * because the service did nothing for a refused call. The client retries repeatable calls also after 502, 503, 504
   * and a broken connection. If a repeated deletion finds nothing, the deletion counts as done.
   * @param inputOfRepeat returns the input of a retry, if a retry needs another input than the first attempt.
   * @throws {PurserError} of the class in errors.ts that fits the failure of the call. If the caller aborts the call,
   * the client throws the abort reason of the signal.
   */
  async call<Id extends OperationId>(
    id: Id,
    input: Operations[Id]['input'],
    options: CallOptions = {},
    inputOfRepeat?: () => Operations[Id]['input'],
  ): Promise<Operations[Id]['result']> {
    const { signal, retryAfterMaxMs = Number.POSITIVE_INFINITY } = options
    const timeoutMs = options.timeoutMs ?? this.#timeoutMs
    const deadlineMs = Date.now() + timeoutMs
    // The code rounds the time limit up, because Node refuses a time limit with a fraction.
    const timeout = AbortSignal.timeout(Math.min(Math.ceil(timeoutMs), TIMER_MAX_MS))
    const ended = signal === undefined ? timeout : AbortSignal.any([signal, timeout])
    const isKeyed = options.idempotencyKey !== undefined && KEYED.has(id)
    const mayRepeat = isKeyed || isRepeatable(id, input as Input)
    // The fetch of Bun repeats a GET, PUT or DELETE by itself if a kept connection closes without a response. Some
    // calls must not be repeated, or the client must know that they were repeated. The client opens a new connection
    // for these calls, because on a new connection Bun does not repeat them.
    const [method] = OPERATIONS[id]
    const { body } = input as Input
    const needsNewConnection =
      method === 'DELETE' || asksForSecret(body) || inputOfRepeat !== undefined
    const init = needsNewConnection ? { keepalive: false } : undefined
    // Tells whether an earlier attempt of the call may have reached the service although its response was lost.
    let mayBeDone = false
    for (let attempt = 0; ; attempt++) {
      const isLast = attempt >= this.#retries
      let waitMs = Math.min(BACK_OFF_MAX_MS, BACK_OFF_MS * 2 ** attempt) * (0.5 + Math.random() / 2)
      try {
        const given = ((attempt > 0 ? inputOfRepeat?.() : undefined) ?? input) as Input
        const request = this.#request(id, given, options.idempotencyKey, ended)
        const answer = await this.#attempt(id, request, init)
        if (!answer.ok) {
          const { status, retryAfterS } = answer.error
          if (status === 404 && mayBeDone && isDeletion(id)) {
            return undefined as Operations[Id]['result']
          }
          if (retryAfterS !== null) waitMs = Math.max(waitMs, retryAfterS * 1_000)
          const isSoon = (retryAfterS ?? 0) * 1_000 <= retryAfterMaxMs
          const again = RETRIED.has(status) && (mayRepeat || status === 429) && isSoon
          if (isLast || !again || Date.now() + waitMs >= deadlineMs)
            throw errorOf({ ...answer.error, mayBeDone })
          mayBeDone ||= status !== 429
        } else {
          return answer.value as Operations[Id]['result']
        }
      } catch (error) {
        if (signal?.aborted) throw signal.reason
        if (timeout.aborted) throw new TimeoutError(`No answer within ${timeoutMs} ms`)
        const again = error instanceof ConnectionError && mayRepeat
        if (isLast || !again || Date.now() + waitMs >= deadlineMs) throw error
        mayBeDone = true
      }
      await pause(waitMs, ended)
      if (signal?.aborted) throw signal.reason
      if (timeout.aborted) throw new TimeoutError(`No answer within ${timeoutMs} ms`)
    }
  }

  /**
   * Opens the stream of bytes that an API operation returns as its response. The client never retries this call,
   * because the reader of the stream reconnects by itself.
   * @throws {PurserError} if the service returns an error instead of a stream.
   */
  async stream<Id extends OperationId>(
    id: Id,
    input: Operations[Id]['input'],
    signal: AbortSignal,
  ): Promise<ReadableStream<Uint8Array>> {
    const response = await this.#send(id, this.#request(id, input as Input, undefined, signal))
    if (response.ok && response.body !== null) return response.body
    const text = await response.text().catch((cause: unknown) => {
      throw this.#unreachable(id, cause)
    })
    throw errorOf(readError(response, parse(text)))
  }

  /**
   * Returns by how many milliseconds the clock of this machine is ahead of the service's clock. The value is null until
   * a response has told the service's time in its header Date.
   */
  get clockAheadMs(): number | null {
    return this.#clockAheadMs
  }

  /** Tells whether the same call may succeed if the client sends it again. */
  isTransient(error: unknown): boolean {
    return (
      error instanceof ConnectionError || (error instanceof ApiError && RETRIED.has(error.status))
    )
  }

  #request(
    id: OperationId,
    input: Input,
    idempotencyKey: string | undefined,
    signal: AbortSignal,
  ): Request {
    const [method, template, form] = OPERATIONS[id]
    return new Request(this.#baseUrl + pathOf(template, input), {
      method,
      headers: {
        authorization: `Bearer ${this.#apiKey}`,
        accept: form === 'json' ? 'application/json' : '*/*',
        ...(input.body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
      },
      ...(input.body === undefined ? {} : { body: JSON.stringify(input.body) }),
      // If the client followed a redirect, it would send the API key to another host.
      redirect: 'manual',
      signal,
    })
  }

  async #send(id: OperationId, request: Request, init?: RequestInit): Promise<Response> {
    try {
      return await this.#fetch(request, init)
    } catch (cause) {
      throw this.#unreachable(id, cause)
    }
  }

  #unreachable(id: OperationId, cause: unknown): ConnectionError {
    const [method, template] = OPERATIONS[id]
    return new ConnectionError(`${method} ${template} could not reach ${this.#baseUrl}`, { cause })
  }

  async #attempt(
    id: OperationId,
    request: Request,
    init?: RequestInit,
  ): Promise<{ ok: true; value: unknown } | { ok: false; error: ErrorAnswer }> {
    const response = await this.#send(id, request, init)
    const toldMs = Date.parse(response.headers.get('date') ?? '')
    if (!Number.isNaN(toldMs)) this.#clockAheadMs = Date.now() - toldMs
    let text: string
    try {
      if (response.ok && OPERATIONS[id][2] === 'bytes') {
        return { ok: true, value: await response.arrayBuffer() }
      }
      text = await response.text()
    } catch (cause) {
      throw this.#unreachable(id, cause)
    }
    if (response.ok && text === '') return { ok: true, value: undefined }
    const body = parse(text)
    if (response.ok && body !== null) return { ok: true, value: body }
    return { ok: false, error: readError(response, body) }
  }
}

/**
 * Lists the POST operations that the client may repeat without an idempotency key. The operation for a payment
 * challenge changes nothing. The operation that sends a draft is safe, because the service sends each draft only once.
 */
const REPEATABLE_POSTS: ReadonlySet<OperationId> = new Set([
  'postPaymentsChallenge',
  'postMessagesDraftsByDraftIdSend',
])

/**
 * Tells whether the client may send a call again after its response was lost. A PATCH may be sent again, because the
 * PATCH operations only set, add or remove values. The exception is a call that sets the first webhook URL of an
 * endpoint. Its response shows the generated secret only once, so a repeated call would lose the secret without an
 * error.
 */
const isRepeatable = (id: OperationId, { body }: Input): boolean =>
  REPEATABLE_POSTS.has(id) || (OPERATIONS[id][0] !== 'POST' && !asksForSecret(body))

const asksForSecret = (body: unknown): boolean => {
  const { webhookUrl, webhookSecret } = (body ?? {}) as Record<string, unknown>
  return typeof webhookUrl === 'string' && webhookSecret === undefined
}

/**
 * Tells whether a call deletes a resource and gets no body as its response. If such a call is sent again, a 404 means
 * that the earlier call has deleted the resource. The withdrawal of a refund is no deletion, because the service keeps
 * the refund's record.
 */
const isDeletion = (id: OperationId): boolean =>
  OPERATIONS[id][0] === 'DELETE' && id !== 'deletePaymentsByPaymentIdRefundsByRefundId'

function pathOf(template: string, { path = {}, query = {} }: Input): string {
  const filled = template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = path[name]
    if (value === undefined || value === '') throw new TypeError(`${name} must not be empty`)
    // The URL parser treats "." and ".." as path steps even when they are percent-encoded. Therefore the call would
    // reach another path.
    if (value === '.' || value === '..') throw new TypeError(`${name} must not be "${value}"`)
    return encodeURIComponent(value)
  })
  const given = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) given.set(name, String(value))
  }
  return given.size === 0 ? filled : `${filled}?${given}`
}

function parse(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' ? (value as Record<string, unknown> | null) : null
  } catch {
    return null
  }
}

function readError(response: Response, body: Record<string, unknown> | null): ErrorAnswer {
  const { status, headers } = response
  const text = (value: unknown, otherwise: string) =>
    typeof value === 'string' && value !== '' ? value : otherwise
  const unexpected = response.ok
    ? 'The answer is not JSON: is baseUrl the URL of the service?'
    : `HTTP ${status || 'redirect'}`
  return {
    status,
    code: text(body?.error, 'unexpected_answer'),
    message: text(body?.message, unexpected),
    requestId: headers.get('x-request-id'),
    body: body ?? {},
    retryAfterS: readRetryAfter(headers.get('retry-after')),
  }
}

/** Reads the header Retry-After, which holds a number of seconds or a date (RFC 9110 §10.2.3). */
function readRetryAfter(value: string | null): number | null {
  if (value === null) return null
  if (/^\d{1,9}$/.test(value.trim())) return Number(value)
  const at = Date.parse(value)
  return Number.isNaN(at) ? null : Math.max(0, (at - Date.now()) / 1_000)
}

/** Waits for the given number of milliseconds, or until the signal aborts. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', done)
    if (signal.aborted) done()
  })
}
