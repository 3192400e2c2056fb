import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { putEndpoint } from '../../../sql/till/endpoints/endpointChanges.ts'
import {
  endpointTotals,
  findEndpoint,
  findEndpointByResource,
  listEndpoints,
} from '../../../sql/till/endpoints/endpoints.ts'
import { notFound } from '../../http/errors.ts'
import { OrderQuery, operation, PageQuery, PartOf } from '../../http/operation.ts'
import { cutPage, readPage } from '../../http/page.ts'
import { projectOf } from '../../http/requestState.ts'
import type { Services } from '../../http/services.ts'
import { endpointChangeRoutes } from './endpointChangeRoutes.ts'
import {
  ChangedEndpointSchema,
  EarningEndpointSchema,
  EXAMPLE_ENDPOINT,
  EXAMPLE_SECRET,
  toChangedView,
  toEarningView,
  Verification,
} from './endpointDocs.ts'
import {
  ENDPOINT_FIELDS,
  orBadRequest,
  PriceUsdc,
  readChange,
  readNetwork,
  readPrice,
  readUrlPattern,
  serviceNetwork,
  UrlPattern,
} from './endpointInput.ts'
import { endpointTrialRoutes } from './endpointTrialRoutes.ts'
import { hasListing, LISTING_FIELDS, readListing } from './listingInput.ts'

const PutBody = t.Object({
  urlPattern: UrlPattern,
  priceUsdc: PriceUsdc,
  ...ENDPOINT_FIELDS,
  ...LISTING_FIELDS,
})
const ListQuery = t.Composite([
  PageQuery,
  OrderQuery,
  t.Object({
    q: PartOf('the URL or the description'),
    verification: t.Optional(Verification),
    active: t.Optional(
      t.Union([t.Literal('true'), t.Literal('false')], {
        description: 'False lists the paused endpoints.',
      }),
    ),
  }),
])
const Params = t.Object({ endpointId: t.String({ minLength: 1, maxLength: 100 }) })

const describe = { tag: 'Sellers', access: 'payments:accept' } as const
const missing = () => notFound('Endpoint not found')
const errors = { 404: 'Endpoint not found' }
const EXAMPLE_EARNING = { ...EXAMPLE_ENDPOINT, callCount: 3, revenueUsdcRaw: '30000' }
const changed = {
  schema: ChangedEndpointSchema,
  example: { ...EXAMPLE_ENDPOINT, webhookSecret: EXAMPLE_SECRET },
}

/** Registers, lists and reads the endpoints of a seller. */
export function endpointRoutes(services: Services) {
  return new Elysia({ prefix: '/v0/sellers/endpoints' })
    .use(putRoute(services))
    .use(readRoutes(services))
    .use(endpointChangeRoutes(services))
    .use(endpointTrialRoutes(services))
}

function putRoute(services: Services) {
  const { pool, config, keyring } = services
  return new Elysia().put(
    '',
    async ({ request, body, set }) => {
      const { url, matchKey } = readUrlPattern(body.urlPattern, config.allowPrivateNetworks)
      const { projectId } = projectOf(request)
      const stored = hasListing(body)
        ? await findEndpointByResource(pool, projectId, matchKey)
        : null
      const listing = hasListing(body) ? readListing(services, { url, body, stored }) : {}
      const change = { ...(await readChange(services, body)), ...listing }
      const network = readNetwork(body.network, await serviceNetwork(services))
      const put = await orBadRequest(async () =>
        putEndpoint(pool, await keyring(pool), {
          ...change,
          projectId,
          urlPattern: url,
          matchKey,
          priceAtomic: readPrice(body.priceUsdc, config),
          network,
        }),
      )
      if (put === null) throw notFound('Project not found')
      set.status = put.created ? 201 : 200
      return toChangedView(put)
    },
    {
      body: PutBody,
      detail: operation({
        ...describe,
        summary: 'Register an endpoint, or change the one of the same URL',
        description:
          'Two URLs are the same where host and path agree. Of an endpoint that exists, what is left out stays as it ' +
          'is. A webhook secret is generated when a webhookUrl is set where there was none. The URL is then fetched, to see whether it asks for payment. An unreachable one gets no challenge. ' +
          'An MCP tool has no URL to fetch: it is verified by the word of the project. input, output, tags, serviceName and ' +
          'iconUrl stand in each challenge (x402 bazaar), so that agents and catalogues know how to call it.',
        requestExample: {
          urlPattern: 'https://api.example.com/weather',
          priceUsdc: '0.01',
          webhookUrl: 'https://api.example.com/hooks/purser',
          tags: ['weather'],
          input: { method: 'GET', queryParams: { city: 'Berlin' } },
        },
        success: {
          status: 201,
          description: 'The new endpoint, with its secret if it has a webhook.',
          ...changed,
        },
        alsoAnswer: { status: 200, description: 'The endpoint existed, and is changed.' },
        errors: { 404: 'Project not found' },
      }),
    },
  )
}

function readRoutes({ pool }: Services) {
  return new Elysia()
    .get(
      '',
      async ({ request, query }) => {
        const { limit, cursor } = readPage(query)
        const { projectId } = projectOf(request)
        const { q, verification, active, order = 'newest' } = query
        const found = await listEndpoints(pool, {
          projectId,
          ...(q === undefined ? {} : { text: q }),
          ...(verification === undefined ? {} : { verification }),
          ...(active === undefined ? {} : { active: active === 'true' }),
          order,
          cursor,
          limit: limit + 1,
        })
        const { page, next } = cutPage(found, limit, ({ createdAt }) => createdAt)
        const totals = await endpointTotals(
          pool,
          page.map(({ id }) => id),
        )
        return {
          endpoints: page.map((endpoint) => toEarningView(endpoint, totals.get(endpoint.id))),
          count: page.length,
          ...next,
        }
      },
      {
        query: ListQuery,
        detail: operation({
          ...describe,
          summary: 'List endpoints, newest first',
          success: {
            status: 200,
            description: 'One page of endpoints.',
            schema: t.Object({
              endpoints: t.Array(EarningEndpointSchema),
              count: t.Integer(),
              nextPageToken: t.Optional(t.String()),
            }),
            example: { endpoints: [EXAMPLE_EARNING], count: 1 },
          },
        }),
      },
    )
    .get(
      '/:endpointId',
      async ({ request, params }) => {
        const { projectId } = projectOf(request)
        const endpoint = await findEndpoint(pool, { projectId, id: params.endpointId })
        if (endpoint === null) throw missing()
        const totals = await endpointTotals(pool, [endpoint.id])
        return toEarningView(endpoint, totals.get(endpoint.id))
      },
      {
        params: Params,
        detail: operation({
          ...describe,
          summary: 'Get an endpoint',
          success: {
            status: 200,
            description: 'The endpoint.',
            schema: EarningEndpointSchema,
            example: EXAMPLE_EARNING,
          },
          errors,
        }),
      },
    )
}
