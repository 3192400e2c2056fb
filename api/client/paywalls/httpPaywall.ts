/** Handles the HTTP part of the paywalls: payment headers, CORS, and the resource of a request. */
import { createPaywall, type PaywallOptions, type Refused, type Verdict } from './paywall.ts'
import { notePage, offerPage, pageHeaders, prefersHtml } from './paywallPage.ts'

export type HttpPaywallOptions = PaywallOptions & {
  /**
   * Trusts X-Forwarded-Proto and X-Forwarded-Host when `resource` is absent. Use this setting only behind a proxy that
   * sets both headers. Otherwise any client can set them.
   */
  trustProxy?: boolean
  /**
   * Names the origin whose pages may buy. `*` means any origin. The paywall then answers preflight requests, and lets a
   * page read the payment headers. Without this setting there are no CORS headers.
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
  /**
   * Returns the hash of the request body. `null` means that the hash is unknown. The paywall then cannot send a stored
   * response to a repeated request.
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
  /** Means that the request is refused. If there is a `page`, the server sends this page instead of the body. */
  | (Refused & { page: string | null })
  /** Means that the server answers a CORS preflight request by a 204 with these headers. */
  | { kind: 'preflight'; headers: Record<string, string> }

const PAYMENT_HEADERS = 'PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-PAYMENT-RESPONSE'
/**
 * Lists the request headers that a page of another origin may send (CORS). The wallets of `@x402` send
 * Access-Control-Expose-Headers as a request header.
 */
const REQUEST_HEADERS = 'PAYMENT-SIGNATURE, X-PAYMENT, Access-Control-Expose-Headers, Content-Type'

/**
 * Creates a paywall for HTTP.
 * @returns a function that decides whether one HTTP request has paid. The function throws PaywallError.
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
    // Some wallets send the same payment in both payment headers. The paywall redeems this payment only once.
    const payment = header('payment-signature') ?? header('x-payment') ?? null
    const judged = await judge({
      payment,
      resource: resourceOf(options, request),
      asked: payment === null ? null : await askedBy(request),
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
 * Lists the request headers that may change the content of the response. The headers count as a part of the request. So
 * a stranger who copied a payment cannot get the response to another person's cookie.
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

async function askedBy({ method, target, header, hashBody }: HttpRequest) {
  const body = await hashBody()
  if (body === null) return null
  return ['HTTP', method, target, body, ASKING_HEADERS.map((name) => header(name) ?? null)]
}

/**
 * Lists the response headers that describe one connection. A stored response is sent without these headers, because the
 * new connection sets its own values.
 */
const CONNECTION_HEADERS = new Set(['connection', 'content-length', 'date', 'transfer-encoding'])

/** Returns the stored form of an HTTP response. */
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
 * Tells whether the payer has to pay for a response with this status. After a failure of the seller the payer may send
 * the same request again.
 */
export const isSold = (status: number): boolean => status < 500

/** Adds an HTML page for a browser to a refusal. The payment headers stay. */
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

/** Returns the resource of a request: `options.resource`, or otherwise the URL of the request. */
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
