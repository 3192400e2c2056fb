import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { parsePaidResource, ResourceUrlError } from '../../shared/till/resourceUrl.ts'
import { USDC_NETWORKS } from '../../shared/till/usdc.ts'
import {
  type DecodedPayment,
  type PaymentRequirements,
  parsePaymentPayload,
  paymentRequirementsSchema,
  type X402Reason,
} from '../../shared/till/x402.ts'
import { findEndpointByResource } from '../../sql/till/endpoints.ts'
import { isSoldByAnother } from '../../sql/till/rivalEndpoints.ts'
import { operation } from '../http/operation.ts'
import { projectOf } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'
import { askChain } from './askChain.ts'
import { grant } from './grant.ts'
import { loadSeller, type Offer } from './offer.ts'
import { claimOf, present, verify } from './redeem.ts'
import { limitReached } from './settlementLimits.ts'

/** Loose on purpose: sellers' middleware expects an x402 reason for a wrong payment, not a 400. */
const Body = t.Object({
  x402Version: t.Optional(t.Unknown()),
  paymentPayload: t.Unknown(),
  paymentRequirements: t.Unknown(),
})

const VerifyResult = t.Object({
  isValid: t.Boolean(),
  invalidReason: t.Optional(t.String()),
  payer: t.Optional(t.String()),
})

const SettleResult = t.Object({
  success: t.Boolean(),
  errorReason: t.Optional(t.String()),
  transaction: t.String(),
  network: t.String(),
  payer: t.Optional(t.String()),
})

const EXAMPLE_REQUEST = {
  x402Version: 1,
  paymentPayload: { x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload: {} },
  paymentRequirements: { scheme: 'exact', network: 'base-sepolia', maxAmountRequired: '10000' },
}

const PAYER = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'

/** The facilitator of x402 version 1. Unmodified seller middleware settles here. */
export function facilitatorRoutes(services: Services) {
  const describe = { tag: 'Payments', access: 'payments:accept' } as const
  return new Elysia({ prefix: '/v0/x402' })
    .post(
      '/verify',
      ({ request, body }) => verifyFace(services, projectOf(request).projectId, body),
      {
        body: Body,
        detail: operation({
          ...describe,
          summary: 'Verify a payment (x402 facilitator)',
          requestExample: EXAMPLE_REQUEST,
          success: {
            status: 200,
            description: 'The verdict; the chain was asked, nothing was sent.',
            schema: VerifyResult,
            example: { isValid: true, payer: PAYER },
          },
        }),
      },
    )
    .post(
      '/settle',
      ({ request, body }) => settleFace(services, projectOf(request).projectId, body),
      {
        body: Body,
        detail: operation({
          ...describe,
          summary: 'Settle a payment (x402 facilitator)',
          description:
            'payTo must be that of the project. The resource need not be registered; if it is, its webhook is called.',
          requestExample: EXAMPLE_REQUEST,
          success: {
            status: 200,
            description: 'The outcome.',
            schema: SettleResult,
            example: {
              success: true,
              transaction: `0x${'4e'.repeat(32)}`,
              network: 'base-sepolia',
              payer: PAYER,
            },
          },
        }),
      },
    )
    .get(
      '/supported',
      async ({ request }) => {
        const { network } = await loadSeller(services.pool, projectOf(request).projectId)
        return { kinds: [{ x402Version: 1, scheme: 'exact', network }] }
      },
      {
        detail: operation({
          ...describe,
          summary: 'What can be settled (x402 facilitator)',
          success: {
            status: 200,
            description: 'The connected chain.',
            schema: t.Object({
              kinds: t.Array(
                t.Object({ x402Version: t.Integer(), scheme: t.String(), network: t.String() }),
              ),
            }),
            example: { kinds: [{ x402Version: 1, scheme: 'exact', network: 'base-sepolia' }] },
          },
        }),
      },
    )
}

type FaceInput = { paymentPayload: unknown; paymentRequirements: unknown }

/** The seller's requirement as an offer, or the x402 reason why it is refused. */
type FaceOffer = { ok: true; offer: Offer } | { ok: false; reason: X402Reason; network: string }

async function readFaceOffer(
  services: Services,
  projectId: string,
  body: FaceInput,
): Promise<FaceOffer> {
  const seller = await loadSeller(services.pool, projectId)
  const refuse = (reason: X402Reason): FaceOffer => ({ ok: false, reason, network: seller.network })
  const parsed = paymentRequirementsSchema.safeParse(body.paymentRequirements)
  if (!parsed.success) return refuse('invalid_payment_requirements')
  const wanted: PaymentRequirements = parsed.data
  if (wanted.scheme !== 'exact') return refuse('unsupported_scheme')
  if (wanted.network !== seller.network) return refuse('invalid_network')
  const sameRecipient = wanted.payTo.toLowerCase() === seller.payTo.toLowerCase()
  const { usdcAddress } = USDC_NETWORKS[seller.network]
  const isUsdc = wanted.asset.toLowerCase() === usdcAddress.toLowerCase()
  if (!isUsdc || !sameRecipient) return refuse('invalid_payment_requirements')
  if (BigInt(wanted.maxAmountRequired) < BigInt(services.config.minPriceAtomic)) {
    return refuse('invalid_payment_requirements')
  }
  const resource = readResource(wanted.resource)
  if (resource === null) return refuse('invalid_payment_requirements')
  const { url, matchKey } = resource
  if (matchKey !== null && (await isSoldByAnother(services.pool, projectId, matchKey))) {
    return refuse('resource_of_another_project')
  }
  const endpoint =
    matchKey === null ? null : await findEndpointByResource(services.pool, projectId, matchKey)
  const offer: Offer = {
    seller,
    endpointId: endpoint?.id ?? null,
    matchKey: endpoint === null ? null : matchKey,
    resource: url,
    amountAtomic: BigInt(wanted.maxAmountRequired),
    description: wanted.description,
  }
  return { ok: true, offer }
}

function readResource(text: string): ReturnType<typeof parsePaidResource> | null {
  try {
    return parsePaidResource(text)
  } catch (error) {
    if (error instanceof ResourceUrlError) return null
    throw error
  }
}

const payerOf = (decoded: DecodedPayment) =>
  decoded.ok ? { payer: decoded.payload.payload.authorization.from } : {}

async function verifyFace(services: Services, projectId: string, body: FaceInput) {
  const deadlineMs = performance.now() + services.config.settlementWaitMs
  const decoded = parsePaymentPayload(body.paymentPayload)
  const read = await readFaceOffer(services, projectId, body)
  const refuse = (invalidReason: X402Reason) => ({
    isValid: false,
    invalidReason,
    ...payerOf(decoded),
  })
  if (!read.ok) return refuse(read.reason)
  if (!decoded.ok) return refuse(decoded.reason)
  const verdict = await verify(read.offer, decoded.payload)
  if (verdict.kind === 'invalid') return refuse(verdict.reason)
  const limit = await limitReached(services, projectId)
  if (limit !== null) return refuse(limit)
  const claim = claimOf(read.offer, decoded.payload, verdict)
  const answer = await askChain(services, { claim, verdict, claims: false, deadlineMs })
  return answer.ok ? { isValid: true, ...payerOf(decoded) } : refuse(answer.reason)
}

async function settleFace(services: Services, projectId: string, body: FaceInput) {
  const deadlineMs = performance.now() + services.config.settlementWaitMs
  const decoded = parsePaymentPayload(body.paymentPayload)
  const read = await readFaceOffer(services, projectId, body)
  const network = read.ok ? read.offer.seller.network : read.network
  const refuse = (errorReason: X402Reason, transaction = '') => ({
    success: false,
    errorReason,
    transaction,
    network,
    ...payerOf(decoded),
  })
  if (!read.ok) return refuse(read.reason)
  const outcome = await present(services, read.offer, decoded, deadlineMs)
  if (outcome.kind === 'pending') return refuse('settlement_pending', outcome.payment.txHash ?? '')
  if (outcome.kind === 'refused') return refuse(outcome.reason, outcome.payment?.txHash ?? '')
  const { payment } = outcome
  const granted = await grant(services, payment, null)
  if (granted === null) return refuse('duplicate_settlement', payment.txHash)
  return {
    ...JSON.parse(Buffer.from(granted.paymentResponse, 'base64').toString('utf8')),
    paymentId: payment.id,
  }
}
