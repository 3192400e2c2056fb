import { Type as t } from '@sinclair/typebox'
import { reasonMessage } from '../../../shared/till/reasonMessage.ts'
import { formatUsdc, USDC_NETWORKS } from '../../../shared/till/usdc.ts'
import type { Payment, PaymentDelivery } from '../../../sql/till/payments/payments.ts'
import { Time } from '../../http/operation.ts'

const Nullable = <Schema extends ReturnType<typeof t.String>>(schema: Schema) =>
  t.Union([schema, t.Null()])

const Requirement = t.Object({
  scheme: t.Literal('exact'),
  network: t.String({ examples: ['base-sepolia'] }),
  maxAmountRequired: t.String({ description: 'The amount is in atomic units of 10^-6 USDC.' }),
  resource: t.String(),
  description: t.String(),
  mimeType: t.String(),
  payTo: t.String(),
  maxTimeoutSeconds: t.Integer(),
  asset: t.String(),
  outputSchema: t.Optional(
    t.Object(
      {},
      {
        additionalProperties: true,
        description:
          'The schema describes the request and the answer of the resource. The field is absent if nobody described them.',
      },
    ),
  ),
  extra: t.Object({ name: t.String(), version: t.String() }),
})

/** Describes the body of a 402 response in x402 version 1. */
const Challenge = t.Object({
  x402Version: t.Literal(1),
  error: t.String(),
  accepts: t.Array(Requirement),
})

/** Describes a payment challenge in both x402 versions. */
export const ChallengeAnswer = t.Composite([
  Challenge,
  t.Object({
    headers: t.Object(
      {
        'PAYMENT-REQUIRED': t.String({
          description: 'The header holds the challenge of x402 version 2 in base64.',
        }),
      },
      { description: 'Send these headers with the 402.' },
    ),
  }),
])

export const EXAMPLE_CHALLENGE = {
  x402Version: 1,
  error: 'X-PAYMENT header is required',
  accepts: [
    {
      scheme: 'exact',
      network: 'base-sepolia',
      maxAmountRequired: '10000',
      resource: 'https://api.example.com/report',
      description: '',
      mimeType: '',
      payTo: '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC',
      maxTimeoutSeconds: 120,
      asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
      extra: { name: 'USDC', version: '2' },
    },
  ],
  headers: { 'PAYMENT-REQUIRED': 'eyJ4NDAyVmVyc2lvbiI6Miwi…' },
}

const TX_HASH =
  'One transaction can carry several payments, so name a payment by `id` and not by `txHash`.'
const LogIndex = t.Union([
  t.Integer({ description: 'The index of its Transfer event in the block (JSON-RPC logIndex).' }),
  t.Null(),
])

const ReceiptBody = t.Object({
  version: t.Literal(1),
  paymentId: t.String(),
  paymentInId: t.String(),
  endpointId: Nullable(t.String()),
  projectId: t.String(),
  identityId: t.String(),
  payerAddress: t.String(),
  recipientAddress: t.String(),
  amountUsdcRaw: t.String(),
  network: t.String(),
  resource: t.String(),
  txHash: t.String(),
  resourceSource: t.Optional(
    t.Literal('payer', {
      description:
        '`payer` means that only the payer named `resource`. Without this field, the seller named the resource.',
    }),
  ),
  paymentIdentifier: t.Optional(t.String({ description: 'The payer gave the payment this name.' })),
  timestamp: Time,
})

const SignedReceipt = t.Object(
  {
    body: ReceiptBody,
    signature: t.String({
      description: 'The Ed25519 signature over the RFC 8785 form of `body` is written in base64.',
    }),
    alg: t.Literal('Ed25519'),
    publicKeyHex: t.String(),
    publicKey: t.String({
      description: 'The public key is written in multibase and begins with z6Mk.',
    }),
    did: t.String(),
    jws: t.String({
      description: 'The receipt is a compact JWS. /.well-known/jwks.json holds its key.',
    }),
  },
  { description: 'The signed receipt proves the payment.' },
)

const EXAMPLE_RECEIPT = {
  body: {
    version: 1,
    paymentId: 'pay_0a1b2c3d4e5f60718293a4b5',
    paymentInId: 'pay_0a1b2c3d4e5f60718293a4b5',
    endpointId: 'se_0a1b2c3d4e5f60718293a4b5',
    projectId: 'prj_0a1b2c3d4e5f60718293a4b5',
    identityId: 'prj_0a1b2c3d4e5f60718293a4b5',
    payerAddress: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
    recipientAddress: '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC',
    amountUsdcRaw: '10000',
    network: 'base-sepolia',
    resource: 'https://api.example.com/report',
    txHash: `0x${'4e'.repeat(32)}`,
    timestamp: '2026-01-05T09:30:02.345Z',
  },
  signature: 'uH3…==',
  alg: 'Ed25519',
  publicKeyHex: 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
  publicKey: 'z6MktwupdmLXVVqTzCw4i46r4uGyosGXRnR3XjN4Zq7oMMsw',
  did: 'did:web:till.example.com',
  jws: 'eyJhbGciOiJFZERTQSIs…',
}

const Headers = t.Object(
  {},
  {
    additionalProperties: t.String(),
    description: 'Send these headers to the payer. They follow the x402 version of the payment.',
  },
)

/** Describes the two possible results when a seller redeems a payment: a grant (`ok: true`), or a refusal. */
export const RedeemResult = t.Union([
  t.Object({
    ok: t.Literal(true),
    paymentResponse: t.String({
      description: 'This value describes the settlement. `headers` holds it under its name.',
    }),
    txHash: t.String({ description: TX_HASH }),
    // The fields `logIndex` and `grantedAt` are optional, because a stored response of an older version of this service
    // does not have them.
    logIndex: t.Optional(LogIndex),
    grantedAt: t.Optional(Time),
    payer: t.String(),
    paymentId: t.String(),
    paymentInId: t.String({ description: 'This field repeats `paymentId`.' }),
    signedReceipt: SignedReceipt,
    headers: Headers,
  }),
  t.Object({
    ok: t.Literal(false),
    stage: t.Union([t.Literal('verify'), t.Literal('settle')]),
    reason: t.String({
      description: 'The reason is a code of x402 version 1, or of a later facilitator.',
    }),
    message: t.String({ description: 'The message names the cause and the next step.' }),
    requirement: Challenge,
    headers: Headers,
    paymentId: t.Optional(t.String()),
    paymentInId: t.Optional(t.String()),
    txHash: t.Optional(t.String()),
    detail: t.Optional(t.String({ description: 'The token contract gave this text.' })),
  }),
])

export const EXAMPLE_GRANT = {
  ok: true,
  paymentResponse: 'eyJzdWNjZXNzIjp0cnVlLCJ0cmFuc2FjdGlvbiI6…',
  txHash: EXAMPLE_RECEIPT.body.txHash,
  logIndex: 7,
  payer: EXAMPLE_RECEIPT.body.payerAddress,
  paymentId: EXAMPLE_RECEIPT.body.paymentId,
  paymentInId: EXAMPLE_RECEIPT.body.paymentId,
  signedReceipt: EXAMPLE_RECEIPT,
  grantedAt: '2026-01-05T09:30:02.000Z',
  headers: { 'PAYMENT-RESPONSE': 'eyJzdWNjZXNzIjp0cnVlLCJ0cmFuc2FjdGlvbiI6…' },
}

/** Describes a payment as it appears in a list of payments. */
export const PaymentItem = t.Object({
  id: t.String(),
  endpointId: Nullable(t.String()),
  endpoint: t.Union([
    t.Object({
      id: t.String(),
      urlPattern: t.String(),
      priceUsdc: t.String({ description: 'The payment was sold at this price.' }),
    }),
    t.Null(),
  ]),
  network: t.String(),
  payerAddress: t.String(),
  recipientAddress: t.String(),
  amountUsdc: t.String(),
  amountUsdcRaw: t.String({ description: 'The amount is in atomic units of 10^-6 USDC.' }),
  txHash: Nullable(t.String({ description: TX_HASH })),
  logIndex: LogIndex,
  status: t.Union([t.Literal('verified'), t.Literal('settled'), t.Literal('failed')]),
  resourceUrl: t.String(),
  resourceSource: t.Union([t.Literal('seller'), t.Literal('payer')], {
    description:
      'This side of the payment named `resourceUrl`. `payer` means that nobody has confirmed the URL.',
  }),
  x402Version: t.Union([t.Literal(1), t.Literal(2)]),
  paymentIdentifier: Nullable(
    t.String({ description: 'The payer’s own name of the payment (x402 payment-identifier).' }),
  ),
  failureReason: Nullable(t.String()),
  failureMessage: Nullable(
    t.String({ description: 'The message names the cause and the next step.' }),
  ),
  createdAt: Time,
  settledAt: Nullable(Time),
  signedReceipt: t.Union([SignedReceipt, t.Null()]),
})

const Delivery = t.Object({
  deliveryId: t.String(),
  event: t.String({ examples: ['payment.received', 'payment.settled'] }),
  status: t.String({ examples: ['pending', 'delivered', 'aborted', 'exhausted'] }),
  attempts: t.Integer(),
  nextAttemptAt: Nullable(Time),
  createdAt: Time,
})

/** Describes a payment with its newest webhook delivery. */
export const ListedPayment = t.Composite([
  PaymentItem,
  t.Object({
    latestDelivery: t.Union([t.Object({ deliveryId: t.String(), status: t.String() }), t.Null()]),
  }),
])

/** Describes a payment with its nonce, its finality and its webhook deliveries. */
export const WholePayment = t.Composite([
  PaymentItem,
  t.Object({
    authorizationNonce: t.String(),
    failureDetail: Nullable(t.String()),
    finalizedAt: Nullable(Time),
    deliveries: t.Array(Delivery),
  }),
])

export const EXAMPLE_PAYMENT = {
  id: EXAMPLE_RECEIPT.body.paymentId,
  endpointId: EXAMPLE_RECEIPT.body.endpointId,
  endpoint: {
    id: EXAMPLE_RECEIPT.body.endpointId,
    urlPattern: 'https://api.example.com/report',
    priceUsdc: '0.01',
  },
  network: 'base-sepolia',
  payerAddress: EXAMPLE_RECEIPT.body.payerAddress,
  recipientAddress: EXAMPLE_RECEIPT.body.recipientAddress,
  amountUsdc: '0.01',
  amountUsdcRaw: '10000',
  txHash: EXAMPLE_RECEIPT.body.txHash,
  logIndex: 7,
  status: 'settled',
  resourceUrl: EXAMPLE_RECEIPT.body.resource,
  resourceSource: 'seller',
  x402Version: 2,
  paymentIdentifier: null,
  failureReason: null,
  failureMessage: null,
  createdAt: '2026-01-05T09:30:00.000Z',
  settledAt: '2026-01-05T09:30:02.345Z',
  signedReceipt: EXAMPLE_RECEIPT,
}

/** Returns a payment in the form in which a list shows it. */
export function toPaymentItem(payment: Payment) {
  const { endpointId, endpointUrl } = payment
  const amountUsdc = formatUsdc(payment.amountAtomic)
  const settled = payment.state === 'settled'
  return {
    id: payment.id,
    endpointId,
    endpoint:
      endpointId === null || endpointUrl === null
        ? null
        : { id: endpointId, urlPattern: endpointUrl, priceUsdc: amountUsdc },
    network: payment.network,
    payerAddress: payment.payer,
    recipientAddress: payment.recipient,
    amountUsdc,
    amountUsdcRaw: payment.amountAtomic.toString(),
    txHash: payment.txHash,
    logIndex: settled ? payment.logIndex : null,
    status: payment.state,
    resourceUrl: payment.resourceUrl,
    resourceSource: payment.resourceSource,
    x402Version: payment.x402Version,
    paymentIdentifier: payment.paymentIdentifier,
    failureReason: payment.failureReason,
    failureMessage:
      payment.failureReason === null
        ? null
        : reasonMessage(payment.failureReason, {
            network: USDC_NETWORKS[payment.network],
            detail: payment.failureDetail,
          }),
    createdAt: payment.createdAt.toISOString(),
    settledAt: settled ? (payment.settledAt?.toISOString() ?? null) : null,
    signedReceipt:
      settled && payment.signedReceipt !== null ? JSON.parse(payment.signedReceipt) : null,
  }
}

/** Returns a payment in the form of the API, with its nonce, its finality and its webhook deliveries. */
export const toWholePayment = (payment: Payment, deliveries: readonly PaymentDelivery[]) => ({
  ...toPaymentItem(payment),
  authorizationNonce: payment.nonce,
  failureDetail: payment.failureDetail,
  finalizedAt: payment.finalizedAt?.toISOString() ?? null,
  deliveries: deliveries.map((delivery) => ({
    deliveryId: delivery.id,
    event: delivery.event,
    status: delivery.status,
    attempts: delivery.attempt,
    nextAttemptAt: delivery.nextAttemptAt?.toISOString() ?? null,
    createdAt: delivery.createdAt.toISOString(),
  })),
})
