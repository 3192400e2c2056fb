import type { HttpPaywallOptions } from './httpPaywall.ts'
import { createWebPaywall } from './webPaywall.ts'

type Handler<Rest extends unknown[]> = (
  request: Request,
  ...rest: Rest
) => Response | Promise<Response>

/**
 * Puts a price on a handler that turns a `Request` into a `Response`, such as a handler of Bun.serve, Deno.serve,
 * Workers or Elysia.
 *
 * @example
 * const weather = requirePayment({ purser, amount: '0.01' }, () => new Response('Fine.'))
 * Bun.serve({ fetch: weather })
 * new Elysia().get('/weather', ({ request }) => weather(request))
 */
export function requirePayment<Rest extends unknown[]>(
  options: HttpPaywallOptions,
  handler: Handler<Rest>,
): (request: Request, ...rest: Rest) => Promise<Response> {
  const judge = createWebPaywall(options)
  return async (request, ...rest) => {
    const judged = await judge(request)
    if (judged.kind === 'answer') return judged.response
    try {
      return judged.finish(await handler(request, ...rest))
    } catch (error) {
      judged.fail()
      throw error
    }
  }
}
