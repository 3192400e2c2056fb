import { type Static, Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { EVENT_SCOPES } from '../../shared/events/events.ts'
import type { Pool } from '../../sql/db.ts'
import {
  type Attempt,
  type Delivery,
  findDelivery,
  listAttempts,
  listDeliveries,
  NoWebhookError,
  replayDelivery,
} from '../../sql/events/deliveryLog.ts'
import { ApiError, conflict, notFound } from '../http/errors.ts'
import { operation, PageQuery, Time } from '../http/operation.ts'
import { cutPage, readPage } from '../http/page.ts'
import { identityOf } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'

const Status = t.Union(
  (['pending', 'delivered', 'aborted', 'exhausted'] as const).map((status) => t.Literal(status)),
)
const NullableString = t.Union([t.String(), t.Null()])

const ListQuery = t.Composite([
  PageQuery,
  t.Object({
    endpointId: t.Optional(t.String({ minLength: 1, maxLength: 100 })),
    webhookId: t.Optional(t.String({ minLength: 1, maxLength: 100 })),
    status: t.Optional(Status),
  }),
])
const Params = t.Object({ deliveryId: t.String({ minLength: 1, maxLength: 100 }) })

const DeliverySchema = t.Object({
  deliveryId: t.String(),
  endpointId: NullableString,
  webhookId: NullableString,
  messageId: NullableString,
  paymentId: NullableString,
  event: t.String(),
  idempotencyKey: t.String(),
  url: t.String(),
  status: Status,
  attemptCount: t.Integer(),
  nextAttemptAt: t.Union([Time, t.Null()]),
  error: t.Union([t.String(), t.Null()], {
    description: 'Why the delivery was aborted, if it was aborted between attempts.',
  }),
  createdAt: Time,
})

const WholeDeliverySchema = t.Composite([
  DeliverySchema,
  t.Object({
    attempts: t.Array(
      t.Object({
        number: t.Integer({ description: 'Counts all attempts, across replays.' }),
        at: Time,
        status: t.Union([t.Integer(), t.Null()], {
          description: 'HTTP status; null without an answer.',
        }),
        ms: t.Integer(),
        error: NullableString,
        response: t.Union([t.String(), t.Null()], { description: 'The first 1 KB of the answer.' }),
      }),
    ),
  }),
])

const EXAMPLE_DELIVERY = {
  deliveryId: 'whd_0a1b2c3d4e5f60718293a4b5',
  endpointId: 'se_0a1b2c3d4e5f60718293a4b5',
  webhookId: null,
  messageId: null,
  paymentId: 'pay_0a1b2c3d4e5f60718293a4b5',
  event: 'payment.received',
  idempotencyKey: 'whk_1b2c3d4e5f60718293a4b50a',
  url: 'https://api.example.com/hooks/purser',
  status: 'delivered',
  attemptCount: 1,
  nextAttemptAt: null,
  error: null,
  createdAt: '2026-01-05T09:30:00.000Z',
}
const EXAMPLE_WHOLE = {
  ...EXAMPLE_DELIVERY,
  attempts: [
    {
      number: 1,
      at: '2026-01-05T09:30:00.004Z',
      status: 200,
      ms: 41,
      error: null,
      response: 'ok',
    },
  ],
}

/** A delivery as lists show it. */
const toView = (delivery: Delivery) => ({
  deliveryId: delivery.id,
  endpointId: delivery.endpointId,
  webhookId: delivery.webhookId,
  messageId: delivery.event.startsWith('message.') ? delivery.subjectId : null,
  paymentId: delivery.event.startsWith('message.') ? null : delivery.subjectId,
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

const describe = { tag: 'Webhooks', access: 'key' } as const
const FORBIDDEN = { 403: 'The key has neither mail:read nor payments:accept' }
const missing = () => notFound('Delivery not found')

const LIST = operation({
  ...describe,
  summary: 'List webhook deliveries, newest first',
  success: {
    status: 200,
    description: 'One page of deliveries.',
    schema: t.Object({
      deliveries: t.Array(DeliverySchema),
      count: t.Integer(),
      nextPageToken: t.Optional(t.String()),
    }),
    example: { deliveries: [EXAMPLE_DELIVERY], count: 1 },
  },
  errors: FORBIDDEN,
})

const GET = operation({
  ...describe,
  summary: 'Get a webhook delivery with its attempts',
  description: 'Shows the latest 100 attempts.',
  success: {
    status: 200,
    description: 'The delivery.',
    schema: WholeDeliverySchema,
    example: EXAMPLE_WHOLE,
  },
  errors: { ...FORBIDDEN, 404: 'Delivery not found' },
})

const REPLAY = operation({
  ...describe,
  summary: 'Send a webhook again',
  description:
    'Sends the same body and idempotency key to the same URL, signed with the current secret. A delivery that has ended ' +
    'starts its retry schedule anew. A pending delivery is attempted now and continues its schedule.',
  success: {
    status: 200,
    description: 'The delivery, pending again.',
    schema: WholeDeliverySchema,
    example: { ...EXAMPLE_WHOLE, status: 'pending' },
  },
  errors: {
    ...FORBIDDEN,
    404: 'Delivery not found',
    409: 'The endpoint or the webhook is deleted',
  },
})

/** The log of webhook deliveries, and their replay. */
export function deliveryRoutes({ pool, reads }: Services) {
  return new Elysia({ prefix: '/v0/webhooks/deliveries' })
    .get(
      '',
      ({ request, query }) => reads.run(request, (server) => list(server.pool, request, query)),
      {
        query: ListQuery,
        detail: LIST,
      },
    )
    .get(
      '/:deliveryId',
      async ({ request, params }) =>
        withAttempts(pool, await find(pool, request, params.deliveryId)),
      { params: Params, detail: GET },
    )
    .post(
      '/:deliveryId/replay',
      ({ request, params }) => replay(pool, request, params.deliveryId),
      { params: Params, detail: REPLAY },
    )
}

async function list(pool: Pool, request: Request, query: Static<typeof ListQuery>) {
  const { limit, cursor } = readPage(query)
  const { endpointId, webhookId, status } = query
  const found = await listDeliveries(pool, {
    ...visibleTo(request),
    ...(endpointId === undefined ? {} : { endpointId }),
    ...(webhookId === undefined ? {} : { webhookId }),
    ...(status === undefined ? {} : { status }),
    limit: limit + 1,
    cursor,
  })
  const { page, next } = cutPage(found, limit, ({ createdAt }) => createdAt)
  return { deliveries: page.map(toView), count: page.length, ...next }
}

async function find(pool: Pool, request: Request, id: string): Promise<Delivery> {
  const { projectId, events } = visibleTo(request)
  const delivery = await findDelivery(pool, { projectId, id })
  if (delivery === null || !events.includes(delivery.event)) throw missing()
  return delivery
}

async function replay(pool: Pool, request: Request, id: string) {
  try {
    await find(pool, request, id)
    const { projectId } = visibleTo(request)
    const delivery = await replayDelivery(pool, { projectId, id })
    if (delivery === null) throw missing()
    return await withAttempts(pool, delivery)
  } catch (error) {
    if (!(error instanceof NoWebhookError)) throw error
    throw conflict('The webhook of this delivery is gone')
  }
}

const withAttempts = async (pool: Pool, delivery: Delivery) => ({
  ...toView(delivery),
  attempts: (await listAttempts(pool, delivery.id)).map(toAttemptView),
})

/** The scope that shows the deliveries of each event type. */
const SCOPE_OF = Object.entries({ ...EVENT_SCOPES, 'payment.received': 'payments:accept' })

/** The project of a key, and the event types that its scopes cover. @throws {ApiError} 403 */
function visibleTo(request: Request): { projectId: string; events: string[] } {
  const { projectId, scopes } = identityOf(request)
  const events = SCOPE_OF.flatMap(([event, scope]) => (scopes.includes(scope) ? [event] : []))
  if (projectId === null || events.length === 0) {
    throw new ApiError(403, 'forbidden', 'Missing required scope: payments:accept or mail:read')
  }
  return { projectId, events }
}
