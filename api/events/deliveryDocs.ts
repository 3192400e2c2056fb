import { Type as t } from '@sinclair/typebox'
import { RangeQuery } from '../http/input/queryTime.ts'
import { OrderQuery, operation, PageQuery, PartOf, Time } from '../http/operation.ts'

const STATUSES = ['pending', 'delivered', 'aborted', 'exhausted'] as const
const Status = t.Union(STATUSES.map((status) => t.Literal(status)))
const NullableString = t.Union([t.String(), t.Null()])

const Id = (description: string, maxLength = 100) =>
  t.Optional(t.String({ minLength: 1, maxLength, description }))

/** Describes the filters of the log of webhook deliveries. */
export const DeliveryFilterQuery = t.Composite([
  RangeQuery,
  t.Object({
    endpointId: Id('The list holds only deliveries to this endpoint of a seller.'),
    webhookId: Id('The list holds only deliveries to this webhook of the project.'),
    messageId: Id('The list holds only deliveries about this message.', 1_100),
    paymentId: Id('The list holds only deliveries about this payment.'),
    event: Id('The list holds only deliveries of this event type, such as message.received.'),
    status: t.Optional(
      t.Union(
        [...STATUSES, 'failed' as const].map((status) => t.Literal(status)),
        {
          description:
            'The list holds only deliveries in this state. `failed` stands for aborted and exhausted.',
        },
      ),
    ),
    q: PartOf('the URL'),
  }),
])
export const DeliveryListQuery = t.Composite([PageQuery, OrderQuery, DeliveryFilterQuery])
export const DeliveryParams = t.Object({ deliveryId: t.String({ minLength: 1, maxLength: 100 }) })

const DeliverySchema = t.Object({
  deliveryId: t.String(),
  endpointId: NullableString,
  webhookId: NullableString,
  messageId: NullableString,
  paymentId: NullableString,
  subjectId: t.Union([t.String(), t.Null()], {
    description:
      'The id of the object that the event is about, such as a message, a payment, a purchase or a use of a secret.',
  }),
  event: t.String(),
  idempotencyKey: t.String(),
  url: t.String(),
  status: Status,
  attemptCount: t.Integer(),
  nextAttemptAt: t.Union([Time, t.Null()]),
  error: t.Union([t.String(), t.Null()], {
    description: 'This text says why the delivery was aborted between attempts.',
  }),
  createdAt: Time,
})

const WholeDeliverySchema = t.Composite([
  DeliverySchema,
  t.Object({
    attempts: t.Array(
      t.Object({
        number: t.Integer({
          description: 'The number counts the attempts of all replays together.',
        }),
        at: Time,
        status: t.Union([t.Integer(), t.Null()], {
          description: 'The answer had this HTTP status. Null means that no answer came.',
        }),
        ms: t.Integer(),
        error: NullableString,
        response: t.Union([t.String(), t.Null()], {
          description: 'This text is the first 1 KB of the answer.',
        }),
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
  subjectId: 'pay_0a1b2c3d4e5f60718293a4b5',
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

const describe = { tag: 'Webhooks', access: 'key' } as const
const FORBIDDEN = { 403: 'The key has neither mail:read nor payments:accept' }

export const listOperation = operation({
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

export const getOperation = operation({
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

export const replayOperation = operation({
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

const Counts = {
  delivered: t.Integer(),
  pending: t.Integer(),
  failed: t.Integer({
    description: 'This number counts deliveries that were aborted or exhausted.',
  }),
}

/**
 * Sets the maximum number of webhook deliveries that one call counts, because a project may have millions of
 * deliveries.
 */
export const COUNTED_MAX = 100_000

export const statsOperation = operation({
  ...describe,
  summary: 'Count webhook deliveries',
  description:
    'Takes the filters of the list. failureRate is the share of failed among those that have ended.',
  success: {
    status: 200,
    description: 'The number of deliveries, whole and by endpoint or webhook.',
    schema: t.Object({
      total: t.Integer(),
      complete: t.Boolean({
        description: `False means that only the newest ${COUNTED_MAX} rows were counted.`,
      }),
      ...Counts,
      failureRate: t.Union([t.Number({ minimum: 0, maximum: 1 }), t.Null()], {
        description: 'Null means that no delivery has ended.',
      }),
      byReceiver: t.Array(
        t.Object({ endpointId: NullableString, webhookId: NullableString, ...Counts }),
      ),
    }),
    example: {
      total: 4,
      complete: true,
      delivered: 3,
      pending: 0,
      failed: 1,
      failureRate: 0.25,
      byReceiver: [
        {
          endpointId: 'se_0a1b2c3d4e5f60718293a4b5',
          webhookId: null,
          delivered: 3,
          pending: 0,
          failed: 1,
        },
      ],
    },
  },
  errors: FORBIDDEN,
})
