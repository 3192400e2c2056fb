import { createPaywall, NO_STORE, type PaywallOptions, resourceOf, UNAVAILABLE } from './paywall.ts'

/** What is used of Hono's context. */
type HonoContext = {
  req: { url: string; header(name: string): string | undefined }
  header(name: string, value: string): void
}

/**
 * A Hono middleware that puts a price on the routes behind it.
 *
 * @example
 * app.get('/weather', requirePayment({ purser, amount: '0.01' }), (c) => c.text('Fine.'))
 */
export function requirePayment(
  options: PaywallOptions,
): (context: HonoContext, next: () => Promise<void>) => Promise<Response | undefined> {
  const judge = createPaywall(options)
  return async (context, next) => {
    const { protocol, host, pathname: path } = new URL(context.req.url)
    const header = (name: string) => context.req.header(name)
    const seen = { protocol: protocol.slice(0, -1), host, path }
    const verdict = await judge({
      payment: header('x-payment') ?? null,
      resource: resourceOf(options, seen, header),
    })
    if (verdict.kind === 'required') {
      return Response.json(verdict.challenge, { status: 402, headers: NO_STORE })
    }
    if (verdict.kind === 'unavailable') {
      const headers = { ...NO_STORE, 'retry-after': String(verdict.retryAfterS) }
      return Response.json(UNAVAILABLE, { status: 503, headers })
    }
    await next()
    context.header('cache-control', NO_STORE['cache-control'])
    context.header('x-payment-response', verdict.grant.paymentResponse)
    return undefined
  }
}
