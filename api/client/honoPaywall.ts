import type { HttpPaywallOptions } from './httpPaywall.ts'
import { createWebPaywall } from './webPaywall.ts'

/** The used part of Hono's context. */
type HonoContext = {
  req: { raw: Pick<Request, 'method' | 'url' | 'headers'> }
  header(name: string, value: string): void
}

/**
 * A Hono middleware that puts a price on the routes behind it.
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
    if (judged.refusal !== null) return judged.refusal
    await next()
    for (const [name, value] of Object.entries(judged.headers)) context.header(name, value)
    return undefined
  }
}
