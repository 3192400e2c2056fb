import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { paidHeader } from '../../../shared/till/paidHeader.ts'
import { findPayment } from '../../../sql/till/payments/payments.ts'
import { ApiError, notFound } from '../../http/errors.ts'
import { operation } from '../../http/operation.ts'
import type { Services } from '../../http/services.ts'

const Params = t.Object({
  projectId: t.String({ minLength: 1, maxLength: 100 }),
  paymentId: t.String({ minLength: 1, maxLength: 100 }),
})

/**
 * Serves the route that shows an owner the payment header that a payer signed. A caller with an API key of the project
 * cannot read it, because agents may not see a payer's signature.
 */
export const paidHeaderRoutes = ({ pool }: Services) =>
  new Elysia().get(
    '/v0/platform/projects/:projectId/payments/:paymentId/header',
    async ({ params }) => {
      const payment = await findPayment(pool, params.paymentId)
      if (payment === null || payment.projectId !== params.projectId) {
        throw notFound('Payment not found')
      }
      // An empty signature means that the service has deleted it after the retention time for payment details.
      if ((payment.signature as string) === '') {
        throw new ApiError(410, 'expired', 'The signature of this payment is no longer kept')
      }
      return { paymentId: payment.id, ...paidHeader(payment), isRebuilt: true }
    },
    {
      params: Params,
      detail: operation({
        tag: 'Platform',
        access: 'platform:manage',
        summary: 'Show the x402 header that carried a payment',
        description:
          'Written again from the stored authorization and its signature. The other parts of a header are not stored, so the text ' +
          'differs from the one that came. The chain takes an authorization once.',
        success: {
          status: 200,
          description: 'The header.',
          schema: t.Object({
            paymentId: t.String(),
            name: t.String({ examples: ['PAYMENT-SIGNATURE', 'X-PAYMENT'] }),
            value: t.String(),
            isRebuilt: t.Literal(true),
          }),
          example: {
            paymentId: 'pay_0a1b2c3d4e5f60718293a4b5',
            name: 'PAYMENT-SIGNATURE',
            value: 'eyJ4NDAyVmVyc2lvbiI6Miwi…',
            isRebuilt: true,
          },
        },
        errors: {
          404: 'Payment not found',
          410: 'The signature is no longer kept; the payment is',
        },
      }),
    },
  )
