import type { AnyElysia } from 'elysia'
import type { Scope } from '../../shared/scopes.ts'

/**
 * What a route asks of its caller: nothing, any key, a key with this scope, or a session of the console. It stands in the
 * route's `detail`, from where the gate, the OpenAPI document and the pages read it.
 */
export type Access = 'public' | 'key' | 'console' | Scope

export type Route = {
  method: string
  /** With `:name` parameters. */
  path: string
  access: Access
  /** Body size limit in bytes; the default when left out. */
  bodyMaxBytes?: number
  /** Only a body with this field may be larger than the default. */
  largeFor?: string
  /** The body may be any JSON; the handler judges it. */
  anyJson?: true
  /** Of the console: the browser asks for it as the content of a frame, without our header. */
  framed?: true
}

/** How a path and a method are matched: by a route, by a path that lacks the method, or by nothing. */
export type Match =
  | { kind: 'route'; route: Route }
  | { kind: 'method'; allowed: string[] }
  | { kind: 'none' }

/** The routes of an application, found by path before Elysia sees the request. */
export class RouteTable {
  readonly #byLength = new Map<number, { pattern: (string | null)[]; route: Route }[]>()

  constructor(app: AnyElysia) {
    for (const { method, path, hooks } of app.routes) {
      const detail = (hooks?.detail ?? {}) as Partial<Route>
      if (detail.access === undefined)
        throw new Error(`${method} ${path} does not say who may call it`)
      const pattern = segments(path).map((part) => (part.startsWith(':') ? null : part))
      const entries = this.#byLength.get(pattern.length) ?? []
      const { access, bodyMaxBytes, largeFor, anyJson, framed } = detail
      entries.push({
        pattern,
        route: {
          method,
          path,
          access,
          ...(bodyMaxBytes === undefined ? {} : { bodyMaxBytes }),
          ...(largeFor === undefined ? {} : { largeFor }),
          ...(anyJson === undefined ? {} : { anyJson }),
          ...(framed === undefined ? {} : { framed }),
        },
      })
      this.#byLength.set(pattern.length, entries)
    }
  }

  /** Finds the route; a literal segment wins over a parameter, as in Elysia's own router. */
  match(method: string, path: string): Match {
    const parts = segments(path)
    const fitting = (this.#byLength.get(parts.length) ?? [])
      .filter(({ pattern }) =>
        pattern.every((want, n) => (want === null ? parts[n] !== '' : want === parts[n])),
      )
      .sort((a, b) => parameters(a.pattern) - parameters(b.pattern))
    const best = fitting.filter(
      (entry) => parameters(entry.pattern) === parameters(fitting[0]!.pattern),
    )
    const wanted = method === 'HEAD' ? 'GET' : method
    const hit = best.find(({ route }) => route.method === wanted)
    if (hit !== undefined) return { kind: 'route', route: hit.route }
    if (best.length === 0) return { kind: 'none' }
    const allowed = best.map(({ route }) => route.method)
    return { kind: 'method', allowed: allowed.includes('GET') ? ['HEAD', ...allowed] : allowed }
  }
}

const segments = (path: string): string[] => path.split('/').slice(1)
const parameters = (pattern: (string | null)[]): number =>
  pattern.filter((part) => part === null).length
