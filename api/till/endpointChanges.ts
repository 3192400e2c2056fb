import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import {
  deleteEndpoint,
  rotateWebhookSecret,
  SecretWithoutWebhookError,
  updateEndpoint,
} from '../../sql/till/endpointChanges.ts'
import { badRequest, conflict, notFound } from '../http/errors.ts'
import { operation } from '../http/operation.ts'
import { projectOf } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'
import { ChangeBody, orBadRequest, readChange } from './endpointInput.ts'
import {
  ChangedEndpointSchema,
  EXAMPLE_ENDPOINT,
  EXAMPLE_SECRET,
  toChangedView,
} from './endpointView.ts'

const Params = t.Object({ endpointId: t.String({ minLength: 1, maxLength: 100 }) })

const describe = { tag: 'Sellers', access: 'payments:accept' } as const
const missing = () => notFound('Endpoint not found')
const errors = { 404: 'Endpoint not found' }
const changed = {
  schema: ChangedEndpointSchema,
  example: { ...EXAMPLE_ENDPOINT, webhookSecret: EXAMPLE_SECRET },
}

/** Changes to one endpoint. */
export function sellerChangeRoutes(services: Services) {
  const { pool, keyring } = services
  const target = (request: Request, params: { endpointId: string }) => ({
    projectId: projectOf(request).projectId,
    id: params.endpointId,
  })
  return new Elysia()
    .patch(
      '/:endpointId',
      async ({ request, params, body }) => {
        const change = await readChange(services, body)
        if (Object.keys(change).length === 0) {
          throw badRequest(
            `The body must hold one of ${Object.keys(ChangeBody.properties).join(', ')}`,
          )
        }
        const result = await orBadRequest(async () =>
          updateEndpoint(pool, await keyring(pool), { ...target(request, params), change }),
        )
        if (result === null) throw missing()
        return toChangedView(result)
      },
      {
        params: Params,
        body: ChangeBody,
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
          const result = await rotateWebhookSecret(
            pool,
            await keyring(pool),
            target(request, params),
          )
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
