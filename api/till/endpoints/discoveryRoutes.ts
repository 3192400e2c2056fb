import { type Static, Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { BAZAAR } from '../../../shared/till/bazaar/metadata.ts'
import { USDC_AMOUNT_PATTERN, usdcNetworkOf } from '../../../shared/till/usdc.ts'
import { type DiscoveryFilter, discoverEndpoints } from '../../../sql/till/endpoints/discovery.ts'
import { operation } from '../../http/operation.ts'
import { readPage } from '../../http/page.ts'
import { widestNetwork } from '../../http/requestState.ts'
import type { Services } from '../../http/services.ts'
import { readAmount } from '../payments/paymentQuery.ts'
import { EXAMPLE_ITEM, Item, toItem } from './discoveryItem.ts'

/**
 * The routes of the public list of paid resources need no key. Therefore caches may store their responses, which
 * reduces the load on the database.
 */
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
const Price = t.Optional(
  t.String({
    maxLength: 64,
    pattern: USDC_AMOUNT_PATTERN.source,
    error: 'be a decimal USDC amount with at most 6 decimals, such as 0.01',
  }),
)
const FILTERS = {
  type: Text('http, or mcp for the tools of MCP servers.'),
  payTo: Text('The address that is paid.'),
  scheme: Text('exact is the only scheme.'),
  network: Text('In the spelling of x402 version 1 or 2.'),
  extensions: Text('A key of extensions: bazaar lists those that say how they are called.'),
  tag: Text('A tag, in any case.'),
  minPriceUsdc: Price,
  maxPriceUsdc: Price,
  limit: Limit,
}
const Cursor = t.Optional(
  t.String({
    pattern: '^[1-9][0-9]{0,17}$',
    error: 'be the cursor of the answer before, unchanged',
    description: 'Where the answer before ended. It goes before offset.',
  }),
)
const ListQuery = t.Object({ ...FILTERS, offset: Offset, cursor: Cursor })
const SearchQuery = t.Object({
  query: t.String({ minLength: 1, maxLength: 200, description: 'Words of URL or description.' }),
  ...FILTERS,
  cursor: Offset,
})
type Filters = Omit<Static<typeof ListQuery>, 'offset' | 'cursor'>

/** Serves the public list of paid resources for agents that search for a resource. */
export function discoveryRoutes({ strangerReads }: Services) {
  const describe = { tag: 'Payments', access: 'public', cors: true } as const
  return new Elysia({ prefix: '/v0/x402/discovery' })
    .get(
      '/resources',
      async ({ request, query, set }) => {
        set.headers['cache-control'] = CACHE_CONTROL
        const { limit, offset } = readPart(query, query.cursor === undefined ? query.offset : '0')
        const after = query.cursor === undefined ? null : BigInt(query.cursor)
        // The database query for a page of the public list reads one row more than the limit. If this row exists, the
        // list has a next page.
        const part = { words: null, after, limit: limit + 1, offset }
        const { endpoints, total } = await find(request, query, part)
        const shown = endpoints.slice(0, limit)
        const cursor = endpoints.length > limit ? String(shown.at(-1)!.row) : null
        return {
          x402Version: 2,
          items: shown.map(toItem),
          pagination: { limit, offset, total, cursor },
        }
      },
      {
        query: ListQuery,
        detail: operation({
          ...describe,
          summary: 'List paid resources (x402 discovery)',
          description:
            'Registered and verified endpoints whose sellers set discoverable. Nothing is taken from payers: how a resource is ' +
            'called comes from its seller, its OpenAPI document or its own 402.',
          success: {
            status: 200,
            description: 'One part of the list, oldest first.',
            schema: t.Object({
              x402Version: t.Literal(2),
              items: t.Array(Item),
              pagination: t.Object({
                limit: t.Integer(),
                offset: t.Integer(),
                total: t.Integer({ description: 'Of all that the filters leave.' }),
                cursor: t.Union([t.String(), t.Null()], {
                  description: 'Null: the list ends here.',
                }),
              }),
            }),
            example: {
              x402Version: 2,
              items: [EXAMPLE_ITEM],
              pagination: { limit: 50, offset: 0, total: 1, cursor: null },
            },
          },
          errors: { 429: 'Too many requests from this network' },
        }),
      },
    )
    .get(
      '/search',
      async ({ request, query, set }) => {
        set.headers['cache-control'] = CACHE_CONTROL
        const { limit, offset } = readPart(query, query.cursor)
        const words = query.query.toLowerCase().split(/\s+/).filter(Boolean).slice(0, WORDS_MAX)
        const { endpoints, total } = await find(request, query, {
          words,
          after: null,
          limit,
          offset,
        })
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
    request: Request,
    { type, payTo, scheme, network, extensions, tag, ...prices }: Filters,
    part: Pick<DiscoveryFilter, 'words' | 'after' | 'limit' | 'offset'>,
  ) {
    const chain = network === undefined ? null : usdcNetworkOf(network)
    const isType = [undefined, 'http', 'mcp'].includes(type)
    const isKnown = isType && (scheme ?? 'exact') === 'exact' && (extensions ?? BAZAAR) === BAZAAR
    const filter: Omit<DiscoveryFilter, keyof typeof part> = {
      payTo: payTo ?? null,
      network: chain?.network ?? null,
      type: type === 'http' || type === 'mcp' ? type : null,
      tag: tag ?? null,
      minAtomic: readAmount('minPriceUsdc', prices.minPriceUsdc),
      maxAtomic: readAmount('maxPriceUsdc', prices.maxPriceUsdc),
      hasBazaar: extensions !== undefined,
    }
    if (chain === undefined || !isKnown) return { endpoints: [], total: 0 }
    return strangerReads.run(widestNetwork(request), (db) =>
      discoverEndpoints(db, { ...filter, ...part }),
    )
  }
}

const readPart = (query: { limit?: string }, offset = '0') => ({
  limit: readPage(query.limit === undefined ? {} : { limit: query.limit }).limit,
  offset: Number(offset),
})
