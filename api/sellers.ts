import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { encodeCursor } from '../shared/cursor.ts'
import type { NetworkName } from '../shared/usdc.ts'
import {
  deleteEndpoint,
  ENDPOINTS_MAX,
  type EndpointChange,
  endpointTotals,
  findEndpoint,
  listEndpoints,
  putEndpoint,
  rotateWebhookSecret,
  SecretWithoutWebhookError,
  TooManyEndpointsError,
  updateEndpoint,
} from '../sql/endpoints.ts'
import { projectOf, type Services } from './context.ts'
import {
  ChangedEndpointSchema,
  EarningEndpointSchema,
  EXAMPLE_ENDPOINT,
  EXAMPLE_SECRET,
  toChangedView,
  toEarningView,
} from './endpointView.ts'
import { badRequest, conflict, notFound } from './errors.ts'
import { operation, PageQuery } from './operation.ts'
import { readPage } from './page.ts'
import {
  Description,
  Network,
  PriceUsdc,
  readNetwork,
  readPrice,
  readUrlPattern,
  readWebhookUrl,
  UrlPattern,
  WebhookSecret,
  WebhookUrl,
} from './sellerInput.ts'

const PutBody = t.Object({
  urlPattern: UrlPattern,
  priceUsdc: PriceUsdc,
  network: t.Optional(Network),
  description: t.Optional(Description),
  webhookUrl: t.Optional(WebhookUrl),
  webhookSecret: t.Optional(WebhookSecret),
})
const PatchBody = t.Object({
  priceUsdc: t.Optional(PriceUsdc),
  network: t.Optional(Network),
  description: t.Optional(Description),
  webhookUrl: t.Optional(WebhookUrl),
  webhookSecret: t.Optional(WebhookSecret),
})
const Params = t.Object({ endpointId: t.String({ minLength: 1, maxLength: 100 }) })

const describe = { tag: 'Sellers', access: 'payments:accept' } as const
const missing = () => notFound('Endpoint not found')
const errors = { 404: 'Endpoint not found' }
const EXAMPLE_EARNING = { ...EXAMPLE_ENDPOINT, callCount: 3, revenueUsdcRaw: '30000' }
const changed = {
  schema: ChangedEndpointSchema,
  example: { ...EXAMPLE_ENDPOINT, webhookSecret: EXAMPLE_SECRET },
}

/** The chain that prices are in. */
const serviceNetwork = (_services: Services): NetworkName => 'base-sepolia'

/** What a seller charges for. */
export function sellerRoutes(services: Services) {
  return new Elysia({ prefix: '/v0/sellers/endpoints' })
    .use(putRoute(services))
    .use(readRoutes(services))
    .use(changeRoutes(services))
}

function putRoute(services: Services) {
  const { pool, config } = services
  return new Elysia().put(
    '',
    async ({ request, body, set }) => {
      const { url, matchKey } = readUrlPattern(body.urlPattern, config.allowPrivateNetworks)
      const put = await orBadRequest(() =>
        putEndpoint(pool, {
          ...readChange(services, body),
          projectId: projectOf(request).projectId,
          urlPattern: url,
          matchKey,
          priceAtomic: readPrice(body.priceUsdc),
          network: readNetwork(body.network, serviceNetwork(services)),
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
          'is. A webhook secret is generated when a webhookUrl is set where there was none. Answers 201 for a new ' +
          'endpoint and 200 for one that existed. The URL is then fetched, to see whether it asks for payment.',
        requestExample: {
          urlPattern: 'https://api.example.com/weather',
          priceUsdc: '0.01',
          webhookUrl: 'https://api.example.com/hooks/purser',
        },
        success: {
          status: 201,
          description: 'The endpoint and, when new, its secret.',
          ...changed,
        },
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
        const found = await listEndpoints(pool, { projectId, limit: limit + 1, cursor })
        const page = found.slice(0, limit)
        const totals = await endpointTotals(
          pool,
          page.map(({ id }) => id),
        )
        const last = page.at(-1)
        return {
          endpoints: page.map((endpoint) => toEarningView(endpoint, totals.get(endpoint.id))),
          count: page.length,
          ...(found.length > limit && last !== undefined
            ? { nextPageToken: encodeCursor({ atMs: last.createdAt.getTime(), row: last.row }) }
            : {}),
        }
      },
      {
        query: PageQuery,
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

function changeRoutes(services: Services) {
  const { pool } = services
  const target = (request: Request, params: { endpointId: string }) => ({
    projectId: projectOf(request).projectId,
    id: params.endpointId,
  })
  return new Elysia()
    .patch(
      '/:endpointId',
      async ({ request, params, body }) => {
        const change = readChange(services, body)
        if (Object.keys(change).length === 0) {
          throw badRequest(
            `The body must hold one of ${Object.keys(PatchBody.properties).join(', ')}`,
          )
        }
        const result = await orBadRequest(() =>
          updateEndpoint(pool, { ...target(request, params), change }),
        )
        if (result === null) throw missing()
        return toChangedView(result)
      },
      {
        params: Params,
        body: PatchBody,
        detail: operation({
          ...describe,
          summary: 'Change an endpoint',
          description:
            'What is left out stays as it is; null removes a description or a webhook. A change of webhookUrl keeps ' +
            'the secret and leaves deliveries on their way to the address they were made for; removing it ends them.',
          requestExample: { priceUsdc: '0.02' },
          success: {
            status: 200,
            description: 'The endpoint and, when new, its secret.',
            ...changed,
          },
          errors,
        }),
      },
    )
    .post(
      '/:endpointId/rotate-secret',
      async ({ request, params }) => {
        try {
          const result = await rotateWebhookSecret(pool, target(request, params))
          if (result === null) throw missing()
          return toChangedView(result)
        } catch (error) {
          if (!(error instanceof SecretWithoutWebhookError)) throw error
          throw conflict('The endpoint has no webhook: set webhookUrl first')
        }
      },
      {
        params: Params,
        detail: operation({
          ...describe,
          summary: 'Replace the secret of a webhook',
          description:
            'Every attempt from now on is signed with the new secret, retries of earlier events included.',
          success: { status: 200, description: 'The endpoint and its new secret.', ...changed },
          errors: { ...errors, 409: 'The endpoint has no webhook' },
        }),
      },
    )
    .delete(
      '/:endpointId',
      async ({ request, params }) => {
        if (!(await deleteEndpoint(pool, target(request, params)))) throw missing()
        return new Response(null, { status: 204 })
      },
      {
        params: Params,
        detail: operation({
          ...describe,
          summary: 'Delete an endpoint',
          description:
            'Nothing is charged for it any more, and its webhook is sent nothing more. Its payments stay.',
          success: { status: 204, description: 'The endpoint is gone.' },
          errors,
        }),
      },
    )
}

type ChangeBody = {
  priceUsdc?: string
  network?: string
  description?: string | null
  webhookUrl?: string | null
  webhookSecret?: string
}

function readChange(services: Services, body: ChangeBody): EndpointChange {
  const { priceUsdc, network, description, webhookUrl, webhookSecret } = body
  return {
    ...(priceUsdc === undefined ? {} : { priceAtomic: readPrice(priceUsdc) }),
    ...(network === undefined ? {} : { network: readNetwork(network, serviceNetwork(services)) }),
    ...(description === undefined ? {} : { description }),
    ...(webhookUrl === undefined
      ? {}
      : {
          webhookUrl:
            webhookUrl === null
              ? null
              : readWebhookUrl(webhookUrl, services.config.allowPrivateNetworks),
        }),
    ...(webhookSecret === undefined ? {} : { webhookSecret }),
  }
}

async function orBadRequest<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof SecretWithoutWebhookError) {
      throw badRequest('webhookSecret must come with a webhookUrl')
    }
    if (error instanceof TooManyEndpointsError) {
      throw badRequest(`A project must have at most ${ENDPOINTS_MAX} endpoints`)
    }
    throw error
  }
}
