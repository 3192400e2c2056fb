import { Type as t } from '@sinclair/typebox'
import { formatUsdc } from '../../../shared/till/usdc.ts'
import type { ChangedEndpoint } from '../../../sql/till/endpoints/endpointChanges.ts'
import type { Endpoint, EndpointTotals } from '../../../sql/till/endpoints/endpoints.ts'
import { Time } from '../../http/operation.ts'

const Nullable = (description?: string) =>
  t.Union([t.String(), t.Null()], description === undefined ? {} : { description })

export const Verification = t.Union(
  (['pending', 'verified', 'failed', 'unreachable'] as const).map((status) => t.Literal(status)),
)
const AnyObject = t.Union([t.Object({}, { additionalProperties: true }), t.Null()])

const EndpointSchema = t.Object({
  endpointId: t.String(),
  urlPattern: t.String(),
  priceUsdc: t.String(),
  network: t.String(),
  description: Nullable(),
  webhookUrl: Nullable(),
  discoverable: t.Boolean(),
  serviceName: Nullable(),
  tags: t.Array(t.String()),
  iconUrl: Nullable(),
  mcpUrl: Nullable(),
  input: AnyObject,
  output: AnyObject,
  openApi: t.Union([
    t.Object({
      url: t.String(),
      status: t.Union((['pending', 'read', 'failed'] as const).map((one) => t.Literal(one))),
      detail: Nullable('The detail says why the service read nothing.'),
      input: AnyObject,
      output: AnyObject,
    }),
    t.Null(),
  ]),
  active: t.Boolean({
    description: 'False means that the endpoint is paused and gets no challenges.',
  }),
  verification: t.Object({
    status: Verification,
    checkedAt: t.Union([Time, t.Null()]),
    detail: Nullable(),
  }),
  createdAt: Time,
})

export const EarningEndpointSchema = t.Composite([
  EndpointSchema,
  t.Object({
    callCount: t.Integer({ description: 'The endpoint has this many settled payments.' }),
    revenueUsdcRaw: t.String({
      description: 'The settled payments have this sum, in atomic units of 10^-6 USDC.',
    }),
  }),
])

export const ChangedEndpointSchema = t.Composite([
  EndpointSchema,
  t.Object({
    webhookSecret: t.Optional(
      t.String({
        description:
          'Only the answer that creates the secret shows it. No later answer shows the secret.',
      }),
    ),
  }),
])

export const EXAMPLE_ENDPOINT = {
  endpointId: 'se_0a1b2c3d4e5f60718293a4b5',
  urlPattern: 'https://api.example.com/weather',
  priceUsdc: '0.01',
  network: 'base-sepolia',
  description: 'Weather of today',
  webhookUrl: 'https://api.example.com/hooks/purser',
  discoverable: false,
  serviceName: null,
  tags: ['weather'],
  iconUrl: null,
  mcpUrl: null,
  input: { method: 'GET', queryParams: { city: 'Berlin' } },
  output: null,
  openApi: null,
  active: true,
  verification: {
    status: 'verified',
    checkedAt: '2026-01-05T09:30:01.000Z',
    detail: 'answered 402 with a challenge',
  },
  createdAt: '2026-01-05T09:30:00.000Z',
}

export const EXAMPLE_SECRET = `whsec_${'0'.repeat(64)}`

/** Returns a seller's endpoint in the form of the API, without its webhook secret. */
const toEndpointView = (endpoint: Endpoint) => ({
  endpointId: endpoint.id,
  urlPattern: endpoint.urlPattern,
  priceUsdc: formatUsdc(endpoint.priceAtomic),
  network: endpoint.network,
  description: endpoint.description,
  webhookUrl: endpoint.webhookUrl,
  discoverable: endpoint.discoverable,
  ...toListing(endpoint),
  active: !endpoint.isPaused,
  verification: {
    status: endpoint.verification.status,
    checkedAt: endpoint.verification.checkedAt?.toISOString() ?? null,
    detail: endpoint.verification.detail,
  },
  createdAt: endpoint.createdAt.toISOString(),
})

function toListing({ metadata, openApi }: Endpoint) {
  return {
    serviceName: metadata.serviceName ?? null,
    tags: metadata.tags ?? [],
    iconUrl: metadata.iconUrl ?? null,
    mcpUrl: metadata.mcpUrl ?? null,
    input: metadata.input ?? null,
    output: metadata.output ?? null,
    openApi:
      openApi === null
        ? null
        : {
            url: openApi.url,
            status: openApi.status,
            detail: openApi.detail,
            input: openApi.metadata.input ?? null,
            output: openApi.metadata.output ?? null,
          },
  }
}

/** Returns a seller's endpoint with its earnings. */
export const toEarningView = (endpoint: Endpoint, totals: EndpointTotals | undefined) => ({
  ...toEndpointView(endpoint),
  callCount: totals?.callCount ?? 0,
  revenueUsdcRaw: (totals?.revenueAtomic ?? 0n).toString(),
})

/**
 * Returns a seller's endpoint with its fields after a change. The response holds the webhook secret of the endpoint
 * only if the secret is new.
 */
export const toChangedView = ({ endpoint, newSecret }: ChangedEndpoint) => ({
  ...toEndpointView(endpoint),
  ...(newSecret === null ? {} : { webhookSecret: newSecret }),
})
