import { createHttpPaywall, type HttpPaywallOptions } from './httpPaywall.ts'

/** `refusal` is the answer to an unpaid request; `headers` belong on a paid one. */
type Judged = { refusal: Response } | { refusal: null; headers: Record<string, string> }

/** A paywall for servers that answer with a `Response`. */
export function createWebPaywall(
  options: HttpPaywallOptions,
): (request: Pick<Request, 'method' | 'url' | 'headers'>) => Promise<Judged> {
  const judge = createHttpPaywall(options)
  return async ({ method, url, headers }) => {
    const { protocol, host, pathname: path } = new URL(url)
    const verdict = await judge({
      method,
      protocol: protocol.slice(0, -1),
      host,
      path,
      header: (name) => headers.get(name),
    })
    if (verdict.kind === 'paid') return { refusal: null, headers: verdict.headers }
    if (verdict.kind === 'preflight') {
      return { refusal: new Response(null, { status: 204, headers: verdict.headers }) }
    }
    const { status, body, page } = verdict
    const answer = { status, headers: verdict.headers }
    return { refusal: page === null ? Response.json(body, answer) : new Response(page, answer) }
  }
}
