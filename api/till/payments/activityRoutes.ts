import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { formatUsdc } from '../../../shared/till/usdc.ts'
import { type Income, readActivity } from '../../../sql/till/payments/activity.ts'
import { listSettled } from '../../../sql/till/payments/payments.ts'
import { operation, PageQuery, Time } from '../../http/operation.ts'
import { projectOf } from '../../http/requestState.ts'
import type { Services } from '../../http/services.ts'
import { EXAMPLE_PAYMENT, PaymentItem, toPaymentItem } from './paymentDocs.ts'
import { Days, readDays } from './paymentQuery.ts'

/**
 * Sets the maximum number of rows in one response of the income statistics. A seller can read all payments with GET
 * /v0/payments.
 */
const ROWS_MAX = 100

const Query = t.Object({
  days: Days,
  limit: t.Optional(
    t.String({
      pattern: PageQuery.properties.limit.pattern!,
      error: 'be a whole number of at least 1',
      openapi: { type: 'integer', minimum: 1, default: ROWS_MAX },
      description: `\`activity\` holds at most this many payments. A value above ${ROWS_MAX} counts as ${ROWS_MAX}.`,
    }),
  ),
})

const Sum = t.Object({
  count: t.Integer(),
  amountUsdc: t.String(),
  amountUsdcRaw: t.String({ description: 'The amount is in atomic units of 10^-6 USDC.' }),
})
const Nullable = t.Union([t.String(), t.Null()])
const ActivityAnswer = t.Composite([
  Sum,
  t.Object({
    since: Time,
    activity: t.Array(PaymentItem, {
      description: `The list holds at most \`limit\` of the latest settled payments. \`count\` is the number of all settled payments.`,
    }),
    byDay: t.Array(t.Composite([t.Object({ day: t.String({ format: 'date' }) }), Sum]), {
      description: 'The newest day comes first. Days without a payment are left out.',
    }),
    byEndpoint: t.Array(
      t.Composite([t.Object({ endpointId: Nullable, urlPattern: Nullable }), Sum]),
      {
        description:
          'The largest sum comes first. Null stands for payments without a registered endpoint.',
      },
    ),
    byPayer: t.Array(t.Composite([t.Object({ payerAddress: t.String() }), Sum]), {
      description: 'The list holds at most 100 payers, and the largest sum comes first.',
    }),
    own: t.Composite([Sum], {
      description:
        'These payments came from the `ownAddresses` of the project. No other sum counts these payments.',
    }),
    refunded: t.Composite([Sum], {
      description:
        'The chain shows these refunds in these days. No other sum is reduced by these refunds.',
    }),
  }),
])

const EXAMPLE_SUM = { count: 3, amountUsdc: '0.03', amountUsdcRaw: '30000' }

/** Serves the income of a seller. */
export function activityRoutes({ pool }: Services) {
  return new Elysia().get(
    '/v0/payments/activity',
    async ({ request, query }) => {
      const since = readDays(query.days)
      const limit = Math.min(Number(query.limit ?? ROWS_MAX), ROWS_MAX)
      const { projectId } = projectOf(request)
      const [{ total, ...parts }, latest] = await Promise.all([
        readActivity(pool, { projectId, since }),
        listSettled(pool, { projectId, since, limit }),
      ])
      return {
        since: since.toISOString(),
        ...toSum(total),
        activity: latest.map(toPaymentItem),
        byDay: parts.days.map(({ day, ...income }) => ({ day, ...toSum(income) })),
        byEndpoint: parts.endpoints.map(({ endpointId, urlPattern, ...income }) => ({
          endpointId,
          urlPattern,
          ...toSum(income),
        })),
        byPayer: parts.payers.map(({ payerAddress, ...income }) => ({
          payerAddress,
          ...toSum(income),
        })),
        own: toSum(parts.own),
        refunded: toSum(parts.refunded),
      }
    },
    {
      query: Query,
      detail: operation({
        summary: 'Sum what came in, by day, endpoint and payer',
        description: 'Counts settled payments, by the time of their settlement.',
        tag: 'Payments',
        access: 'payments:accept',
        success: {
          status: 200,
          description: 'The income.',
          schema: ActivityAnswer,
          example: {
            since: '2026-01-05T00:00:00.000Z',
            ...EXAMPLE_SUM,
            activity: [EXAMPLE_PAYMENT],
            byDay: [{ day: '2026-01-05', ...EXAMPLE_SUM }],
            byEndpoint: [
              {
                endpointId: 'se_0a1b2c3d4e5f60718293a4b5',
                urlPattern: 'https://api.example.com/report',
                ...EXAMPLE_SUM,
              },
            ],
            byPayer: [{ payerAddress: EXAMPLE_PAYMENT.payerAddress, ...EXAMPLE_SUM }],
            own: { count: 0, amountUsdc: '0', amountUsdcRaw: '0' },
            refunded: { count: 0, amountUsdc: '0', amountUsdcRaw: '0' },
          },
        },
      }),
    },
  )
}

const toSum = ({ count, amountAtomic }: Income) => ({
  count,
  amountUsdc: formatUsdc(amountAtomic),
  amountUsdcRaw: amountAtomic.toString(),
})
