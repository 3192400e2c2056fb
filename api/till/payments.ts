import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import {
  decodePaymentHeader,
  parsePaymentPayload,
  type X402Reason,
} from '../../shared/till/x402.ts'
import { operation } from '../http/operation.ts'
import { projectOf } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'
import { grant, takeRedeemKey } from './grant.ts'
import { type Offer, readOffer } from './offer.ts'
import { Challenge, EXAMPLE_CHALLENGE, EXAMPLE_GRANT, RedeemResult } from './paymentView.ts'
import { challengeFor, type Outcome, present } from './redeem.ts'

const Amount = t.String({
  maxLength: 64,
  description: 'Decimal USDC with at most 6 decimals, above 0.',
  examples: ['0.01'],
})
const Resource = t.String({
  maxLength: 4_096,
  description:
    'Full URL of the paid endpoint as the payer sees it; query and fragment count for nothing.',
  examples: ['https://api.example.com/report'],
})
const Network = t.Union([t.Literal('base'), t.Literal('base-sepolia')])
const Description = t.String({ maxLength: 500 })

const ChallengeBody = t.Object({
  amount: Amount,
  resource: Resource,
  network: t.Optional(Network),
  description: t.Optional(Description),
  mimeType: t.Optional(t.String({ maxLength: 255 })),
})

const RedeemBody = t.Object({
  paymentHeader: t.Union([t.String(), t.Object({}, { additionalProperties: true })], {
    error: 'be the X-PAYMENT header (base64) or the object it holds',
  }),
  amount: Amount,
  resource: Resource,
  network: t.Optional(Network),
  description: t.Optional(Description),
})

/** The two steps of a seller: challenge and redeem. */
export function paymentRoutes(services: Services) {
  const describe = { tag: 'Payments', access: 'payments:accept' } as const
  const errors = {
    400: 'An input is not valid, or no active endpoint has that resource',
    403: 'Missing required scope: payments:accept, or payments are not enabled for this project',
  }
  return new Elysia()
    .post(
      '/v0/payments/challenge',
      async ({ request, body }) => {
        const offer = await readOffer(services, projectOf(request).projectId, body)
        return challengeFor(offer, body.mimeType === undefined ? {} : { mimeType: body.mimeType })
      },
      {
        body: ChallengeBody,
        detail: operation({
          ...describe,
          summary: 'Build a payment challenge',
          description: 'Answer the payer with status 402 and this body.',
          requestExample: { amount: '0.01', resource: 'https://api.example.com/report' },
          success: {
            status: 200,
            description: 'The body of a 402 answer (x402 version 1).',
            schema: Challenge,
            example: EXAMPLE_CHALLENGE,
          },
          errors,
        }),
      },
    )
    .post(
      '/v0/payments/redeem',
      async ({ request, body }) => redeem(services, projectOf(request).projectId, request, body),
      {
        body: RedeemBody,
        detail: operation({
          ...describe,
          summary: 'Redeem a payment',
          idempotencyKey: true,
          description:
            'Settles the payment on chain and answers once the money has moved. A payment is granted once: repeat the ' +
            'Idempotency-Key of a call to get its answer again. On settlement_pending, ask again with the same header ' +
            'rather than for a new payment.',
          requestExample: {
            paymentHeader: 'eyJ4NDAyVmVyc2lvbiI6MSwi…',
            amount: '0.01',
            resource: 'https://api.example.com/report',
          },
          success: {
            status: 200,
            description: 'The verdict. With ok false, answer the payer 402 with requirement.',
            schema: RedeemResult,
            example: EXAMPLE_GRANT,
          },
          errors,
        }),
      },
    )
}

type RedeemInput = {
  paymentHeader: string | object
  amount: string
  resource: string
  network?: string
  description?: string
}

async function redeem(services: Services, projectId: string, request: Request, body: RedeemInput) {
  const deadlineMs = performance.now() + services.config.settlementWaitMs
  const offer = await readOffer(services, projectId, body)
  const taken = await takeRedeemKey(services, projectId, request.headers.get('idempotency-key'), {
    paymentHeader: body.paymentHeader,
    resource: offer.resource,
    amount: offer.amountAtomic.toString(),
  })
  if (taken?.stored != null) return taken.stored
  const decoded =
    typeof body.paymentHeader === 'string'
      ? decodePaymentHeader(body.paymentHeader)
      : parsePaymentPayload(body.paymentHeader)
  const outcome = await present(services, offer, decoded, deadlineMs)
  if (outcome.kind !== 'settled') return refusal(offer, outcome)
  const granted = await grant(services, outcome.payment, taken?.key ?? null)
  if (granted !== null) return granted
  const { payment } = outcome
  return refusal(offer, {
    kind: 'refused',
    stage: 'settle',
    reason: 'duplicate_settlement',
    payment,
  })
}

/** The answer `ok: false`. It names an existing payment, so that the caller can follow it. */
function refusal(offer: Offer, outcome: Exclude<Outcome, { kind: 'settled' }>) {
  const pending = outcome.kind === 'pending'
  const reason: X402Reason = pending ? 'settlement_pending' : outcome.reason
  const { payment } = outcome
  return {
    ok: false as const,
    stage: pending ? ('settle' as const) : outcome.stage,
    reason,
    requirement: challengeFor(offer, { error: reason }),
    ...(payment === null
      ? {}
      : {
          paymentId: payment.id,
          paymentInId: payment.id,
          ...(payment.txHash === null ? {} : { txHash: payment.txHash }),
          ...(payment.failureDetail === null ? {} : { detail: payment.failureDetail }),
        }),
  }
}
