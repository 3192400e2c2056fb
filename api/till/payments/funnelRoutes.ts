import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { formatUsdc } from '../../../shared/till/usdc.ts'
import {
  ENDPOINTS_SHOWN_MAX,
  type FunnelSums,
  readFunnel,
} from '../../../sql/till/payments/funnel.ts'
import { operation, Time } from '../../http/operation.ts'
import { projectOf } from '../../http/requestState.ts'
import type { Services } from '../../http/services.ts'
import { Days, EndpointId, readDays } from './paymentQuery.ts'

const Sums = t.Object({
  challenges: t.Integer({ description: 'The service gave this many 402 answers.' }),
  refused: t.Integer({
    description: 'The service refused this many payments before a claim. No money moved.',
  }),
  claimed: t.Integer({ description: 'This many payments had a valid signature.' }),
  settled: t.Integer(),
  failed: t.Integer(),
  amountUsdc: t.String({ description: 'The settled payments have this sum.' }),
  amountUsdcRaw: t.String(),
})
const Nullable = t.Union([t.String(), t.Null()])
const Answer = t.Object({
  since: Time,
  total: Sums,
  byDay: t.Array(t.Composite([t.Object({ day: t.String({ format: 'date' }) }), Sums]), {
    description: 'The newest day comes first. Days without an entry are left out.',
  }),
  byEndpoint: t.Array(
    t.Composite([t.Object({ endpointId: Nullable, urlPattern: Nullable }), Sums]),
    {
      description: `The list holds at most ${ENDPOINTS_SHOWN_MAX} endpoints, and the endpoint with the most challenges comes first. Null stands for challenges without a registered endpoint.`,
    },
  ),
})

const EXAMPLE_SUMS = {
  ...{ challenges: 40, refused: 2, claimed: 9, settled: 8, failed: 1 },
  ...{ amountUsdc: '0.08', amountUsdcRaw: '80000' },
}

/**
 * Serves the conversion statistics of each endpoint. The statistics hold the number of payment challenges, and the
 * number of payments that followed these challenges.
 */
export const funnelRoutes = ({ pool }: Services) =>
  new Elysia().get(
    '/v0/payments/funnel',
    async ({ request, query }) => {
      const since = readDays(query.days)
      const { projectId } = projectOf(request)
      const endpointId = query.endpointId ?? null
      const { total, days, endpoints } = await readFunnel(pool, { projectId, since, endpointId })
      return {
        since: since.toISOString(),
        total: toSums(total),
        byDay: days.map(({ day, ...sums }) => ({ day, ...toSums(sums) })),
        byEndpoint: endpoints.map(({ endpointId: id, urlPattern, ...sums }) => ({
          endpointId: id,
          urlPattern,
          ...toSums(sums),
        })),
      }
    },
    {
      query: t.Object({ days: Days, endpointId: EndpointId }),
      detail: operation({
        summary: 'Count challenges and payments, by day and endpoint',
        description:
          'Payments count for the day of their claim. Counts of challenges come from the memory of the processes: they are up to ten ' +
          'seconds late, and a crash can lose the last ten seconds. Middleware of your own makes its challenges itself: they are not counted.',
        tag: 'Payments',
        access: 'payments:accept',
        success: {
          status: 200,
          description: 'The funnel.',
          schema: Answer,
          example: {
            since: '2026-01-05T00:00:00.000Z',
            total: EXAMPLE_SUMS,
            byDay: [{ day: '2026-01-05', ...EXAMPLE_SUMS }],
            byEndpoint: [
              {
                endpointId: 'se_0a1b2c3d4e5f60718293a4b5',
                urlPattern: 'https://api.example.com/report',
                ...EXAMPLE_SUMS,
              },
            ],
          },
        },
      }),
    },
  )

const toSums = ({ settledAtomic, ...sums }: FunnelSums) => ({
  ...sums,
  amountUsdc: formatUsdc(settledAtomic),
  amountUsdcRaw: settledAtomic.toString(),
})
