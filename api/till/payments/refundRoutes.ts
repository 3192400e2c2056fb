import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { Hex } from 'viem'
import { formatUsdc, parseUsdc } from '../../../shared/till/usdc.ts'
import {
  claimRefund,
  type HandRefundChange,
  listRefunds,
  REFUNDS_MAX,
  type Refund,
  refundPayment,
  withdrawRefund,
} from '../../../sql/purse/refunds/refunds.ts'
import { badRequest, conflict, notFound } from '../../http/errors.ts'
import { keyOfAnother, readIdempotencyKey } from '../../http/input/idempotencyKey.ts'
import { operation } from '../../http/operation.ts'
import { identityOf, stateOf } from '../../http/requestState.ts'
import type { Services } from '../../http/services.ts'
import { Usdc } from '../../purse/purseDocs.ts'

const Params = t.Object({ paymentId: t.String({ minLength: 1, maxLength: 100 }) })
const RefundParams = t.Composite([
  Params,
  t.Object({ refundId: t.String({ minLength: 1, maxLength: 100 }) }),
])

const Nullable = <Schema extends ReturnType<typeof t.String>>(schema: Schema) =>
  t.Union([schema, t.Null()])

const RefundSchema = t.Object({
  refundId: t.String(),
  state: t.String({
    enum: ['by_hand', 'checking', 'open', 'spent', 'released'],
    description:
      '`by_hand` means that you send the money yourself and then name the transaction. `checking` means that a worker looks for your transaction on the chain. `open` means that the purse has signed the transfer. `spent` means that the chain shows the transfer. `released` means that the refund was withdrawn, or that nobody can ever take it.',
  }),
  final: t.Boolean(),
  amountUsdc: t.String(),
  amountUsdcRaw: t.String(),
  payTo: t.String({ description: 'This address is the payer of the payment.' }),
  txHash: Nullable(t.String()),
  reason: t.Union([t.String(), t.Null()], {
    description: 'The reason says why the last transaction that you named does not count.',
  }),
  receipt: t.Union([t.Unknown(), t.Null()], {
    description:
      'The signed receipt holds `refundOf`. It appears once the chain shows the transfer.',
  }),
})

const EXAMPLE = {
  refundId: 'pur_0a1b2c3d4e5f60718293a4b5',
  state: 'open',
  final: false,
  amountUsdc: '0.01',
  amountUsdcRaw: '10000',
  payTo: '0x70997970c51812dc3a010c7d01b50e0d17dc79c8',
  txHash: null,
  reason: null,
  receipt: null,
}

const toRefundView = (refund: Refund) => ({
  refundId: refund.id,
  state: refund.state,
  final: refund.isFinal,
  amountUsdc: formatUsdc(refund.amountAtomic),
  amountUsdcRaw: String(refund.amountAtomic),
  payTo: refund.payTo,
  txHash: refund.txHash,
  reason: refund.reason,
  receipt: refund.receipt === null ? null : (JSON.parse(refund.receipt) as unknown),
})

const describe = { tag: 'Payments', access: 'platform:manage' } as const
const HAND = { ...EXAMPLE, refundId: 'rfd_0a1b2c3d4e5f60718293a4b5' }
const HAND_ERRORS = {
  404: 'Payment or refund not found',
  409: 'The purse makes this refund, the chain has proved it, or it is on another chain',
} as const

/**
 * Serves the routes with which the owner of a project makes and reads refunds. Agents cannot use these routes, because
 * an API key for the acceptance of payments gives no right to refund.
 */
export const refundRoutes = (services: Services) =>
  new Elysia({ prefix: '/v0/payments/:paymentId' })
    .post(
      '/refund',
      ({ request, params, body }) => refund(services, request, params.paymentId, body.amount),
      {
        params: Params,
        body: t.Object({ amount: Usdc('The refund pays back this amount, in USDC.') }),
        detail: operation({
          ...describe,
          summary: 'Pay back a final payment, or a part of it',
          description:
            'The purse of the project pays back where it is the payee. Else the refund is by_hand: send payTo the amount from the payee’s ' +
            'address, and name the transaction. Refunds never exceed the payment.',
          idempotencyKey: 'required',
          requestExample: { amount: '0.01' },
          success: {
            status: 200,
            description: 'The refund.',
            schema: RefundSchema,
            example: EXAMPLE,
          },
          errors: {
            404: 'Payment not found',
            409: 'Not final, refunded already, on another chain, too little in the purse, or its gas of the day is used up',
          },
        }),
      },
    )
    .get(
      '/refunds',
      async ({ params }) => ({
        refunds: (await listRefunds(services.pool, params.paymentId)).map(toRefundView),
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
    .put(
      '/refunds/:refundId',
      async ({ request, params, body }) => {
        const txHash = body.txHash as Hex
        return changed(
          services,
          params,
          await claimRefund(services.pool, actorOf(request), { ...params, txHash }),
        )
      },
      {
        params: RefundParams,
        body: t.Object({
          txHash: t.String({
            pattern: '^0x[0-9a-fA-F]{64}$',
            error: 'be 0x and 64 hexadecimal digits',
            description: 'This transaction pays the refund.',
          }),
        }),
        detail: operation({
          ...describe,
          summary: 'Name the transaction of a refund by hand',
          description:
            'A worker looks for a transfer of exactly the amount, from the payee to the payer, that counts for no other refund.',
          requestExample: { txHash: `0x${'ab'.repeat(32)}` },
          success: {
            status: 200,
            description: 'The refund; the chain is asked.',
            schema: RefundSchema,
            example: { ...HAND, state: 'checking', txHash: `0x${'ab'.repeat(32)}` },
          },
          errors: HAND_ERRORS,
        }),
      },
    )
    .delete(
      '/refunds/:refundId',
      async ({ request, params }) =>
        changed(services, params, await withdrawRefund(services.pool, actorOf(request), params)),
      {
        params: RefundParams,
        detail: operation({
          ...describe,
          summary: 'Withdraw a refund by hand that was not made',
          success: {
            status: 200,
            description: 'The refund.',
            schema: RefundSchema,
            example: { ...HAND, state: 'released' },
          },
          errors: HAND_ERRORS,
        }),
      },
    )

function actorOf(request: Request) {
  const { keyPrefix } = identityOf(request)
  const { requestId } = stateOf(request)
  return { keyPrefix, requestId }
}

async function changed(
  { pool }: Services,
  { paymentId, refundId }: { paymentId: string; refundId: string },
  change: HandRefundChange,
) {
  switch (change) {
    case 'not_found':
      throw notFound('Refund not found')
    case 'not_by_hand':
      throw conflict('The purse of the project makes this refund')
    case 'other_chain':
      throw conflict(REFUSED.other_chain)
    case 'proved':
      throw conflict('The chain has proved this refund, or it was withdrawn')
    default:
      return toRefundView((await listRefunds(pool, paymentId)).find(({ id }) => id === refundId)!)
  }
}

/** Makes a refund. @throws {ApiError} 400 for an invalid request, 404 for an unknown payment, 409 for a conflict. */
async function refund(services: Services, request: Request, paymentId: string, amount: string) {
  const key = readIdempotencyKey(request.headers.get('idempotency-key'))
  if (key === null) {
    throw badRequest('Idempotency-Key must be there: a repeated request must not pay back twice')
  }
  const { pool } = services
  const refunded = await refundPayment(pool, await services.keyring(pool), actorOf(request), {
    paymentId,
    amountAtomic: readAmount(amount),
    key,
    deniedPayees: services.config.chain.deniedPayees,
    dailyGas: services.config.limits.dailyGas,
  })
  switch (refunded.kind) {
    case 'ok':
      return toRefundView(refunded.refund)
    case 'not_found':
      throw notFound('Payment not found')
    case 'other_request':
      throw keyOfAnother()
    default:
      throw conflict(REFUSED[refunded.kind])
  }
}

const REFUSED = {
  not_final: 'The payment is not final yet: ask again later',
  too_much: 'amount must be at most what the payment brought, less its refunds',
  too_many: `A payment has at most ${REFUNDS_MAX} refunds`,
  other_chain: 'The payment was made on another chain than the one of the service',
  insufficient_funds: 'The purse has too little that is free',
  too_much_gas:
    'The purse has used up its gas of the day: ask again tomorrow, or ask the operator for more dailyGas',
  payee_denied: 'The operator of the service forbids payments to the address of the payer',
} as const

function readAmount(amount: string): bigint {
  try {
    return parseUsdc(amount)
  } catch (error) {
    throw badRequest(`amount: ${(error as Error).message}`)
  }
}
