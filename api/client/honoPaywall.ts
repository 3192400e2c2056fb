import { NO_STORE, type PaywallOptions } from './paywall.ts'
import { createWebPaywall } from './webPaywall.ts'

/** The used part of Hono's context. */
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
  const judge = createWebPaywall(options)
  return async (context, next) => {
    const judged = await judge(context.req.url, (name) => context.req.header(name))
    if (judged.refusal !== null) return judged.refusal
    await next()
    context.header('cache-control', NO_STORE['cache-control'])
    context.header('x-payment-response', judged.grant.paymentResponse)
    return undefined
  }
}
