import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { BAZAAR } from '../../../shared/till/bazaar/metadata.ts'
import { reasonMessage } from '../../../shared/till/reasonMessage.ts'
import { USDC_NETWORKS } from '../../../shared/till/usdc.ts'
import {
  parsePaymentPayload,
  settleResponse,
  versionOf,
  wireReason,
  type X402Reason,
} from '../../../shared/till/x402.ts'
import { OFFER_RECEIPT, PAYMENT_IDENTIFIER } from '../../../shared/till/x402v2.ts'
import { listGasWallets } from '../../../sql/till/endpoints/seller.ts'
import type { Payment } from '../../../sql/till/payments/payments.ts'
import { ApiError } from '../../http/errors.ts'
import { operation } from '../../http/operation.ts'
import { projectOf } from '../../http/requestState.ts'
import type { Services } from '../../http/services.ts'
import { loadSeller, type Offer } from '../payments/offer.ts'
import { askChain } from '../payments/redeem/askChain.ts'
import { grant, settlementOf, ungranted } from '../payments/redeem/grant.ts'
import {
  claimOf,
  findGrantable,
  isNameTaken,
  judge,
  type Outcome,
  reasonOfClaim,
  saleOf,
  settleWithin,
  verify,
} from '../payments/redeem/settleWithin.ts'
import { limitReached } from '../payments/settlementLimits.ts'
import { EXTENSION_RESPONSES, extensionResponses } from './extensionResponses.ts'
import {
  type FacilitatorOffer,
  findPastFacilitatorOffer,
  readFacilitatorOffer,
} from './facilitatorOffer.ts'

/**
 * Limits how many milliseconds the response waits for a transaction hash. Together with the 25 s of SETTLEMENT_WAIT_MS,
 * the wait stays below the 30 s time-out of Python and Go clients.
 */
const HASH_WAIT_MS = 3_000
const HASH_POLL_MS = 200

/**
 * Describes the request body of a facilitator call. The schema accepts almost any body. For a wrong payment, the
 * sellers' middleware expects an x402 reason and no response with status 400.
 */
const Body = t.Object({
  x402Version: t.Optional(t.Unknown()),
  paymentPayload: t.Optional(t.Unknown()),
  paymentRequirements: t.Optional(t.Unknown()),
})

const VerifyResult = t.Object({
  isValid: t.Boolean(),
  invalidReason: t.Optional(t.String()),
  invalidMessage: t.Optional(
    t.String({ description: 'The message names the cause and the next step.' }),
  ),
  payer: t.Optional(t.String()),
})

const SettleResult = t.Object({
  success: t.Boolean(),
  errorReason: t.Optional(t.String()),
  errorMessage: t.Optional(
    t.String({ description: 'The message names the cause and the next step.' }),
  ),
  transaction: t.String(),
  network: t.String({ description: 'In the spelling of the payment’s version.' }),
  payer: t.Optional(t.String()),
  paymentId: t.Optional(t.String()),
  extensions: t.Optional(
    t.Object(
      {},
      { additionalProperties: true, description: 'offer-receipt: the receipt as a JWS.' },
    ),
  ),
})

const SupportedResult = t.Object({
  kinds: t.Array(t.Object({ x402Version: t.Integer(), scheme: t.String(), network: t.String() })),
  extensions: t.Array(t.String()),
  signers: t.Object(
    {},
    {
      additionalProperties: t.Array(t.String()),
      description: 'The gas wallets, by a pattern of chains.',
    },
  ),
})

const EXAMPLE_REQUEST = {
  x402Version: 2,
  paymentPayload: {
    x402Version: 2,
    accepted: { scheme: 'exact', network: 'eip155:84532' },
    payload: {},
  },
  paymentRequirements: { scheme: 'exact', network: 'eip155:84532', amount: '10000' },
}

const PAYER = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'

/**
 * Serves the routes of an x402 facilitator, for versions 1 and 2. The payment payload decides which version applies.
 * Sellers can use their existing x402 middleware without a change, because it settles its payments at the routes of a
 * facilitator.
 */
export function facilitatorRoutes(services: Services) {
  const describe = { tag: 'Payments', access: 'payments:accept', openBody: true } as const
  const answer = async <Answer>(
    request: Request,
    body: FaceInput,
    headers: Record<string, string | number>,
    judge: (services: Services, face: Face, projectId: string) => Promise<Answer>,
  ): Promise<Answer> => {
    const { projectId } = projectOf(request)
    const face = await readFace(services, projectId, body)
    const { read } = face
    const declared = read.ok
      ? await extensionResponses(services, read.endpoint, body.paymentPayload)
      : null
    if (declared !== null) headers[EXTENSION_RESPONSES] = declared
    return judge(services, face, projectId)
  }
  return new Elysia({ prefix: '/v0/x402' })
    .post('/verify', ({ request, body, set }) => answer(request, body, set.headers, verifyFace), {
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
    })
    .post('/settle', ({ request, body, set }) => answer(request, body, set.headers, settleFace), {
      body: Body,
      detail: operation({
        ...describe,
        summary: 'Settle a payment (x402 facilitator)',
        description:
          'payTo must be that of the project. The resource need not be registered; if it is, its webhook is called. In ' +
          'version 2 requirements.extra.resource names it, else the payer’s copy: then only an endpoint of that price counts. ' +
          'EXTENSION-RESPONSES says what became of the extension bazaar of a payment: a discoverable endpoint is listed with ' +
          'what its own 402 declares.',
        requestExample: EXAMPLE_REQUEST,
        success: {
          status: 200,
          description: 'The outcome.',
          schema: SettleResult,
          example: {
            success: true,
            transaction: `0x${'4e'.repeat(32)}`,
            network: 'eip155:84532',
            payer: PAYER,
          },
        },
      }),
    })
    .get(
      '/supported',
      async ({ request }) => {
        const seller = await loadSeller(services.pool, projectOf(request).projectId)
        const { network, caip2, chainId } = USDC_NETWORKS[seller.network]
        return {
          kinds: [
            { x402Version: 1, scheme: 'exact', network },
            { x402Version: 2, scheme: 'exact', network: caip2 },
          ],
          extensions: [BAZAAR, OFFER_RECEIPT, PAYMENT_IDENTIFIER],
          signers: { 'eip155:*': await listGasWallets(services.pool, chainId) },
        }
      },
      {
        detail: operation({
          ...describe,
          summary: 'What can be settled (x402 facilitator)',
          success: {
            status: 200,
            description: 'The connected chain.',
            schema: SupportedResult,
            example: {
              kinds: [
                { x402Version: 1, scheme: 'exact', network: 'base-sepolia' },
                { x402Version: 2, scheme: 'exact', network: 'eip155:84532' },
              ],
              extensions: [BAZAAR, OFFER_RECEIPT, PAYMENT_IDENTIFIER],
              signers: { 'eip155:*': [PAYER] },
            },
          },
        }),
      },
    )
}

type FaceInput = { paymentPayload?: unknown; paymentRequirements?: unknown }

/**
 * Reads one request that a seller's middleware sends to the facilitator. The result holds the function `explain`, which
 * writes the text that explains why a payment is refused.
 */
async function readFace(services: Services, projectId: string, body: FaceInput) {
  const deadlineMs = performance.now() + services.config.settlementWaitMs
  const decoded = parsePaymentPayload(body.paymentPayload)
  const x402Version = versionOf(decoded)
  const { seller, fault } = await findSeller(services, projectId)
  const { paymentRequirements } = body
  const today: FacilitatorOffer =
    seller === null
      ? { ok: false, reason: fault.reason }
      : await readFacilitatorOffer(services, seller, decoded, paymentRequirements)
  const past = today.ok
    ? null
    : await findPastFacilitatorOffer(services, projectId, decoded, paymentRequirements)
  const read: FacilitatorOffer = past === null ? today : { ok: true, offer: past, endpoint: null }
  const chain = past?.seller ?? seller
  const network = chain === null ? null : USDC_NETWORKS[chain.network]
  const explain = (reason: X402Reason, detail: string | null = null) => ({
    reason: wireReason(reason, x402Version),
    message:
      network === null
        ? fault!.message
        : reasonMessage(reason, { network, detail: decoded.ok ? detail : decoded.detail }),
  })
  const payer = decoded.ok ? { payer: decoded.payload.payload.authorization.from } : {}
  return { deadlineMs, decoded, x402Version, read, network, explain, payer }
}

type Face = Awaited<ReturnType<typeof readFace>>

/**
 * Returns the project as a seller, or the reason why it cannot sell. The facilitator then responds with status 200,
 * because a seller's middleware shows the text of any other response to its payers.
 */
async function findSeller({ pool }: Services, projectId: string) {
  try {
    return { seller: await loadSeller(pool, projectId), fault: null }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    const reason: X402Reason =
      error.status === 403 ? 'invalid_payment_requirements' : 'unexpected_verify_error'
    return { seller: null, fault: { reason, message: error.message } }
  }
}

async function verifyFace(services: Services, face: Face, projectId: string) {
  const { decoded, read, payer } = face
  const refuse = (reason: X402Reason) => {
    const { reason: invalidReason, message: invalidMessage } = face.explain(reason)
    if (read.ok) services.offerCounts.record('refusals', read.offer)
    return { isValid: false, invalidReason, invalidMessage, ...payer }
  }
  if (!read.ok) return refuse(read.reason)
  if (!decoded.ok) return refuse(decoded.reason)
  const { offer } = read
  const sale = saleOf(offer)
  if ((await findGrantable(services.pool, offer.seller, sale, decoded.payload)) !== null) {
    return { isValid: true, ...payer }
  }
  const verdict = await verify(read.offer, decoded.payload)
  if (verdict.kind === 'invalid') return refuse(verdict.reason)
  const limit = await limitReached(services, projectId)
  if (limit !== null) return refuse(limit)
  const claim = claimOf(read.offer, decoded.payload, verdict)
  const { deadlineMs } = face
  const answer = await askChain(services, { claim, verdict, claims: false, deadlineMs })
  if (!answer.ok) return refuse(answer.reason)
  if (await isNameTaken(services.pool, claim)) return refuse('payment_identifier_conflict')
  const reason = await reasonOfClaim(services.pool, claim)
  if (reason !== null) return refuse(reason)
  return { isValid: true, ...payer }
}

async function settleFace(services: Services, face: Face) {
  const { read, network, x402Version } = face
  const refuse = (why: X402Reason, payment: Payment | null = null) => {
    const { reason: errorReason, message: errorMessage } = face.explain(why, payment?.failureDetail)
    return {
      success: false,
      errorReason,
      errorMessage,
      transaction: payment?.txHash ?? '',
      // The field `network` of the response is empty until a payment worker has reported its chain.
      network: (x402Version === 2 ? network?.caip2 : network?.network) ?? '',
      ...face.payer,
      ...(payment === null ? {} : { paymentId: payment.id }),
    }
  }
  if (!read.ok) return refuse(read.reason)
  const settle = () => settleAndGrant(services, face, read.offer)
  let outcome = await settle()
  if (outcome.kind === 'pending') {
    const payment = await waitForHash(services, outcome.payment)
    // The payment may have ended while the code waited for a transaction hash. In this case, the code calls `settle`
    // again for the final result, because the payer may have to sign again.
    outcome = payment.state === 'verified' ? { kind: 'pending', payment } : await settle()
  }
  if (outcome.kind === 'granted') {
    const { payment } = outcome
    return { ...settleResponse(settlementOf(payment), x402Version), paymentId: payment.id }
  }
  return refuse(outcome.kind === 'pending' ? 'settlement_pending' : outcome.reason, outcome.payment)
}

type SettledPayment = Extract<Outcome, { kind: 'settled' }>['payment']

/** Settles the payment that a facilitator call contains, and grants the seller the right to serve the paid resource. */
async function settleAndGrant(
  services: Services,
  { decoded, deadlineMs, x402Version }: Face,
  offer: Offer,
): Promise<Exclude<Outcome, { kind: 'settled' }> | { kind: 'granted'; payment: SettledPayment }> {
  const settled = await settleWithin(services, offer, await judge(offer, decoded), deadlineMs)
  if (settled.kind !== 'settled') return settled
  const { payment } = settled
  const granted = await grant(services, payment, { key: null, x402Version })
  return granted === null ? ungranted(services, payment) : { kind: 'granted', payment }
}

/**
 * Waits up to HASH_WAIT_MS until a payment has a transaction hash or has ended. A seller's middleware repeats a request
 * about a pending payment only if the response names a transaction. The wait is short, because facilitator clients give
 * up after 30 s.
 */
async function waitForHash(services: Services, payment: Payment): Promise<Payment> {
  const untilMs = performance.now() + HASH_WAIT_MS
  let found = payment
  while (found.state === 'verified' && found.txHash === null && performance.now() < untilMs) {
    await Bun.sleep(HASH_POLL_MS)
    found = (await services.payments.submit(payment.id)) ?? found
  }
  return found
}
