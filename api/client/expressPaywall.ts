import { createHttpPaywall, type HttpPaywallOptions } from './httpPaywall.ts'

/** The used part of the request of Express 4 and 5. */
type ExpressRequest = {
  method: string
  /** Express applies the application's `trust proxy` setting. */
  protocol: string
  originalUrl: string
  headers: Record<string, string | string[] | undefined>
}
type ExpressResponse = {
  status(code: number): ExpressResponse
  set(headers: Record<string, string>): ExpressResponse
  json(body: unknown): unknown
  end(text?: string): unknown
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
  options: HttpPaywallOptions,
): (
  request: ExpressRequest,
  response: ExpressResponse,
  next: (error?: unknown) => void,
) => Promise<void> {
  const judge = createHttpPaywall(options)
  return async (request, response, next) => {
    const header = (name: string) => [request.headers[name]].flat()[0]
    const [path = '/'] = request.originalUrl.split(/[?#]/)
    try {
      const verdict = await judge({
        method: request.method,
        protocol: request.protocol,
        host: header('host') ?? '',
        path,
        header,
      })
      if (verdict.kind === 'preflight') {
        response.status(204).set(verdict.headers).end()
        return
      }
      if (verdict.kind === 'refused') {
        const { page, body } = verdict
        response.status(verdict.status).set(verdict.headers)
        if (page === null) response.json(body)
        else response.end(page)
        return
      }
      setLate(response, verdict.headers)
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
