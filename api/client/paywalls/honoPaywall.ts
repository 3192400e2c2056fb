import type { HttpPaywallOptions } from './httpPaywall.ts'
import { createWebPaywall } from './webPaywall.ts'

/** Describes the fields of Hono's context that the paywall uses. */
type HonoContext = {
  req: { raw: Request }
  get res(): Response
  set res(response: Response | undefined)
}

/**
 * Creates a Hono middleware that puts a price on all routes that follow the middleware.
 *
 * @example
 * app.get('/weather', requirePayment({ purser, amount: '0.01' }), (c) => c.text('Fine.'))
 */
export function requirePayment(
  options: HttpPaywallOptions,
): (context: HonoContext, next: () => Promise<void>) => Promise<Response | undefined> {
  const judge = createWebPaywall(options)
  return async (context, next) => {
    const judged = await judge(context.req.raw)
    if (judged.kind === 'answer') return judged.response
    try {
      await next()
      const response = judged.finish(context.res)
      // Without the assignment of `undefined`, Hono would overwrite the payment headers with the handler's headers.
      context.res = undefined
      context.res = response
    } catch (error) {
      judged.fail()
      throw error
    }
    return undefined
  }
}
