import {
  cachingHeaders,
  createHttpPaywall,
  type HttpAnswer,
  type HttpPaywallOptions,
  httpAnswer,
  isSold,
} from './httpPaywall.ts'
import { ANSWER_MAX_BYTES, type Sale } from './paidAnswers.ts'
import { sha256 } from './paidRequest.ts'

/** Describes the fields of a request in Express 4 and 5 that the paywall uses. */
type ExpressRequest = {
  method: string
  /**
   * Holds the URL scheme of the request, `http` or `https`. Express applies the `trust proxy` setting of the
   * application to the request's protocol.
   */
  protocol: string
  originalUrl: string
  headers: Record<string, string | string[] | undefined>
  /**
   * Holds the major version of HTTP: 1 for HTTP/1.1, as in Node. A request of another version may have a body without a
   * header that says so.
   */
  httpVersionMajor?: number | string
  /** Tells whether a body parser has read the body of the request. */
  readableEnded?: boolean
  body?: unknown
}
type ExpressResponse = {
  status(code: number): ExpressResponse
  set(headers: Record<string, string>): ExpressResponse
  json(body: unknown): unknown
  end(...args: unknown[]): unknown
  write(...args: unknown[]): unknown
  statusCode: number
  getHeaders(): Record<string, number | string | string[] | undefined>
  setHeader(name: string, value: string | string[]): unknown
  removeHeader(name: string): unknown
  writeHead: (...args: never[]) => unknown
  /** Tells whether the payer has disconnected. */
  destroyed?: boolean
  once(event: 'close', listener: () => void): unknown
}

/**
 * Creates an Express middleware that puts a price on all routes after it.
 *
 * @example
 * app.get('/weather', requirePayment({ purser, amount: '0.01' }), (_request, response) => response.send('Fine.'))
 */
export function requirePayment(
  options: HttpPaywallOptions,
): (
  request: ExpressRequest,
  response: ExpressResponse,
  next: (error?: unknown) => void,
) => Promise<void> {
  const judge = createHttpPaywall(options)
  return async (request, response, next) => {
    const header = (name: string) => [request.headers[name]].flat()[0]
    // The target of a request may be a whole URL (RFC 9112 §3.2.2). Express matches only the path of this URL, so the
    // paywall removes the origin.
    const origin = /^https?:\/\/[^/?#]*/i
    const [target = '/'] = request.originalUrl.replace(origin, '').split('#')
    try {
      const verdict = await judge({
        method: request.method,
        protocol: request.protocol,
        host: header('host') ?? '',
        target,
        header,
        headerNames: () => Object.keys(request.headers),
        hashBody: () => hashBody(request),
      })
      if (verdict.kind === 'preflight') {
        response.status(204).set(verdict.headers).end()
        return
      }
      if (verdict.kind === 'answered') {
        sendAgain(response, verdict.answer)
        return
      }
      if (verdict.kind === 'refused') {
        const { page, body } = verdict
        response.status(verdict.status).set(verdict.headers)
        if (page === null) response.json(body)
        else response.end(page)
        return
      }
      const ownHeaders = setLate(response, verdict.headers)
      store(response, verdict.sale, ownHeaders)
    } catch (error) {
      next(error)
      return
    }
    next()
  }
}

/**
 * Sets payment headers just before the server sends the response head, so that they override headers of the route.
 * @returns a function that returns the headers of the response, which the paywall stores. The result omits headers that
 * an outer middleware sets later, because the middleware also sets them when the paywall sends a stored response.
 */
function setLate(
  response: ExpressResponse,
  headers: Record<string, string>,
): () => [string, string][] {
  const { writeHead } = response
  let own: [string, string][] | undefined
  response.writeHead = (...args: never[]) => {
    // Headers in the arguments of `writeHead` take precedence over headers that were set before, so the paywall removes
    // all headers from the arguments.
    const rest = args.filter((one) => typeof one !== 'object')
    for (const [name, values] of headersIn(args.find((one) => typeof one === 'object'))) {
      response.setHeader(name, values.length === 1 ? values[0]! : values)
    }
    for (const name of cachingHeaders(Object.keys(response.getHeaders())))
      response.removeHeader(name)
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
    own ??= headersOf(response)
    return writeHead.apply(response, rest)
  }
  return () => own ?? headersOf(response)
}

/**
 * Returns the headers that a handler passed to `writeHead`. A handler may pass an object, a list of pairs, or a list
 * in which names and values alternate.
 */
function headersIn(given: unknown): Map<string, string[]> {
  const list: unknown[] = Array.isArray(given) ? given : Object.entries(given ?? {})
  const pairs = (
    Array.isArray(list[0])
      ? list
      : list.flatMap((name, n) => (n % 2 === 0 ? [[name, list[n + 1]]] : []))
  ) as [name: string, value: string | string[]][]
  const headers = new Map<string, string[]>()
  for (const [name, value] of pairs) {
    const lower = name.toLowerCase()
    headers.set(lower, [...(headers.get(lower) ?? []), ...[value].flat()])
  }
  return headers
}

/** Collects the response of a paid request while the handler writes it, and then stores the response. */
function store(
  response: ExpressResponse,
  sale: Sale<HttpAnswer>,
  ownHeaders: () => [string, string][],
): void {
  const { write, end } = response
  // If the payer disconnects, a handler that streams its response stops without a call of `end`, so the code listens
  // for `close`. If the payer has already disconnected during the settlement, no event `close` follows. Therefore the
  // code first checks `destroyed`.
  if (response.destroyed) sale.left()
  else response.once('close', sale.left)
  const pieces: Uint8Array[] = []
  let bytes = 0
  let isEnding = false
  const add = ([chunk, encoding]: readonly unknown[]) => {
    const piece = pieceOf(chunk, encoding)
    bytes += piece?.length ?? Number.POSITIVE_INFINITY
    if (piece !== null && bytes <= ANSWER_MAX_BYTES) pieces.push(piece)
  }
  response.write = (...args) => {
    // In HTTP/2, Node's `end` passes its chunk to `write`, so the code must not collect this chunk a second time.
    if (!isEnding) add(args)
    return write.apply(response, args)
  }
  response.end = (...args) => {
    add(args)
    isEnding = true
    const ended = end.apply(response, args)
    // The code reads the status and the headers only after the handler's call of `end`, because they are complete only
    // then.
    const { statusCode } = response
    if (!isSold(statusCode)) sale.unsold()
    else sale.sold(bytes > ANSWER_MAX_BYTES ? null : httpAnswer(statusCode, ownHeaders(), pieces))
    return ended
  }
}

/**
 * Returns the bytes of a chunk that a handler writes to its response. Returns `null` if the paywall cannot know the
 * bytes of the chunk.
 */
function pieceOf(chunk: unknown, encoding: unknown): Uint8Array | null {
  // In Node, the first argument of `end` can be a callback instead of a chunk, which adds no bytes to the response.
  if (chunk === undefined || chunk === null || typeof chunk === 'function') return new Uint8Array()
  // The paywall copies the bytes of each chunk of the response, because the handler may reuse its buffer for other
  // bytes.
  if (chunk instanceof Uint8Array) return new Uint8Array(chunk)
  const isUtf8 = typeof encoding !== 'string' || /^utf-?8$/i.test(encoding)
  return typeof chunk === 'string' && isUtf8 ? new TextEncoder().encode(chunk) : null
}

const headersOf = (response: ExpressResponse): [string, string][] =>
  Object.entries(response.getHeaders()).flatMap(([name, value]) =>
    [value ?? []].flat().map((one): [string, string] => [name, String(one)]),
  )

function sendAgain(response: ExpressResponse, { status, headers, body }: HttpAnswer): void {
  const byName = new Map<string, string[]>()
  for (const [name, value] of headers) byName.set(name, [...(byName.get(name) ?? []), value])
  response.status(status)
  for (const [name, values] of byName)
    response.setHeader(name, values.length > 1 ? values : values[0]!)
  response.end(body)
}

/**
 * Matches the HTTP methods for whose requests a body has no defined meaning (RFC 9110 §9.3), so that these requests
 * normally have none.
 */
const BODILESS = /^(?:GET|HEAD)$/

/**
 * Tells whether the parsed body is absent or an empty object. Some parsers of Express set an empty object if they have
 * found no body.
 */
const isEmpty = (body: unknown): boolean =>
  body === undefined || (typeof body === 'object' && JSON.stringify(body) === '{}')

/** Returns the hash of the request body. Returns `null` if no parser has read the whole body. */
async function hashBody({
  method,
  headers,
  httpVersionMajor,
  body,
  readableEnded,
}: ExpressRequest): Promise<string | null> {
  const { 'content-length': length, 'transfer-encoding': encoding, 'content-type': type } = headers
  // In HTTP/1.1, a request without Content-Length and Transfer-Encoding has no body (RFC 9112 §6.3). In later versions
  // of HTTP, such a request may have a body (RFC 9113 §8.1).
  const isUnsized = encoding === undefined && length === undefined
  const mayHaveBody = Number(httpVersionMajor) !== 1 && !(BODILESS.test(method) && isEmpty(body))
  if ((isUnsized && !mayHaveBody) || length === '0') return ''
  // The body parser does not add the files of a multipart form to the parsed body, so the paywall cannot hash such a
  // body.
  if (!readableEnded || body === undefined || /^\s*multipart\//i.test(String(type))) return null
  if (body instanceof Uint8Array) return sha256(new Uint8Array(body))
  return sha256(JSON.stringify(body) ?? '')
}
