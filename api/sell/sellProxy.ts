/**
 * Implements a reverse proxy that sells the responses of any server. The proxy sends the content only after the service
 * has granted the payment.
 */
import { proxy } from 'hono/proxy'
import { headerKey } from '../../shared/http/headerName.ts'
import { REPLACING_HEADERS } from '../../shared/http/replacingHeaders.ts'
import { requirePayment } from '../client/paywalls/fetchPaywall.ts'
import { isSold } from '../client/paywalls/httpPaywall.ts'
import type { Purser } from '../client/purser.ts'
import type { Price, Prices } from './prices.ts'
import { normalPath, PathError } from './sellPath.ts'

export type SellOptions = {
  purser: Purser
  /**
   * Holds the origin of the server that answers the paid requests behind the proxy, such as `http://localhost:4000`.
   */
  origin: string
  prices: Prices
  /** Holds the public origin of the proxy, as payers see it. */
  publicOrigin: string
  /** Holds the maximum number of milliseconds until the server behind the proxy begins to send its response. */
  timeoutMs: number
  /** Sends a request to the server behind the proxy. */
  fetch: (request: Request) => Promise<Response>
  log: (line: string) => void
}

/**
 * Names the request headers that only the paywall reads. The proxy removes them, so that the server behind the proxy
 * never sees a payment that it could copy.
 */
const PAYMENT_HEADERS = [
  'x-payment',
  'payment-signature',
  'payment-authorization',
  'sign-in-with-x',
]
/**
 * Names the request headers that a caller can forge and that the server behind the proxy must not trust. With one of
 * REPLACING_HEADERS, the buyer would get another path than the one that was paid for.
 */
const FORGEABLE = [
  ...REPLACING_HEADERS,
  ...['x-forwarded-for', 'x-forwarded-port', 'x-forwarded-proto', 'x-real-ip'],
]
/** Names the request headers that the proxy removes, in the form of `headerKey`. */
const REMOVED = new Set<string>([...PAYMENT_HEADERS, ...FORGEABLE, 'host'])

/**
 * Limits the characters of the URL and the headers that the proxy forwards. Most servers take 16 KB of headers, and the
 * proxy adds some. A server that refuses the headers does so after the payment, and such a refusal counts as a sale.
 */
const FORWARDED_MAX_CHARS = 15 * 1024

const forwardedChars = ({ url, headers }: Request): number =>
  [...headers].reduce(
    (sum, [name, value]) =>
      sum + (REMOVED.has(headerKey(name)) ? 0 : name.length + value.length + 4),
    url.length,
  )

/**
 * Tells whether a request has a body that the proxy cannot forward. The Fetch API has no body for GET and HEAD, so the
 * server behind the proxy would answer another request than the buyer has paid for.
 */
const hasLostBody = ({ method, headers }: Request): boolean =>
  (method === 'GET' || method === 'HEAD') &&
  (headers.has('transfer-encoding') || Number(headers.get('content-length') ?? 0) > 0)

/** Creates a function that answers one request to the proxy. @param from is the IP address of the client. */
export function createSellProxy(
  options: SellOptions,
): (request: Request, from: string) => Promise<Response> {
  const { origin, prices, publicOrigin, log } = options
  const paywalls = new Map<Price, ReturnType<typeof paywallOf>>()
  const paywallOf = ({ amount, description }: Price, resource: string) =>
    requirePayment(
      {
        purser: options.purser,
        amount,
        resource,
        cors: '*',
        ...(description === undefined ? {} : { description }),
      },
      (request: Request, path: string, from: string) => forward(options, request, { path, from }),
    )
  return async (request, from) => {
    try {
      const path = normalPath(new URL(request.url).pathname)
      if (/\bwebsocket\b/i.test(request.headers.get('upgrade') ?? '')) {
        return refuse(501, 'upgrade_not_supported', 'A WebSocket cannot be paid for by request')
      }
      if (hasLostBody(request)) {
        return refuse(
          400,
          'bad_request',
          `A ${request.method} request with a body is not sold here`,
        )
      }
      if (forwardedChars(request) > FORWARDED_MAX_CHARS) {
        const most = `The URL and the headers without the payment must have at most ${FORWARDED_MAX_CHARS} characters`
        return refuse(431, 'headers_too_large', most)
      }
      // To check an endpoint, the service itself requests each registered path without a payment. If the path comes
      // from a glob, the service requests only the part before its wildcards. The proxy answers with a payment
      // challenge, but sells nothing at this path.
      const isAsked = !PAYMENT_HEADERS.some((name) => request.headers.has(name))
      const price = prices.of(path) ?? (isAsked ? prices.registeredAt(path) : null)
      if (price === null) return refuse(404, 'not_found', 'This path is not for sale')
      let paywall = paywalls.get(price)
      if (paywall === undefined) {
        paywall = paywallOf(price, `${publicOrigin}${price.registered}`)
        paywalls.set(price, paywall)
      }
      return await paywall(request, path, from)
    } catch (error) {
      if (error instanceof PathError) return refuse(400, 'bad_request', error.message)
      log(`${request.method} ${origin}: ${error instanceof Error ? error.message : 'it failed'}`)
      return refuse(500, 'internal_error', 'The paywall cannot sell this now')
    }
  }
}

/** Forwards a request to the server behind the proxy once the service has granted the payment. */
async function forward(
  options: SellOptions,
  request: Request,
  { path, from }: { path: string; from: string },
): Promise<Response> {
  const { origin, publicOrigin, timeoutMs, fetch, log } = options
  const { search } = new URL(request.url)
  // The proxy itself often stands behind another proxy that ends TLS, so the server must hear the scheme of the public
  // origin. If the server heard `http`, it would redirect the buyer, and the buyer would have paid for the redirect.
  const { host, protocol } = new URL(publicOrigin)
  const headers = new Headers(request.headers)
  for (const name of [...headers.keys()]) if (REMOVED.has(headerKey(name))) headers.delete(name)
  headers.set('x-forwarded-for', from)
  headers.set('x-forwarded-host', host)
  headers.set('x-forwarded-proto', protocol.slice(0, -1))
  // The time limit of the forwarded request begins after the service has granted the payment, because the payer has
  // paid by then. If the payer disconnects, the forwarded request continues. Otherwise a payer could read most of a
  // response, disconnect, and get a new response for the same payment again and again. If nobody reads a response, the
  // paywall ends it.
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(), timeoutMs)
  let retryAfter: string | null = null
  try {
    const bare = new Request(request, { headers })
    const answer = await proxy(`${origin}${path}${search}`, {
      raw: bare,
      redirect: 'manual',
      signal: late.signal,
      customFetch: fetch,
    })
    const moved = movedTo(options, path, answer)
    if (moved === null && isSold(answer.status)) return answer
    await answer.body?.cancel()
    if (moved !== null) {
      log(`${request.method} ${origin}${path}: it redirected to ${moved}, so sell ${moved} instead`)
      const hint = `The seller must sell ${moved} instead of ${path}, or serve ${path} itself`
      return refuse(502, 'origin_redirected', `${PAID} redirects. ${hint}. ${AGAIN}`)
    }
    retryAfter = answer.headers.get('retry-after')
    log(`${request.method} ${origin}${path}: it answered ${answer.status}`)
  } catch (error) {
    const reason = late.signal.aborted ? 'it did not answer in time' : String(error)
    log(`${request.method} ${origin}${path}: ${reason.slice(0, 200)}`)
  } finally {
    clearTimeout(timer)
  }
  return late.signal.aborted
    ? refuse(504, 'origin_timeout', `${PAID} did not answer in time. ${AGAIN}`)
    : refuse(502, 'origin_failed', `${PAID} failed. ${AGAIN}`, retryAfter)
}

/**
 * Returns the path to which the server behind the proxy redirects, if it is not for sale and differs from the requested
 * path only in the final slash. The proxy must not sell such a redirect, because the buyer could not get the content at
 * that path.
 */
function movedTo(
  { origin, publicOrigin, prices }: SellOptions,
  path: string,
  { status, headers }: Response,
): string | null {
  const location = headers.get('location')
  const from = `${origin}${path}`
  if (status < 300 || status > 399 || location === null || !URL.canParse(location, from))
    return null
  const { host, pathname } = new URL(location, from)
  if (![origin, publicOrigin].some((own) => new URL(own).host === host)) return null
  try {
    const target = normalPath(pathname)
    const isMoved = target !== path && withoutSlash(target) === withoutSlash(path)
    return isMoved && !isForSale(prices, target) ? target : null
  } catch (error) {
    if (error instanceof PathError) return null
    throw error
  }
}

const withoutSlash = (path: string): string => path.replace(/\/$/, '')

function isForSale(prices: Prices, path: string): boolean {
  try {
    return prices.of(path) !== null
  } catch (error) {
    if (error instanceof PathError) return false
    throw error
  }
}

const PAID = 'The payment went through, and the server behind'
const AGAIN =
  'Send the same request with the same payment header within ten minutes: it is not charged again'

const refuse = (
  status: number,
  error: string,
  message: string,
  retryAfter: string | null = null,
): Response => {
  const headers = { 'cache-control': 'no-store', ...(retryAfter && { 'retry-after': retryAfter }) }
  return Response.json({ error, message, status }, { status, headers })
}
