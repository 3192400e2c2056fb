import {
  cachingHeaders,
  createHttpPaywall,
  type HttpPaywallOptions,
  type HttpVerdict,
  httpAnswer,
  isSold,
} from './httpPaywall.ts'
import { ANSWER_MAX_BYTES, WAIT_MS } from './paidAnswers.ts'
import { sha256 } from './paidRequest.ts'

/**
 * Sets the maximum number of bytes of a request body that the paywall hashes. For a longer body, the paywall has no
 * hash.
 */
const REQUEST_MAX_BYTES = 1024 * 1024

type Judged =
  /** Means that the server sends the given response and does not run the handler. */
  | { kind: 'answer'; response: Response }
  /**
   * Means that the request is paid, so the server serves the paid resource. The function `finish` makes the response.
   * The server calls `fail` if its handler returned no response.
   */
  | { kind: 'paid'; finish: (served: Response) => Response; fail: () => void }

/** Creates a paywall for servers that return a `Response`. */
export function createWebPaywall(
  options: HttpPaywallOptions,
): (request: Request) => Promise<Judged> {
  const judge = createHttpPaywall(options)
  return async (request) => {
    const { method, url, headers } = request
    const { protocol, host, pathname, search } = new URL(url)
    const verdict = await judge({
      method,
      protocol: protocol.slice(0, -1),
      host,
      target: pathname + search,
      header: (name) => headers.get(name),
      headerNames: () => headers.keys(),
      hashBody: () => hashBody(request),
    })
    if (verdict.kind !== 'paid') return { kind: 'answer', response: responseOf(verdict) }
    return {
      kind: 'paid',
      finish: (served) => finish(served, verdict),
      fail: verdict.sale.unsold,
    }
  }
}

type Paid = Extract<HttpVerdict, { kind: 'paid' }>

function responseOf(verdict: Exclude<HttpVerdict, Paid>): Response {
  if (verdict.kind === 'preflight') {
    return new Response(null, { status: 204, headers: verdict.headers })
  }
  if (verdict.kind === 'answered') {
    const { status, headers, body } = verdict.answer
    // An empty body becomes null, because responses with status 204 or 304 must have no body.
    return new Response(body.length === 0 ? null : body, { status, headers })
  }
  const { status, body, page } = verdict
  const answer = { status, headers: verdict.headers }
  return page === null ? Response.json(body, answer) : new Response(page, answer)
}

/** Adds the payment headers to the response of a paid request, and stores the response while the server sends it. */
function finish(served: Response, { headers, sale }: Paid): Response {
  // The code reads the headers before the body. Bun sets the content type of a file, blob or form only when the headers
  // are read, and loses the content type with the first read of `body`.
  served.headers.get('content-type')
  const [sent, stored] = isSold(served.status) ? (served.body?.tee() ?? []) : []
  const late = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  const left = () => {
    sale.left()
    // The time limit ends a response whose payer has left. The paywall is then the only reader of this response, which
    // may never end.
    timer = setTimeout(() => late.abort(new Error('the payer left')), WAIT_MS)
  }
  // The paywall copies the handler's response, because fetched responses and redirects have immutable headers.
  const response = new Response(sent ? telling(sent, left) : served.body, served)
  for (const name of cachingHeaders(response.headers.keys())) response.headers.delete(name)
  for (const [name, value] of Object.entries(headers)) response.headers.set(name, value)
  const keep = (pieces: Uint8Array[] | null) =>
    sale.sold(pieces && httpAnswer(response.status, response.headers, pieces))
  if (!isSold(served.status)) sale.unsold()
  else if (stored === undefined) keep([])
  else {
    readUpTo(stored, ANSWER_MAX_BYTES, late.signal)
      .then(keep, sale.unsold)
      .finally(() => clearTimeout(timer))
  }
  return response
}

/** Passes on a stream of bytes, and calls `left` if the reader of the stream leaves before its end. */
function telling(stream: ReadableStream<Uint8Array>, left: () => void): ReadableStream<Uint8Array> {
  const reader = stream.getReader()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await reader.read()
        if (done) controller.close()
        else controller.enqueue(value)
      },
      cancel(reason) {
        left()
        // The code does not wait for the promise of `cancel`, because it resolves only after the other stream of the
        // `tee` has ended too.
        reader.cancel(reason).catch(() => {})
      },
    },
    { highWaterMark: 0 },
  )
}

/**
 * Returns the hash of a request body, which the handler can still read. Returns `null` if the body is too long, or if
 * somebody has already read it.
 */
async function hashBody(request: Request): Promise<string | null> {
  if (request.body === null) return ''
  if (request.bodyUsed || request.body.locked) return null
  const pieces = await readUpTo(request.clone().body!, REQUEST_MAX_BYTES)
  return pieces && sha256(httpAnswer(0, [], pieces).answer.body)
}

/**
 * Reads a stream of bytes completely. Returns `null` if the stream is longer than `maxBytes`. @throws the reason of the
 * signal, if the signal aborts before the end of the stream.
 */
async function readUpTo(
  stream: ReadableStream<Uint8Array>,
  maxBytes: number,
  signal?: AbortSignal,
): Promise<Uint8Array[] | null> {
  const reader = stream.getReader()
  signal?.addEventListener('abort', () => void reader.cancel().catch(() => {}))
  const pieces: Uint8Array[] = []
  let bytes = 0
  for (;;) {
    const { done, value } = await reader.read()
    signal?.throwIfAborted()
    if (done) return pieces
    const piece = bytesOf(value)
    bytes += piece.length
    pieces.push(piece)
    if (bytes <= maxBytes) continue
    // The code does not wait for the promise of `cancel`, because it resolves only after the other stream of the `tee`
    // has ended too.
    reader.cancel().catch(() => {})
    return null
  }
}

/** Returns the bytes of a chunk of a stream. Bun also sends chunks that are strings, buffers or other views. */
function bytesOf(chunk: unknown): Uint8Array {
  if (chunk instanceof Uint8Array) return chunk
  if (ArrayBuffer.isView(chunk)) {
    return new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength)
  }
  return chunk instanceof ArrayBuffer
    ? new Uint8Array(chunk)
    : new TextEncoder().encode(String(chunk))
}
