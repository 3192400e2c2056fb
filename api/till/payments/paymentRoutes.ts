import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { DESCRIPTION_MAX_LENGTH } from '../../../shared/till/description.ts'
import { USDC_NETWORKS } from '../../../shared/till/usdc.ts'
import { PAYMENT_HEADER_CHARS_MAX } from '../../../shared/till/x402.ts'
import { operation } from '../../http/operation.ts'
import { projectOf } from '../../http/requestState.ts'
import type { Services } from '../../http/services.ts'
import { checkReachable } from '../endpoints/reachable.ts'
import { challengeFor, paymentRequiredHeader } from './challenge.ts'
import { readOffer } from './offer.ts'
import { ChallengeAnswer, EXAMPLE_CHALLENGE, EXAMPLE_GRANT, RedeemResult } from './paymentDocs.ts'
import { redeem } from './redeem/redeem.ts'

const Amount = t.String({
  maxLength: 64,
  description: 'The amount is decimal USDC above 0, with at most 6 decimals.',
  examples: ['0.01'],
})
const Resource = t.String({
  maxLength: 4_096,
  description:
    'This is the full URL of the paid endpoint, as the payer sees it. The query and the fragment are ignored.',
  examples: ['https://api.example.com/report'],
})
const Network = t.Union(
  Object.values(USDC_NETWORKS).flatMap(({ network, caip2 }) => [
    t.Literal(network),
    t.Literal(caip2),
  ]),
  { description: 'This field names the connected chain, in the spelling of x402 version 1 or 2.' },
)
const Description = t.String({
  description: `The text is cut after ${DESCRIPTION_MAX_LENGTH} characters.`,
})

const ChallengeBody = t.Object({
  amount: Amount,
  resource: Resource,
  network: t.Optional(Network),
  description: t.Optional(Description),
  mimeType: t.Optional(t.String({ maxLength: 255 })),
})

const RedeemBody = t.Object({
  paymentHeader: t.Union(
    [
      t.String({ openapi: { maxLength: PAYMENT_HEADER_CHARS_MAX } }),
      t.Object({}, { additionalProperties: true }),
    ],
    {
      error: 'be the PAYMENT-SIGNATURE or X-PAYMENT header (base64) or the object it holds',
    },
  ),
  amount: Amount,
  resource: Resource,
  network: t.Optional(Network),
  description: t.Optional(Description),
})

/**
 * Serves the two steps with which a seller sells a resource: the payment challenge, and the redeeming of the payment.
 */
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
        services.offerCounts.record('challenges', offer)
        const { metadata } = offer
        const headers = await paymentRequiredHeader(services, { challenge, metadata }, null)
        return { ...challenge, headers }
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
