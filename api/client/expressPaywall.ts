import { createPaywall, NO_STORE, type PaywallOptions, resourceOf, UNAVAILABLE } from './paywall.ts'

/** The used part of the request of Express 4 and 5. */
type ExpressRequest = {
  /** Express applies the application's `trust proxy` setting. */
  protocol: string
  originalUrl: string
  headers: Record<string, string | string[] | undefined>
}
type ExpressResponse = {
  status(code: number): ExpressResponse
  set(headers: Record<string, string>): ExpressResponse
  json(body: unknown): unknown
  setHeader(name: string, value: string): unknown
  writeHead: (...args: never[]) => unknown
}

/**
 * An Express middleware that puts a price on the routes behind it.
 *
 * @example
 * app.get('/weather', requirePayment({ purser, amount: '0.01' }), (_request, response) => response.send('Fine.'))
 */
export function requirePayment(
  options: PaywallOptions,
): (
  request: ExpressRequest,
  response: ExpressResponse,
  next: (error?: unknown) => void,
) => Promise<void> {
  const judge = createPaywall(options)
  return async (request, response, next) => {
    const header = (name: string) => [request.headers[name]].flat()[0]
    const [path = '/'] = request.originalUrl.split(/[?#]/)
    const requested = { protocol: request.protocol, host: header('host') ?? '', path }
    try {
      const verdict = await judge({
        payment: header('x-payment') ?? null,
        resource: resourceOf(options, requested, header),
      })
      if (verdict.kind === 'required') {
        response.status(402).set(NO_STORE).json(verdict.challenge)
        return
      }
      if (verdict.kind === 'unavailable') {
        const headers = { ...NO_STORE, 'retry-after': String(verdict.retryAfterS) }
        response.status(503).set(headers).json(UNAVAILABLE)
        return
      }
      setLate(response, {
        ...NO_STORE,
        'x-payment-response': verdict.grant.paymentResponse,
      })
    } catch (error) {
      next(error)
      return
    }
    next()
  }
}

/** Sets headers when the head is written; they override headers of the route. */
function setLate(response: ExpressResponse, headers: Record<string, string>): void {
  const { writeHead } = response
  response.writeHead = (...args: never[]) => {
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
    return writeHead.apply(response, args)
  }
}
