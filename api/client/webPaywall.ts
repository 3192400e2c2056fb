import type { Grant } from './payments.ts'
import { createPaywall, NO_STORE, type PaywallOptions, resourceOf, UNAVAILABLE } from './paywall.ts'

/** `refusal` is the answer to an unpaid request. */
type Judged = { refusal: Response } | { refusal: null; grant: Grant }

/** A paywall for servers that answer with a `Response`. */
export function createWebPaywall(
  options: PaywallOptions,
): (url: string, header: (name: string) => string | null | undefined) => Promise<Judged> {
  const judge = createPaywall(options)
  return async (url, header) => {
    const { protocol, host, pathname: path } = new URL(url)
    const requested = { protocol: protocol.slice(0, -1), host, path }
    const verdict = await judge({
      payment: header('x-payment') ?? null,
      resource: resourceOf(options, requested, header),
    })
    if (verdict.kind === 'required') {
      return { refusal: Response.json(verdict.challenge, { status: 402, headers: NO_STORE }) }
    }
    if (verdict.kind === 'unavailable') {
      const headers = { ...NO_STORE, 'retry-after': String(verdict.retryAfterS) }
      return { refusal: Response.json(UNAVAILABLE, { status: 503, headers }) }
    }
    return { refusal: null, grant: verdict.grant }
  }
}
