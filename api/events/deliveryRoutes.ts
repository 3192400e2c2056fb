import type { Static } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { EVENT_SCOPES, EVENT_TYPES } from '../../shared/events/events.ts'
import type { Pool } from '../../sql/db.ts'
import {
  type Attempt,
  countDeliveries,
  type Delivery,
  type DeliveryCount,
  type DeliveryFilter,
  findDelivery,
  listAttempts,
  listDeliveries,
  NoWebhookError,
  replayDelivery,
  type UrlReader,
} from '../../sql/events/deliveryLog.ts'
import { ApiError, badRequest, conflict, notFound } from '../http/errors.ts'
import { readRange } from '../http/input/queryTime.ts'
import { readFiltered } from '../http/limits/searches.ts'
import { cutPage, readPage } from '../http/page.ts'
import { identityOf, partyOf, stateOf } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'
import {
  COUNTED_MAX,
  DeliveryFilterQuery,
  DeliveryListQuery,
  DeliveryParams,
  getOperation,
  listOperation,
  replayOperation,
  statsOperation,
} from './deliveryDocs.ts'

const missing = () => notFound('Delivery not found')

/** Matches the event types of webhook deliveries that concern a message. */
const OF_MESSAGE = /^(?:message|attachment)\./

/** Returns a webhook delivery in the form that the log of deliveries shows. */
const toView = (delivery: Delivery) => ({
  deliveryId: delivery.id,
  endpointId: delivery.endpointId,
  webhookId: delivery.webhookId,
  messageId: OF_MESSAGE.test(delivery.event) ? delivery.subjectId : null,
  paymentId: delivery.event.startsWith('payment.') ? delivery.subjectId : null,
  subjectId: delivery.subjectId,
  event: delivery.event,
  idempotencyKey: delivery.idempotencyKey,
  url: delivery.url,
  status: delivery.status,
  attemptCount: delivery.attemptCount,
  nextAttemptAt: delivery.nextAttemptAt?.toISOString() ?? null,
  error: delivery.error,
  createdAt: delivery.createdAt.toISOString(),
})

const toAttemptView = (attempt: Attempt) => ({
  number: attempt.number,
  at: attempt.startedAt.toISOString(),
  status: attempt.statusCode,
  ms: attempt.endedAt.getTime() - attempt.startedAt.getTime(),
  error: attempt.error,
  response: attempt.responsePrefix,
})

/** Serves the log of webhook deliveries, and the route that sends a webhook delivery again. */
export function deliveryRoutes({ pool, reads }: Services) {
  return new Elysia({ prefix: '/v0/webhooks/deliveries' })
    .get('', ({ request, query }) => reads.run(request, (server) => list(server, request, query)), {
      query: DeliveryListQuery,
      detail: listOperation,
    })
    .get(
      '/stats',
      ({ request, query }) => reads.run(request, (server) => count(server, request, query)),
      { query: DeliveryFilterQuery, detail: statsOperation },
    )
    .get(
      '/:deliveryId',
      async ({ request, params }) =>
        withAttempts(pool, await find(pool, request, params.deliveryId)),
      { params: DeliveryParams, detail: getOperation },
    )
    .post(
      '/:deliveryId/replay',
      ({ request, params }) => replay(pool, request, params.deliveryId),
      { params: DeliveryParams, detail: replayOperation },
    )
}

type Server = Pick<Services, 'pool' | 'searches'>

/**
 * Reads the filters of the log of webhook deliveries. @throws {ApiError} 400 for an invalid filter, 403 for a missing
 * scope.
 */
function readFilter(request: Request, query: Static<typeof DeliveryFilterQuery>): DeliveryFilter {
  const { endpointId, webhookId, messageId, paymentId, event, status, q } = query
  if (messageId !== undefined && paymentId !== undefined) {
    throw badRequest('messageId must stand without paymentId: no delivery is of both')
  }
  const subjectId = messageId ?? paymentId
  const { projectId, events, urlsFor } = visibleTo(request)
  return {
    projectId,
    urlsFor,
    events: event === undefined ? events : events.filter((name) => name === event),
    ...readRange(query),
    ...(endpointId === undefined ? {} : { endpointId }),
    ...(webhookId === undefined ? {} : { webhookId }),
    ...(subjectId === undefined ? {} : { subjectId }),
    ...(status === undefined
      ? {}
      : { statuses: status === 'failed' ? (['aborted', 'exhausted'] as const) : [status] }),
    ...(q === undefined ? {} : { url: q }),
    // A person with the role viewer sees only the hosts of webhooks. Therefore a search by this person must not reveal
    // the rest of a URL.
    ...(stateOf(request).session?.person.role === 'viewer' ? { hostsOnly: true } : {}),
  }
}

/**
 * Reads the log of webhook deliveries. A search by event or by webhook URL may read every delivery, so it waits until
 * it is the caller's turn.
 */
const read = <Result>(
  server: Server,
  request: Request,
  { event, q }: Static<typeof DeliveryFilterQuery>,
  work: (db: Pool) => Promise<Result>,
): Promise<Result> => readFiltered(server, partyOf(request)!, [event, q], work)

async function list(server: Server, request: Request, query: Static<typeof DeliveryListQuery>) {
  const { limit, cursor } = readPage(query)
  const filter = readFilter(request, query)
  const { order = 'newest' } = query
  const found = await read(server, request, query, (db) =>
    listDeliveries(db, { ...filter, order, cursor, limit: limit + 1 }),
  )
  const { page, next } = cutPage(found, limit, ({ createdAt }) => createdAt)
  return { deliveries: page.map(toView), count: page.length, ...next }
}

const FAILED: readonly string[] = ['aborted', 'exhausted']

function sums(counts: readonly DeliveryCount[]) {
  const sum = (fits: (status: string) => boolean) =>
    counts.reduce((total, one) => total + (fits(one.status) ? one.deliveries : 0), 0)
  return {
    delivered: sum((status) => status === 'delivered'),
    pending: sum((status) => status === 'pending'),
    failed: sum((status) => FAILED.includes(status)),
  }
}

async function count(server: Server, request: Request, query: Static<typeof DeliveryFilterQuery>) {
  const filter = readFilter(request, query)
  const found = await read(server, request, query, (db) =>
    countDeliveries(db, { ...filter, limit: COUNTED_MAX }),
  )
  const whole = sums(found)
  const total = whole.delivered + whole.pending + whole.failed
  const ended = whole.delivered + whole.failed
  const receivers = Map.groupBy(found, ({ endpointId, webhookId }) => endpointId ?? webhookId)
  return {
    total,
    complete: total < COUNTED_MAX,
    ...whole,
    failureRate: ended === 0 ? null : whole.failed / ended,
    byReceiver: [...receivers.values()].map((counts) => ({
      endpointId: counts[0]!.endpointId,
      webhookId: counts[0]!.webhookId,
      ...sums(counts),
    })),
  }
}

async function find(pool: Pool, request: Request, id: string): Promise<Delivery> {
  const { projectId, events, urlsFor } = visibleTo(request)
  const delivery = await findDelivery(pool, { projectId, id, urlsFor })
  if (delivery === null || !events.includes(delivery.event)) throw missing()
  return delivery
}

async function replay(pool: Pool, request: Request, id: string) {
  try {
    const { url } = await find(pool, request, id)
    const { projectId } = visibleTo(request)
    const delivery = await replayDelivery(pool, { projectId, id })
    if (delivery === null) throw missing()
    return await withAttempts(pool, { ...delivery, url })
  } catch (error) {
    if (!(error instanceof NoWebhookError)) throw error
    throw conflict('The webhook of this delivery is gone')
  }
}

const withAttempts = async (pool: Pool, delivery: Delivery) => ({
  ...toView(delivery),
  attempts: (await listAttempts(pool, delivery.id)).map(toAttemptView),
})

/** Names the scope that an API key needs to see the webhook deliveries of each event type. */
const SCOPE_OF = Object.entries({ ...EVENT_SCOPES, 'payment.received': 'payments:accept' })

/**
 * Returns the project of an API key, and the event types that its scopes cover. The field `urlsFor` tells for which
 * webhooks the caller sees the whole URL. For all other webhooks, the caller sees only the host of the URL, as in the
 * list of webhooks. @throws {ApiError} 403 if the key covers no event type.
 */
function visibleTo(request: Request): { projectId: string; events: string[]; urlsFor: UrlReader } {
  const { projectId, scopes } = identityOf(request)
  const events = SCOPE_OF.flatMap(([event, scope]) => (scopes.includes(scope) ? [event] : []))
  if (projectId === null || events.length === 0) {
    throw new ApiError(403, 'forbidden', 'Missing required scope: payments:accept or mail:read')
  }
  const readsAll = EVENT_TYPES.every((type) => events.includes(type))
  return { projectId, events, urlsFor: readsAll ? 'all' : events }
}
