/** Handles the HTTP part of the paywalls: the payment headers, CORS, and the URL of the paid resource. */
import { credentialsIn } from './paidRequest.ts'
import { createPaywall, type PaywallOptions, type Refused, type Verdict } from './paywall.ts'
import { notePage, offerPage, pageHeaders, prefersHtml } from './paywallPage.ts'

export type HttpPaywallOptions = PaywallOptions & {
  /**
   * Makes the paywall trust X-Forwarded-Proto and X-Forwarded-Host when `resource` is absent. Set `trustProxy` only
   * behind a proxy that sets both headers. Otherwise any client can set them.
   */
  trustProxy?: boolean
  /**
   * Names the web origin of the pages that may buy the resource from a browser. The value `*` allows pages of any
   * origin. With an allowed origin, the paywall answers preflight requests, and lets a page read the payment headers.
   * Without an allowed origin, the paywall sends no CORS headers.
   */
  cors?: string
}

type Header = (name: string) => string | null | undefined

export type HttpRequest = {
  method: string
  protocol: string
  host: string
  /** Holds the path and query of the request without a fragment. */
  target: string
  header: Header
  /** Returns the names of all request headers, in lower case. */
  headerNames: () => Iterable<string>
  /**
   * Returns the hash of the request body. Null means that the hash is unknown. The paywall then cannot recognise an
   * equal request, so it never sends a stored response. If the handler fails, the payer may repeat such a request only
   * at the same process.
   */
  hashBody: () => Promise<string | null>
}

/** Describes an HTTP response that was sent to a payer. */
export type HttpAnswer = {
  status: number
  headers: [name: string, value: string][]
  body: Uint8Array<ArrayBuffer>
}

export type HttpVerdict =
  | Exclude<Verdict<HttpAnswer>, Refused>
  /**
   * Means that the paywall refuses to serve the request. If the refusal has a `page`, the server sends this HTML page
   * instead of the JSON body.
   */
  | (Refused & { page: string | null })
  /**
   * Means that the server answers a CORS preflight request with status 204 and the CORS headers that this value holds.
   */
  | { kind: 'preflight'; headers: Record<string, string> }

const PAYMENT_HEADERS = 'PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-PAYMENT-RESPONSE'
/**
 * Lists the request headers that a page of another origin may send (CORS). The wallets of `@x402` send
 * Access-Control-Expose-Headers as a request header.
 */
const REQUEST_HEADERS = 'PAYMENT-SIGNATURE, X-PAYMENT, Access-Control-Expose-Headers, Content-Type'

/**
 * Creates a paywall for HTTP.
 * @returns a function that decides whether the payer of one HTTP request has paid. The returned function throws
 * PaywallError if the seller has configured the paywall wrongly.
 */
export function createHttpPaywall(
  options: HttpPaywallOptions,
): (request: HttpRequest) => Promise<HttpVerdict> {
  const { cors, amount } = options
  const judge = createPaywall<HttpAnswer>(options)
  return async (request) => {
    const { method, header } = request
    const requestedMethod = header('access-control-request-method')
    if (cors !== undefined && method === 'OPTIONS' && requestedMethod) {
      const headers = {
        'access-control-allow-origin': cors,
        'access-control-allow-methods': requestedMethod,
        'access-control-allow-headers': header('access-control-request-headers') ?? REQUEST_HEADERS,
      }
      return { kind: 'preflight', headers }
    }
    // Some wallets send the same payment in two payment headers. The paywall redeems only one of them.
    const payment = header('payment-signature') ?? header('x-payment') ?? null
    const judged = await judge({
      payment,
      resource: resourceOf(options, request),
      ...(payment === null ? { asked: null } : await askedBy(request)),
    })
    if (judged.kind === 'answered') return judged
    const verdict =
      judged.kind === 'refused' ? await withPage(judged, amount, header('accept')) : judged
    if (cors === undefined) return verdict
    const readable = {
      'access-control-allow-origin': cors,
      'access-control-expose-headers': PAYMENT_HEADERS,
    }
    return { ...verdict, headers: { ...verdict.headers, ...readable } }
  }
}

/**
 * Lists the request headers that may change the content of the response. Two requests count as equal only if the values
 * of these headers, and of all other headers with credentials, are equal. Therefore an attacker who copied a payment
 * cannot get the response that the seller made for another person's cookie or API key.
 */
const ASKING_HEADERS = [
  'authorization',
  'cookie',
  'accept',
  'accept-encoding',
  'accept-language',
  'content-type',
  'range',
]

async function askedBy({ method, target, header, headerNames, hashBody }: HttpRequest) {
  const body = await hashBody()
  const credentials = credentialsIn(headerNames(), header)
  if (body === null) {
    // The compared headers do not include the content type, because a browser sets a new multipart boundary each time
    // it sends a form.
    const values = ['authorization', 'cookie'].map((name) => header(name) ?? null)
    return { asked: null, known: [method, target, values, ...credentials] }
  }
  const values = ASKING_HEADERS.map((name) => header(name) ?? null)
  return { asked: ['HTTP', method, target, body, values, ...credentials] }
}

/**
 * Lists the response headers that apply to one connection only. The paywall removes them from a stored response,
 * because the new connection has its own values.
 */
const CONNECTION_HEADERS = new Set(['connection', 'content-length', 'date', 'transfer-encoding'])

/** Returns an HTTP response in the form in which the paywall stores it. */
export const httpAnswer = (
  status: number,
  headers: Iterable<[name: string, value: string]>,
  pieces: readonly Uint8Array[],
): { answer: HttpAnswer; bytes: number } => {
  const body = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const piece of pieces) {
    body.set(piece, at)
    at += piece.length
  }
  const kept = [...headers].filter(([name]) => !CONNECTION_HEADERS.has(name.toLowerCase()))
  return { answer: { status, headers: kept, body }, bytes: body.length }
}

/**
 * Lists the statuses below 500 that ask the payer to repeat the request later: 408 Request Timeout, 425 Too Early and
 * 429 Too Many Requests.
 */
const TRANSIENT = [408, 425, 429]

/**
 * Tells whether a response with this HTTP status counts as a sale. A failure of the seller's server is no sale, and
 * neither is a status that asks the payer to repeat the request later. The payer may then send the same request again.
 */
export const isSold = (status: number): boolean => status < 500 && !TRANSIENT.includes(status)

/**
 * Matches the response headers that some caches obey instead of Cache-Control: those of RFC 9213 and its forerunners,
 * and the one of nginx.
 */
const CACHES = /^(?:.+-cache-control|surrogate-control|edge-control|x-accel-expires)$/i

/**
 * Returns those response headers that let some caches store the response in spite of `no-store`. The paywall removes
 * them, because such a cache would serve the paid resource to clients that have not paid.
 */
export const cachingHeaders = (names: Iterable<string>): string[] =>
  [...names].filter((name) => CACHES.test(name))

/** Adds an HTML page for browsers to the paywall's refusal. A refusal with an HTML page keeps its payment headers. */
async function withPage(
  refused: Refused,
  amount: string,
  accept: string | null | undefined,
): Promise<Refused & { page: string | null }> {
  if (!prefersHtml(accept)) return { ...refused, page: null }
  const { challenge, body, headers } = refused
  const page =
    challenge === null ? notePage(String(body.message)) : offerPage({ amount, challenge })
  return { ...refused, page, headers: { ...headers, ...(await pageHeaders()) } }
}

/** Returns the URL of the paid resource: `options.resource`, or otherwise the URL of the request. */
function resourceOf(
  { resource, trustProxy = false }: HttpPaywallOptions,
  { protocol, host, target, header }: HttpRequest,
): string {
  if (resource !== undefined) return resource
  const forwarded = (name: string) =>
    trustProxy ? header(name)?.split(',')[0]?.trim() || undefined : undefined
  const [path = '/'] = target.split('?')
  const seen = forwarded('x-forwarded-proto') ?? protocol
  return `${seen}://${forwarded('x-forwarded-host') ?? host}${path}`
}
