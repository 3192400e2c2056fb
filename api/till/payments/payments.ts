import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { DESCRIPTION_MAX_LENGTH } from '../../../shared/till/description.ts'
import { reasonMessage } from '../../../shared/till/reasonMessage.ts'
import { USDC_NETWORKS } from '../../../shared/till/usdc.ts'
import {
  type DecodedPayment,
  decodePaymentHeader,
  encodePaymentResponse,
  PAYMENT_RESPONSE_HEADER,
  type PaymentPayload,
  type PaymentResponse,
  parsePaymentPayload,
  versionOf,
  type X402Reason,
} from '../../../shared/till/x402.ts'
import { operation } from '../../http/operation.ts'
import { projectOf } from '../../http/requestState.ts'
import type { Services } from '../../http/services.ts'
import { checkReachable } from '../endpoints/reachable.ts'
import { challengeFor, paymentRequiredHeader } from './challenge.ts'
import { grant, takeRedeemKey } from './grant.ts'
import { type Offer, readOffer } from './offer.ts'
import { ChallengeAnswer, EXAMPLE_CHALLENGE, EXAMPLE_GRANT, RedeemResult } from './paymentView.ts'
import { type Outcome, present } from './redeem.ts'

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
const Network = t.Union(
  Object.values(USDC_NETWORKS).flatMap(({ network, caip2 }) => [
    t.Literal(network),
    t.Literal(caip2),
  ]),
  { description: 'The connected chain, in the spelling of x402 version 1 or 2.' },
)
const Description = t.String({
  description: `Cut after ${DESCRIPTION_MAX_LENGTH} characters.`,
})

const ChallengeBody = t.Object({
  amount: Amount,
  resource: Resource,
  network: t.Optional(Network),
  description: t.Optional(Description),
  mimeType: t.Optional(t.String({ maxLength: 255 })),
})

const RedeemBody = t.Object({
  paymentHeader: t.Union([t.String(), t.Object({}, { additionalProperties: true })], {
    error: 'be the PAYMENT-SIGNATURE or X-PAYMENT header (base64) or the object it holds',
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
    400: 'An input is not valid, no active endpoint has that resource, or it was unreachable',
    403: 'Missing required scope: payments:accept, or payments are not enabled for this project',
  }
  return new Elysia()
    .post(
      '/v0/payments/challenge',
      async ({ request, body }) => {
        const offer = await readOffer(services, projectOf(request).projectId, body)
        await checkReachable(services, offer)
        const challenge = challengeFor(offer, { mimeType: body.mimeType })
        return { ...challenge, headers: await paymentRequiredHeader(services, challenge, null) }
      },
      {
        body: ChallengeBody,
        detail: operation({
          ...describe,
          summary: 'Build a payment challenge',
          description:
            'Answer the payer with status 402, with headers as headers and the rest as body: the body is the challenge of ' +
            'x402 version 1, the header PAYMENT-REQUIRED that of version 2.',
          requestExample: { amount: '0.01', resource: 'https://api.example.com/report' },
          success: {
            status: 200,
            description: 'The body and the headers of a 402 answer.',
            schema: ChallengeAnswer,
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
            description:
              'The verdict. With ok false, answer the payer 402 with requirement and headers, but for settlement_pending: ' +
              'then show the reason and no requirement.',
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
  if (outcome.kind !== 'settled') return refusal(services, offer, decoded, outcome)
  const x402Version = versionOf(decoded)
  const granted = await grant(services, outcome.payment, { key: taken?.key ?? null, x402Version })
  if (granted !== null) return granted
  const { payment } = outcome
  return refusal(services, offer, decoded, {
    kind: 'refused',
    stage: 'settle',
    reason: 'duplicate_settlement',
    payment,
  })
}

/** The answer `ok: false`. It names an existing payment, so that the caller can follow it. */
async function refusal(
  services: Services,
  offer: Offer,
  decoded: DecodedPayment,
  outcome: Exclude<Outcome, { kind: 'settled' }>,
) {
  const pending = outcome.kind === 'pending'
  const stage = pending ? 'settle' : outcome.stage
  const reason: X402Reason = pending ? 'settlement_pending' : outcome.reason
  const { payment } = outcome
  const network = USDC_NETWORKS[offer.seller.network]
  const detail = payment?.failureDetail ?? (decoded.ok ? null : decoded.detail)
  const message = reasonMessage(reason, { network, detail })
  const requirement = challengeFor(offer, { error: reason })
  return {
    ok: false as const,
    stage,
    reason,
    message,
    requirement,
    headers: {
      // While a payment is on its way there is nothing to sign: a wallet would pay again.
      ...(pending ? {} : await paymentRequiredHeader(services, requirement, reason)),
      ...(stage === 'settle' && decoded.ok
        ? failureHeader(decoded.payload, {
            transaction: payment?.txHash ?? '',
            network: network.network,
            errorReason: reason,
            errorMessage: message,
          })
        : {}),
    },
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

/** The header of a settlement that failed or goes on, in the version of the payment. */
function failureHeader(
  { x402Version, payload }: PaymentPayload,
  failure: Omit<PaymentResponse, 'success' | 'payer'>,
) {
  const response = { success: false, ...failure, payer: payload.authorization.from }
  return { [PAYMENT_RESPONSE_HEADER[x402Version]]: encodePaymentResponse(response, x402Version) }
}
