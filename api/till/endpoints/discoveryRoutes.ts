import { type Static, Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { usdcNetworkOf } from '../../../shared/till/usdc.ts'
import { buildChallenge } from '../../../shared/till/x402.ts'
import { toRequirementV2 } from '../../../shared/till/x402v2.ts'
import {
  type DiscoveredEndpoint,
  type DiscoveryFilter,
  discoverEndpoints,
} from '../../../sql/till/endpoints/discovery.ts'
import { operation, Time } from '../../http/operation.ts'
import { readPage } from '../../http/page.ts'
import type { Services } from '../../http/services.ts'
import { requirementOf } from '../payments/challenge.ts'

/** The routes are public: caches spare the database. */
const CACHE_CONTROL = 'public, max-age=60'
const WORDS_MAX = 10

const Text = (description: string) => t.Optional(t.String({ maxLength: 128, description }))
const Offset = t.Optional(
  t.String({
    pattern: '^(0|[1-9][0-9]{0,4})$',
    error: 'be a whole number from 0 to 99999',
    description: 'How many to skip.',
  }),
)
const Limit = t.Optional(
  t.String({
    pattern: '^[1-9][0-9]{0,19}$',
    error: 'be a whole number of at least 1',
    description: 'Maximum results; 50 if absent, at most 100.',
  }),
)
const FILTERS = {
  type: Text('http is the only type.'),
  payTo: Text('The address that is paid.'),
  scheme: Text('exact is the only scheme.'),
  network: Text('In the spelling of x402 version 1 or 2.'),
  extensions: Text('A key of extensions; no listed resource names one.'),
  limit: Limit,
}
const ListQuery = t.Object({ ...FILTERS, offset: Offset })
const SearchQuery = t.Object({
  query: t.String({ minLength: 1, maxLength: 200, description: 'Words of URL or description.' }),
  ...FILTERS,
  cursor: Offset,
})
type Filters = Omit<Static<typeof ListQuery>, 'offset'>

const Item = t.Object({
  resource: t.String(),
  type: t.Literal('http'),
  x402Version: t.Union([t.Literal(1), t.Literal(2)], {
    description: 'The newest version of its challenge, and the form of accepts.',
  }),
  accepts: t.Array(t.Object({}, { additionalProperties: true })),
  lastUpdated: Time,
  description: t.Optional(t.String()),
})
const EXAMPLE_ITEM = {
  resource: 'https://api.example.com/weather',
  type: 'http',
  x402Version: 2,
  accepts: [
    {
      scheme: 'exact',
      network: 'eip155:84532',
      amount: '10000',
      asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
      payTo: '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC',
      maxTimeoutSeconds: 120,
      extra: { name: 'USDC', version: '2' },
    },
  ],
  lastUpdated: '2026-01-05T09:30:01.000Z',
  description: 'Weather of today',
}

/** The public list of paid resources, for agents that look for one. */
export function discoveryRoutes({ pool }: Services) {
  const describe = { tag: 'Payments', access: 'public', cors: true } as const
  return new Elysia({ prefix: '/v0/x402/discovery' })
    .get(
      '/resources',
      async ({ query, set }) => {
        set.headers['cache-control'] = CACHE_CONTROL
        const { limit, offset } = readPart(query, query.offset)
        const { endpoints, total } = await find(query, { words: null, limit, offset })
        return {
          x402Version: 2,
          items: endpoints.map(toItem),
          pagination: { limit, offset, total },
        }
      },
      {
        query: ListQuery,
        detail: operation({
          ...describe,
          summary: 'List paid resources (x402 discovery)',
          description:
            'Registered and verified endpoints whose sellers set discoverable. Nothing is taken from payers.',
          success: {
            status: 200,
            description: 'One part of the list, oldest first.',
            schema: t.Object({
              x402Version: t.Literal(2),
              items: t.Array(Item),
              pagination: t.Object({
                limit: t.Integer(),
                offset: t.Integer(),
                total: t.Integer(),
              }),
            }),
            example: {
              x402Version: 2,
              items: [EXAMPLE_ITEM],
              pagination: { limit: 50, offset: 0, total: 1 },
            },
          },
        }),
      },
    )
    .get(
      '/search',
      async ({ query, set }) => {
        set.headers['cache-control'] = CACHE_CONTROL
        const { limit, offset } = readPart(query, query.cursor)
        const words = query.query.toLowerCase().split(/\s+/).filter(Boolean).slice(0, WORDS_MAX)
        const { endpoints, total } = await find(query, { words, limit, offset })
        const next = offset + endpoints.length
        const cursor = endpoints.length > 0 && next < total ? String(next) : null
        return { x402Version: 2, resources: endpoints.map(toItem), pagination: { limit, cursor } }
      },
      {
        query: SearchQuery,
        detail: operation({
          ...describe,
          summary: 'Search paid resources (x402 discovery)',
          description: `The first ${WORDS_MAX} words count.`,
          success: {
            status: 200,
            description: 'One part of the matches, the best first.',
            schema: t.Object({
              x402Version: t.Literal(2),
              resources: t.Array(Item),
              pagination: t.Object({
                limit: t.Integer(),
                cursor: t.Union([t.String(), t.Null()]),
              }),
            }),
            example: {
              x402Version: 2,
              resources: [EXAMPLE_ITEM],
              pagination: { limit: 50, cursor: null },
            },
          },
        }),
      },
    )

  async function find(
    { type, payTo, scheme, network, extensions }: Filters,
    part: Pick<DiscoveryFilter, 'words' | 'limit' | 'offset'>,
  ) {
    const chain = network === undefined ? null : usdcNetworkOf(network)
    const isOther = (type ?? 'http') !== 'http' || (scheme ?? 'exact') !== 'exact'
    if (chain === undefined || isOther || extensions !== undefined)
      return { endpoints: [], total: 0 }
    const filter = { payTo: payTo ?? null, network: chain?.network ?? null }
    return discoverEndpoints(pool, { ...filter, ...part })
  }
}

const readPart = (query: { limit?: string }, offset = '0') => ({
  limit: readPage(query.limit === undefined ? {} : { limit: query.limit }).limit,
  offset: Number(offset),
})

function toItem({ url, priceAtomic, network, payTo, description, ...seen }: DiscoveredEndpoint) {
  const parameters = { network, amountAtomic: priceAtomic, resource: url, payTo }
  const requirement = requirementOf(
    buildChallenge({ ...parameters, description: description ?? undefined }),
  )
  const isV2 = seen.versions.includes(2)
  return {
    resource: url,
    type: 'http' as const,
    x402Version: isV2 ? 2 : 1,
    accepts: [isV2 ? toRequirementV2(requirement) : requirement],
    lastUpdated: seen.updatedAt.toISOString(),
    ...(description === null ? {} : { description }),
  }
}
