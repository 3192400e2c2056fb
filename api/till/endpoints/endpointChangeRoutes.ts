import { type Static, Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import {
  deleteEndpoint,
  rotateWebhookSecret,
  SecretWithoutWebhookError,
  updateEndpoint,
} from '../../../sql/till/endpoints/endpointChanges.ts'
import { endpointTotals, findEndpoint } from '../../../sql/till/endpoints/endpoints.ts'
import { badRequest, conflict, notFound } from '../../http/errors.ts'
import { operation } from '../../http/operation.ts'
import { projectOf } from '../../http/requestState.ts'
import type { Services } from '../../http/services.ts'
import {
  ChangedEndpointSchema,
  EarningEndpointSchema,
  EXAMPLE_ENDPOINT,
  EXAMPLE_SECRET,
  toChangedView,
  toEarningView,
} from './endpointDocs.ts'
import { ENDPOINT_FIELDS, orBadRequest, PriceUsdc, readChange } from './endpointInput.ts'
import { hasListing, LISTING_FIELDS, readListing } from './listingInput.ts'
import { checkAnew } from './reachable.ts'

const ChangeBody = t.Object({
  priceUsdc: t.Optional(PriceUsdc),
  ...ENDPOINT_FIELDS,
  ...LISTING_FIELDS,
})
const Params = t.Object({ endpointId: t.String({ minLength: 1, maxLength: 100 }) })

const describe = { tag: 'Sellers', access: 'payments:accept' } as const
const missing = () => notFound('Endpoint not found')
const errors = { 404: 'Endpoint not found' }
const changed = {
  schema: ChangedEndpointSchema,
  example: { ...EXAMPLE_ENDPOINT, webhookSecret: EXAMPLE_SECRET },
}

const changeOperation = operation({
  ...describe,
  summary: 'Change an endpoint',
  description:
    'A field left out stays as it is; null removes a description, a webhook or a part of the listing. A change of webhookUrl keeps the secret, ' +
    'and deliveries under way keep their address. Removing the webhook ends them.',
  requestExample: { priceUsdc: '0.02' },
  success: { status: 200, description: 'The endpoint and, when new, its secret.', ...changed },
  errors,
})

const rotateOperation = operation({
  ...describe,
  summary: 'Replace the secret of a webhook',
  description:
    'Every attempt from now on is signed with the new secret, retries of earlier events included.',
  success: { status: 200, description: 'The endpoint and its new secret.', ...changed },
  errors: { ...errors, 409: 'The endpoint has no webhook' },
})

const verifyOperation = operation({
  ...describe,
  summary: 'Check an endpoint again',
  description:
    'Fetches the URL and answers with the verdict, after 5 seconds at most. An unreachable endpoint gets no challenges; it ' +
    'is also checked every hour.',
  success: {
    status: 200,
    description: 'The endpoint with its verification.',
    schema: EarningEndpointSchema,
    example: { ...EXAMPLE_ENDPOINT, callCount: 3, revenueUsdcRaw: '30000' },
  },
  errors,
})

const deleteOperation = operation({
  ...describe,
  summary: 'Delete an endpoint',
  description: 'It sells no more, and its webhook gets nothing more. Its payments stay.',
  success: { status: 204, description: 'The endpoint is gone.' },
  errors,
})

/** Serves the routes that change or delete one endpoint of a seller, or rotate the webhook secret of the endpoint. */
export const endpointChangeRoutes = (services: Services) =>
  new Elysia()
    .patch(
      '/:endpointId',
      ({ request, params, body }) => change(services, target(request, params), body),
      { params: Params, body: ChangeBody, detail: changeOperation },
    )
    .post(
      '/:endpointId/rotate-secret',
      ({ request, params }) => rotate(services, target(request, params)),
      { params: Params, detail: rotateOperation },
    )
    .post(
      '/:endpointId/verify',
      ({ request, params }) => verify(services, target(request, params)),
      {
        params: Params,
        detail: verifyOperation,
      },
    )
    .delete('/:endpointId', ({ request, params }) => remove(services, target(request, params)), {
      params: Params,
      detail: deleteOperation,
    })

type Target = { projectId: string; id: string }

const target = (request: Request, params: { endpointId: string }): Target => ({
  projectId: projectOf(request).projectId,
  id: params.endpointId,
})

async function change(services: Services, of: Target, body: Static<typeof ChangeBody>) {
  const { pool, keyring } = services
  if (!Object.keys(ChangeBody.properties).some((name) => name in body)) {
    throw badRequest(`The body must hold one of ${Object.keys(ChangeBody.properties).join(', ')}`)
  }
  const wanted = {
    ...(await readChange(services, body)),
    ...(await readListingOf(services, of, body)),
  }
  const result = await orBadRequest(async () =>
    updateEndpoint(pool, await keyring(pool), { ...of, change: wanted }),
  )
  if (result === null) throw missing()
  return toChangedView(result)
}

async function readListingOf(services: Services, of: Target, body: Static<typeof ChangeBody>) {
  if (!hasListing(body)) return {}
  const stored = await findEndpoint(services.pool, of)
  if (stored === null) throw missing()
  return readListing(services, { url: stored.urlPattern, body, stored })
}

async function rotate({ pool, keyring }: Services, of: Target) {
  try {
    const result = await rotateWebhookSecret(pool, await keyring(pool), of)
    if (result === null) throw missing()
    return toChangedView(result)
  } catch (error) {
    if (!(error instanceof SecretWithoutWebhookError)) throw error
    throw conflict('The endpoint has no webhook: set webhookUrl first')
  }
}

async function verify(services: Services, of: Target) {
  await checkAnew(services, of)
  const endpoint = await findEndpoint(services.pool, of)
  if (endpoint === null) throw missing()
  const totals = await endpointTotals(services.pool, [endpoint.id])
  return toEarningView(endpoint, totals.get(endpoint.id))
}

async function remove({ pool }: Services, of: Target) {
  if (!(await deleteEndpoint(pool, of))) throw missing()
  return new Response(null, { status: 204 })
}
