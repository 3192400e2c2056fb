import { type TSchema, Type as t } from '@sinclair/typebox'
import type { Access } from '../docs/routeTable.ts'

/** What a route says of itself beside its input schemas: who may call it, and what it answers. */
export type Operation = {
  summary: string
  description?: string
  tag:
    | 'Messages'
    | 'Threads'
    | 'Vault'
    | 'Logs'
    | 'Sellers'
    | 'Payments'
    | 'Webhooks'
    | 'Events'
    | 'Rules'
    | 'Identity'
    | 'Platform'
    | 'Service'
  access: Access
  /** Body size limit in bytes; the default when left out. */
  bodyMaxBytes?: number
  /** Only a body with this field may be larger than the default. */
  largeFor?: string
  /** The body may be any JSON; the handler judges it. */
  anyJson?: true
  /** Takes an `Idempotency-Key`. */
  idempotencyKey?: true
  success: {
    status: number
    description: string
    schema?: TSchema
    example?: unknown
    /** Of the answer; application/json when left out. */
    contentType?: string
  }
  /** An example of the request body. */
  requestExample?: unknown
  /** Errors beside those every route of that access has. */
  errors?: Partial<Record<400 | 403 | 404 | 409 | 410 | 413 | 422 | 429, string>>
}

/**
 * The `detail` of a route. Elysia types it as an OpenAPI operation; ours is read by the gate (access, body limit) and by
 * the OpenAPI document, which fills in what follows from them.
 */
export const operation = (described: Operation) => described as unknown as { summary: string }

/** `limit` of every list: 1–100, 50 when left out; more than 100 counts as 100. */
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

/** The query of a list that is paged. */
export const PageQuery = t.Object({ limit: t.Optional(Limit), pageToken: t.Optional(PageToken) })

/** ISO 8601, UTC, with milliseconds. */
export const Time = t.String({ format: 'date-time', examples: ['2026-01-31T09:30:00.000Z'] })

/** The error body of the specification. */
export const ErrorBody = t.Object({
  error: t.String({ examples: ['bad_request'] }),
  message: t.String(),
  status: t.Integer(),
})
