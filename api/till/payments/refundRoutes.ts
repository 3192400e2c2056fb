import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { formatUsdc, parseUsdc } from '../../../shared/till/usdc.ts'
import { listRefunds, type Refund, refundPayment } from '../../../sql/purse/transferOut.ts'
import { ApiError, badRequest, conflict, notFound } from '../../http/errors.ts'
import { keyOfAnother, readIdempotencyKey } from '../../http/idempotencyKey.ts'
import { operation } from '../../http/operation.ts'
import { identityOf, stateOf } from '../../http/requestState.ts'
import type { Services } from '../../http/services.ts'
import { Usdc } from '../../purse/purseDocs.ts'

const Params = t.Object({ paymentId: t.String({ minLength: 1, maxLength: 100 }) })

const RefundSchema = t.Object({
  refundId: t.String(),
  state: t.String({
    enum: ['open', 'spent', 'released'],
    description: 'spent: the chain shows the transfer. released: it can never be taken.',
  }),
  final: t.Boolean(),
  amountUsdc: t.String(),
  amountUsdcRaw: t.String(),
  txHash: t.Union([t.String(), t.Null()]),
})

const EXAMPLE = {
  refundId: 'pur_0a1b2c3d4e5f60718293a4b5',
  state: 'open',
  final: false,
  amountUsdc: '0.01',
  amountUsdcRaw: '10000',
  txHash: null,
}

const toView = ({ id, money, isFinal, amountAtomic, txHash }: Refund) => ({
  refundId: id,
  state: money,
  final: isFinal,
  amountUsdc: formatUsdc(amountAtomic),
  amountUsdcRaw: String(amountAtomic),
  txHash,
})

const describe = { tag: 'Payments', access: 'platform:manage' } as const

/** Refunds, for owners alone: a key that accepts payments must not give them back. */
export const refundRoutes = (services: Services) =>
  new Elysia({ prefix: '/v0/payments/:paymentId' })
    .post(
      '/refund',
      ({ request, params, body }) => refund(services, request, params.paymentId, body.amount),
      {
        params: Params,
        body: t.Object({ amount: Usdc('How much to pay back, in USDC.') }),
        detail: operation({
          ...describe,
          summary: 'Pay back a final payment, or a part of it',
          description:
            'The purse of the project must be the payee. The payer gets a transfer of its own, whose state is in refunds. ' +
            'Where another address is the payee, the error names the payer, and you pay back by hand.',
          idempotencyKey: true,
          requestExample: { amount: '0.01' },
          success: {
            status: 200,
            description: 'The refund, signed.',
            schema: RefundSchema,
            example: EXAMPLE,
          },
          errors: {
            404: 'Payment not found',
            409: 'Not final, refunded already, too little in the purse, or another payee',
          },
        }),
      },
    )
    .get(
      '/refunds',
      async ({ params }) => ({
        refunds: (await listRefunds(services.pool, params.paymentId)).map(toView),
      }),
      {
        params: Params,
        detail: operation({
          ...describe,
          summary: 'List the refunds of a payment, oldest first',
          success: {
            status: 200,
            description: 'The refunds.',
            schema: t.Object({ refunds: t.Array(RefundSchema) }),
            example: { refunds: [EXAMPLE] },
          },
        }),
      },
    )

/** @throws {ApiError} 400, 404, 409 */
async function refund(services: Services, request: Request, paymentId: string, amount: string) {
  const key = readIdempotencyKey(request.headers.get('idempotency-key'))
  if (key === null) {
    throw badRequest('Idempotency-Key must be there: a repeated request must not pay back twice')
  }
  const { pool } = services
  const { keyPrefix } = identityOf(request)
  const { requestId } = stateOf(request)
  const refunded = await refundPayment(
    pool,
    await services.keyring(pool),
    { keyPrefix, requestId },
    { paymentId, amountAtomic: readAmount(amount), key },
  )
  switch (refunded.kind) {
    case 'ok':
      return toView(refunded.refund)
    case 'not_found':
      throw notFound('Payment not found')
    case 'other_request':
      throw keyOfAnother()
    case 'by_hand':
      throw conflict(
        `The payee is not the purse of the project: refund by hand ${amount} USDC to ${refunded.payer}`,
      )
    default:
      throw conflict(REFUSED[refunded.kind])
  }
}

const REFUSED = {
  not_final: 'The payment is not final yet: ask again later',
  too_much: 'amount must be at most what the payment brought, less its refunds',
  insufficient_funds: 'The purse has too little that is free',
} as const

function readAmount(amount: string): bigint {
  try {
    return parseUsdc(amount)
  } catch (error) {
    throw new ApiError(400, 'bad_request', (error as Error).message)
  }
}
