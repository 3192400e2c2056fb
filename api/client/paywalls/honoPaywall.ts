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
      // When a new response is assigned, Hono copies the headers of the old response into it. Therefore the code first
      // assigns `undefined`, so that the handler's headers do not overwrite the payment headers.
      context.res = undefined
      context.res = response
    } catch (error) {
      judged.fail()
      throw error
    }
    return undefined
  }
}
