import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { EVENT_SCOPES } from '../../shared/events/events.ts'
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
    description: 'Why it was given up without a further attempt.',
  }),
  createdAt: Time,
})

const WholeDeliverySchema = t.Composite([
  DeliverySchema,
  t.Object({
    attempts: t.Array(
      t.Object({
        number: t.Integer({ description: 'Counts over replays too.' }),
        at: Time,
        status: t.Union([t.Integer(), t.Null()], {
          description: 'HTTP status; null when no answer came.',
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
const FORBIDDEN = { 403: 'The key has no scope that hears of events' }
const missing = () => notFound('Delivery not found')

/** The log of webhook deliveries, and sending one again. */
export function webhookRoutes({ pool }: Services) {
  const whole = async (delivery: Delivery) => ({
    ...toView(delivery),
    attempts: (await listAttempts(pool, delivery.id)).map(toAttemptView),
  })
  const find = async (request: Request, id: string) => {
    const { projectId, events } = heardBy(request)
    const delivery = await findDelivery(pool, { projectId, id })
    if (delivery === null || !events.includes(delivery.event)) throw missing()
    return delivery
  }
  return new Elysia({ prefix: '/v0/webhooks/deliveries' })
    .get(
      '',
      async ({ request, query }) => {
        const { limit, cursor } = readPage(query)
        const { endpointId, webhookId, status } = query
        const found = await listDeliveries(pool, {
          ...heardBy(request),
          ...(endpointId === undefined ? {} : { endpointId }),
          ...(webhookId === undefined ? {} : { webhookId }),
          ...(status === undefined ? {} : { status }),
          limit: limit + 1,
          cursor,
        })
        const { page, next } = cutPage(found, limit, ({ createdAt }) => createdAt)
        return { deliveries: page.map(toView), count: page.length, ...next }
      },
      {
        query: ListQuery,
        detail: operation({
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
        }),
      },
    )
    .get(
      '/:deliveryId',
      async ({ request, params }) => {
        return whole(await find(request, params.deliveryId))
      },
      {
        params: Params,
        detail: operation({
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
        }),
      },
    )
    .post(
      '/:deliveryId/replay',
      async ({ request, params }) => {
        try {
          await find(request, params.deliveryId)
          const { projectId } = heardBy(request)
          const delivery = await replayDelivery(pool, { projectId, id: params.deliveryId })
          if (delivery === null) throw missing()
          return await whole(delivery)
        } catch (error) {
          if (!(error instanceof NoWebhookError)) throw error
          throw conflict('The webhook of this delivery is gone')
        }
      },
      {
        params: Params,
        detail: operation({
          ...describe,
          summary: 'Send a webhook again',
          description:
            'The same body and idempotency key to the same URL, signed with the current secret. A delivery that ended ' +
            'starts the schedule anew; of one that is pending the next attempt is made now, and the schedule goes on ' +
            'from there.',
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
        }),
      },
    )
}

/** Kinds of events, and the scope that may see their deliveries. */
const HEARD_WITH = Object.entries({ ...EVENT_SCOPES, 'payment.received': 'payments:accept' })

/** The project of a key, and the kinds of events that it may hear of. @throws {ApiError} 403 */
function heardBy(request: Request): { projectId: string; events: string[] } {
  const { projectId, scopes } = identityOf(request)
  const events = HEARD_WITH.flatMap(([event, scope]) => (scopes.includes(scope) ? [event] : []))
  if (projectId === null || events.length === 0) {
    throw new ApiError(403, 'forbidden', 'Missing required scope: payments:accept or mail:read')
  }
  return { projectId, events }
}
