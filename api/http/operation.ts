import { type TSchema, Type as t } from '@sinclair/typebox'
import type { Scope } from '../../shared/scopes.ts'
import type { Access } from '../docs/routeTable.ts'

/** The `detail` of a route: its callers and its answers. */
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
  /** Body size limit in bytes; the default if absent. */
  bodyMaxBytes?: number
  /** The field that allows a body above the default size. */
  largeFor?: string
  /** The scope that allows a body above the default size. */
  largeScope?: Scope
  /** Pages of every origin may read the answer: it is public, and GET alone. */
  cors?: true
  /** The body is an HTML form. */
  form?: true
  /** The body may be any JSON; the handler judges it. */
  anyJson?: true
  /** Takes an `Idempotency-Key`. */
  idempotencyKey?: true
  success: {
    status: number
    description: string
    schema?: TSchema
    example?: unknown
    /** Media type of the answer; application/json if absent. */
    contentType?: string
  }
  /** A second status: with the same body, or 204. */
  alsoAnswer?: { status: number; description: string }
  /** An example of the request body. */
  requestExample?: unknown
  /** Errors beside those of every route with that access. */
  errors?: Partial<Record<400 | 403 | 404 | 409 | 410 | 413 | 422 | 429, string>>
}

/**
 * The `detail` of a route. Elysia types it as an OpenAPI operation. The gate reads access and body limit; the OpenAPI
 * document reads the rest.
 */
export const operation = (described: Operation) => described as unknown as { summary: string }

/** `limit` of every list: 1–100; 50 if absent; more than 100 counts as 100. */
const Limit = t.String({
  pattern: '^[1-9][0-9]{0,19}$',
  error: 'be a whole number of at least 1',
  openapi: { type: 'integer', minimum: 1, default: 50 },
  description: 'Maximum results, at most 100; a larger value counts as 100.',
})

const PageToken = t.String({
  maxLength: 64,
  description: 'nextPageToken of a previous response, unchanged.',
})

/** The query of a paged list. */
export const PageQuery = t.Object({ limit: t.Optional(Limit), pageToken: t.Optional(PageToken) })

/** A part of a text that a list is searched for. */
export const PartOf = (what: string) =>
  t.Optional(
    t.String({
      minLength: 1,
      maxLength: 200,
      description: `Part of ${what}, in any case of letters.`,
    }),
  )

/** The order of a list. */
export const OrderQuery = t.Object({
  order: t.Optional(
    t.Union([t.Literal('newest'), t.Literal('oldest')], {
      description: 'Which comes first: newest if absent. A page token holds for one order.',
    }),
  ),
})

/** ISO 8601, UTC, with milliseconds. */
export const Time = t.String({ format: 'date-time', examples: ['2026-01-31T09:30:00.000Z'] })

/** The error body. */
export const ErrorBody = t.Object({
  error: t.String({ examples: ['bad_request'] }),
  message: t.String(),
  status: t.Integer(),
})
