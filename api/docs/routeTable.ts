import type { TSchema } from '@sinclair/typebox'
import type { AnyElysia } from 'elysia'
import type { Role } from '../../shared/people/roles.ts'
import type { Scope } from '../../shared/scopes.ts'

/**
 * Describes what a caller needs for a route: nothing, any API key, an API key with the named scope, or a console
 * session. The `detail` of the route holds this requirement. The gate (the checks before every handler), the OpenAPI
 * document and the documentation pages read it there.
 */
export type Access = 'public' | 'key' | 'console' | Scope

export type Route = {
  method: string
  /** Holds the path of a route with its `:name` parameters. */
  path: string
  access: Access
  /** Lists the names of the query parameters that a route accepts. */
  query: readonly string[]
  /** Holds the schema of the request body. */
  body?: TSchema
  /** Tells whether the request body may hold fields that the schema of the body does not name. */
  openBody?: true
  /**
   * Holds the maximum number of bytes of a request body for the route. Without this field, the default limit applies.
   */
  bodyMaxBytes?: number
  /**
   * Names a field of the request body. Only a request body with the named field may be larger than the default limit.
   */
  largeFor?: string
  /** Names a scope of API keys. Only an API key with the named scope allows a body larger than the default limit. */
  largeScope?: Scope
  /** Tells whether web pages of every origin may read the response. */
  cors?: true
  /** Tells whether the request body may be any JSON value. The handler of the route checks the JSON value. */
  anyJson?: true
  /** Tells whether the request body is an HTML form. */
  form?: true | 'pairs'
  /** Tells whether a person opens the route in a browser, and therefore gets errors as HTML pages. */
  page?: true
  /**
   * Tells whether the browser loads the console route in a frame. If it does, the request lacks the header that the
   * console page adds to its other requests.
   */
  framed?: true
  /**
   * Names the lowest role that may use this console route. If the path contains `:projectId`, the person needs the role
   * in the project with this id.
   */
  role?: Role
}

/**
 * Describes the result of a search for a route: the route, a path that has no route for the requested method, or no
 * path at all.
 */
export type Match =
  | { kind: 'route'; route: Route }
  | { kind: 'method'; allowed: string[] }
  | { kind: 'none' }

/**
 * Holds the table of all routes of an application. The gate (the checks before every handler) finds a request's route
 * in it before Elysia handles the request.
 */
export class RouteTable {
  readonly #byLength = new Map<number, { pattern: (string | null)[]; route: Route }[]>()

  constructor(app: AnyElysia) {
    for (const { method, path, hooks } of app.routes) {
      const detail = (hooks?.detail ?? {}) as Partial<Route>
      if (detail.access === undefined)
        throw new Error(`${method} ${path} has no access in its detail`)
      const pattern = segments(path).map((part) => (part.startsWith(':') ? null : part))
      const entries = this.#byLength.get(pattern.length) ?? []
      const { access, bodyMaxBytes, largeFor, largeScope, cors, anyJson, openBody, framed, form } =
        detail
      const { page, role } = detail
      const body = hooks?.body as TSchema | undefined
      if (access === 'console' && role === undefined)
        throw new Error(`${method} ${path} has no role in its detail`)
      entries.push({
        pattern,
        route: {
          method,
          path,
          access,
          query: Object.keys(hooks?.query?.properties ?? {}),
          ...(body === undefined ? {} : { body }),
          ...(openBody === undefined ? {} : { openBody }),
          ...(bodyMaxBytes === undefined ? {} : { bodyMaxBytes }),
          ...(largeFor === undefined ? {} : { largeFor }),
          ...(largeScope === undefined ? {} : { largeScope }),
          ...(cors === undefined ? {} : { cors }),
          ...(anyJson === undefined ? {} : { anyJson }),
          ...(framed === undefined ? {} : { framed }),
          ...(form === undefined ? {} : { form }),
          ...(page === undefined ? {} : { page }),
          ...(role === undefined ? {} : { role }),
        },
      })
      this.#byLength.set(pattern.length, entries)
    }
  }

  /**
   * Returns the HTTP method with which web pages of every origin may request a path. Null means that only pages of this
   * service may request the path.
   */
  openMethod(path: string): 'GET' | 'POST' | null {
    for (const method of ['GET', 'POST'] as const) {
      const match = this.match(method, path)
      if (match.kind === 'route' && match.route.cors === true) return method
    }
    return null
  }

  /**
   * Finds the route for a method and a path. A literal path segment takes precedence over a path parameter, as in
   * Elysia's router.
   */
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
