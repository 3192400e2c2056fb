import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import {
  findPayment,
  latestDeliveries,
  listPaymentDeliveries,
  listPayments,
} from '../../../sql/till/payments/payments.ts'
import { notFound } from '../../http/errors.ts'
import { operation, PageQuery } from '../../http/operation.ts'
import { cutPage, readPage } from '../../http/page.ts'
import { projectOf } from '../../http/requestState.ts'
import type { Services } from '../../http/services.ts'
import {
  EXAMPLE_PAYMENT,
  ListedPayment,
  toPaymentItem,
  toWholePayment,
  WholePayment,
} from './paymentDocs.ts'
import { PAYMENT_FILTERS, readFilter } from './paymentQuery.ts'

/**
 * Matches a word such as `intents`, which the API of another payment service uses in its paths. Such a word is no
 * payment id, because the ids of this service contain an underscore.
 */
const WORD = /^[a-z]+(?:-[a-z]+)*$/i

const Params = t.Object({ paymentId: t.String({ minLength: 1, maxLength: 100 }) })

/** Serves the routes that list and read the payments of a project. */
export function paymentRecordRoutes({ pool, reads }: Services) {
  const describe = { tag: 'Payments', access: 'payments:accept' } as const
  return new Elysia()
    .get(
      '/v0/payments',
      async ({ request, query }) => {
        const { limit, cursor } = readPage(query)
        const { projectId } = projectOf(request)
        const filter = readFilter(query)
        const [found, deliveries] = await reads.run(request, async (server) => {
          const list = { projectId, limit: limit + 1, cursor, filter }
          const payments = await listPayments(server.pool, list)
          const ids = payments.map(({ id }) => id)
          return [payments, await latestDeliveries(server.pool, ids)] as const
        })
        const { page, next } = cutPage(found, limit, ({ createdAt }) => createdAt)
        const payments = page.map((payment) => ({
          ...toPaymentItem(payment),
          latestDelivery: deliveries.get(payment.id) ?? null,
        }))
        return { payments, count: page.length, ...next }
      },
      {
        query: t.Composite([PageQuery, t.Object(PAYMENT_FILTERS)]),
        detail: operation({
          ...describe,
          summary: 'List payments, newest first',
          success: {
            status: 200,
            description: 'One page of payments.',
            schema: t.Object({
              payments: t.Array(ListedPayment),
              count: t.Integer(),
              nextPageToken: t.Optional(t.String()),
            }),
            example: { payments: [{ ...EXAMPLE_PAYMENT, latestDelivery: null }], count: 1 },
          },
        }),
      },
    )
    .get(
      '/v0/payments/:paymentId',
      async ({ request, params }) => {
        if (WORD.test(params.paymentId)) throw notFound()
        const payment = await findPayment(pool, params.paymentId)
        if (payment === null || payment.projectId !== projectOf(request).projectId) {
          throw notFound('Payment not found')
        }
        return toWholePayment(payment, await listPaymentDeliveries(pool, payment.id))
      },
      {
        params: Params,
        detail: operation({
          ...describe,
          summary: 'Get a payment',
          success: {
            status: 200,
            description: 'The payment, with its receipt and webhook deliveries.',
            schema: WholePayment,
            example: {
              ...EXAMPLE_PAYMENT,
              authorizationNonce: `0x${'5a'.repeat(32)}`,
              failureDetail: null,
              finalizedAt: null,
              deliveries: [],
            },
          },
          errors: { 404: 'Payment not found' },
        }),
      },
    )
}
