import { createPaywall, NO_STORE, type PaywallOptions, resourceOf, UNAVAILABLE } from './paywall.ts'

type Handler<Rest extends unknown[]> = (
  request: Request,
  ...rest: Rest
) => Response | Promise<Response>

/**
 * Puts a price on a handler that takes a `Request` and gives a `Response`: Bun.serve, Deno.serve, Workers, Elysia.
 *
 * @example
 * const weather = requirePayment({ purser, amount: '0.01' }, () => new Response('Fine.'))
 * Bun.serve({ fetch: weather })
 * new Elysia().get('/weather', ({ request }) => weather(request))
 */
export function requirePayment<Rest extends unknown[]>(
  options: PaywallOptions,
  handler: Handler<Rest>,
): (request: Request, ...rest: Rest) => Promise<Response> {
  const judge = createPaywall(options)
  return async (request, ...rest) => {
    const { protocol, host, pathname: path } = new URL(request.url)
    const header = (name: string) => request.headers.get(name)
    const seen = { protocol: protocol.slice(0, -1), host, path }
    const verdict = await judge({
      payment: header('x-payment'),
      resource: resourceOf(options, seen, header),
    })
    if (verdict.kind === 'required') {
      return Response.json(verdict.challenge, { status: 402, headers: NO_STORE })
    }
    if (verdict.kind === 'unavailable') {
      const headers = { ...NO_STORE, 'retry-after': String(verdict.retryAfterS) }
      return Response.json(UNAVAILABLE, { status: 503, headers })
    }
    const served = await handler(request, ...rest)
    // A copy: the headers of a fetched or a redirect response cannot be changed.
    const response = new Response(served.body, served)
    response.headers.set('cache-control', NO_STORE['cache-control'])
    response.headers.set('x-payment-response', verdict.grant.paymentResponse)
    return response
  }
}
