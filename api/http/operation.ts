import { type TSchema, Type as t } from '@sinclair/typebox'
import type { Scope } from '../../shared/scopes.ts'
import type { Access } from '../docs/routeTable.ts'

/** Describes the `detail` object of a route: who may call the route, and its responses. */
export type Operation = {
  summary: string
  description?: string
  tag:
    | 'Messages'
    | 'Threads'
    | 'Drafts'
    | 'Vault'
    | 'Logs'
    | 'Sellers'
    | 'Purse'
    | 'Payments'
    | 'Webhooks'
    | 'Events'
    | 'Rules'
    | 'Identity'
    | 'Platform'
    | 'Service'
  access: Access
  /**
   * Holds the maximum number of bytes of the request body for the route. Without this field, the default limit applies.
   */
  bodyMaxBytes?: number
  /**
   * Names a field of the request body. Only a request body with the named field may be larger than the default limit.
   */
  largeFor?: string
  /** Names a scope of API keys. Only an API key with the named scope allows a body larger than the default limit. */
  largeScope?: Scope
  /**
   * Tells whether web pages of every origin may read the response. Only a GET route with a public response may set this
   * field.
   */
  cors?: true
  /**
   * Tells whether the request body is an HTML form. With the value `pairs`, the handler also gets repeated fields of
   * the form.
   */
  form?: true | 'pairs'
  /** Tells whether a person opens the route in a browser, and therefore gets errors as HTML pages. */
  page?: true
  /** Tells whether the request body may be any JSON value. The handler of the route checks the JSON value. */
  anyJson?: true
  /**
   * Tells whether the request body may hold fields that the schema of the body does not name, because another standard
   * defines the body.
   */
  openBody?: true
  /** Tells whether the route accepts an `Idempotency-Key`, or even requires one. */
  idempotencyKey?: true | 'required'
  success: {
    status: number
    description: string
    schema?: TSchema
    example?: unknown
    /** Holds the media type of the route's response. The default media type of a response is application/json. */
    contentType?: string
  }
  /**
   * Describes a second success status of the route. Its response has the same body as the first, or no body if the
   * status is 204.
   */
  alsoAnswer?: { status: number; description: string }
  /** Holds an example of the request body for the documentation. */
  requestExample?: unknown
  /** Describes the errors of this route. It omits the errors that all routes with the same access have in common. */
  errors?: Partial<Record<400 | 401 | 403 | 404 | 409 | 410 | 413 | 422 | 429, string>>
}

/**
 * Returns the settings of a route as Elysia's `detail`, whose type is an OpenAPI operation. The gate (the checks before
 * every handler) reads the access and the body limit from the `detail`. The OpenAPI document takes the other fields.
 */
export const operation = (described: Operation) => described as unknown as { summary: string }

/**
 * Describes the query parameter `limit` of every list, which is a number from 1 to 100, and 50 by default. A `limit`
 * above 100 counts as 100.
 */
const Limit = t.String({
  pattern: '^[1-9][0-9]{0,19}$',
  error: 'be a whole number of at least 1',
  openapi: { type: 'integer', minimum: 1, default: 50 },
  description: 'The page holds at most this many results. A value above 100 counts as 100.',
})

const PageToken = t.String({
  maxLength: 64,
  description: 'Send the `nextPageToken` of the previous response unchanged.',
})

/** Describes the query of a paged list. */
export const PageQuery = t.Object({ limit: t.Optional(Limit), pageToken: t.Optional(PageToken) })

/** Describes a query parameter that filters a list by text. Each returned row contains this text. */
export const PartOf = (what: string) =>
  t.Optional(
    t.String({
      minLength: 1,
      maxLength: 200,
      description: `The text must occur in ${what}. Upper and lower case are the same.`,
    }),
  )

/** Describes the query parameter for the order of a list. */
export const OrderQuery = t.Object({
  order: t.Optional(
    t.Union([t.Literal('newest'), t.Literal('oldest')], {
      description:
        'The order says which entry comes first. The newest comes first by default. A page token is valid for one order.',
    }),
  ),
})

/** Describes a time in ISO 8601, in UTC with milliseconds. */
export const Time = t.String({ format: 'date-time', examples: ['2026-01-31T09:30:00.000Z'] })

/** Describes the body of an error response. */
export const ErrorBody = t.Object({
  error: t.String({ examples: ['bad_request'] }),
  message: t.String(),
  status: t.Integer(),
})
