import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { newTrialId } from '../../../shared/ids.ts'
import { isMcpTool } from '../../../shared/till/resourceUrl.ts'
import { findEndpoint } from '../../../sql/till/endpoints/endpoints.ts'
import {
  type EndpointTrial,
  findTrial,
  startTrial,
} from '../../../sql/till/endpoints/endpointTrials.ts'
import { conflict, notFound } from '../../http/errors.ts'
import { operation, Time } from '../../http/operation.ts'
import { projectOf } from '../../http/requestState.ts'
import type { Services } from '../../http/services.ts'

const Params = t.Object({ endpointId: t.String({ minLength: 1, maxLength: 100 }) })
const Body = t.Object({
  buy: t.Boolean({ description: 'True pays once from the payer of the embedded devnet.' }),
})
const orNull = <Schema extends Parameters<typeof t.Union>[0][number]>(schema: Schema) =>
  t.Union([schema, t.Null()])

const Answer = t.Object({
  canBuy: t.Boolean({ description: 'True means that the service runs on its embedded devnet.' }),
  trial: orNull(
    t.Object({
      state: t.Union(
        (['asking', 'asked', 'paying', 'paid', 'failed'] as const).map((one) => t.Literal(one)),
      ),
      buy: t.Boolean(),
      challenge: orNull(
        t.Object({}, { additionalProperties: true, description: 'The 402, as a buyer sees it.' }),
      ),
      status: orNull(t.Integer({ description: 'Of the last answer.' })),
      body: orNull(t.String({ description: 'Its first 16,384 characters.' })),
      detail: orNull(t.String({ description: 'Why it failed.' })),
      createdAt: Time,
      endedAt: orNull(Time),
    }),
  ),
})
const example = {
  canBuy: true,
  trial: {
    state: 'paid' as const,
    buy: true,
    challenge: { x402Version: 1, accepts: [{ scheme: 'exact', maxAmountRequired: '10000' }] },
    status: 200,
    body: 'fine weather',
    detail: null,
    createdAt: '2026-01-05T09:30:00.000Z',
    endedAt: '2026-01-05T09:30:02.000Z',
  },
}

const describe = { tag: 'Sellers', access: 'payments:accept' } as const

/** Serves trials, in which the service calls an endpoint like a buyer. */
export function endpointTrialRoutes({ pool, config }: Services) {
  const canBuy = config.chain.embeddedDevnet
  const view = (trial: EndpointTrial | null) => ({
    canBuy,
    trial:
      trial === null
        ? null
        : {
            ...trial,
            createdAt: trial.createdAt.toISOString(),
            endedAt: trial.endedAt?.toISOString() ?? null,
          },
  })
  const found = async (request: Request, { endpointId: id }: { endpointId: string }) => {
    const { projectId } = projectOf(request)
    const endpoint = await findEndpoint(pool, { projectId, id })
    if (endpoint === null) throw notFound('Endpoint not found')
    return { id, projectId, url: endpoint.urlPattern }
  }
  return new Elysia()
    .get(
      '/:endpointId/trial',
      async ({ request, params }) => view(await findTrial(pool, (await found(request, params)).id)),
      {
        params: Params,
        detail: operation({
          ...describe,
          summary: 'Get the last trial of an endpoint',
          success: { status: 200, description: 'The trial; null: none.', schema: Answer, example },
          errors: { 404: 'Endpoint not found' },
        }),
      },
    )
    .post(
      '/:endpointId/trial',
      async ({ request, params, body: { buy }, set }) => {
        const { id: endpointId, projectId, url } = await found(request, params)
        if (isMcpTool(url)) throw conflict('The endpoint is an MCP tool: it has no URL to ask')
        if (buy && !canBuy) {
          throw conflict(
            'buy: only the embedded devnet has a payer; on a real network a buyer pays',
          )
        }
        const trial = await startTrial(pool, { id: newTrialId(), endpointId, projectId, buy })
        if (trial === null) throw conflict('A trial of this endpoint is under way')
        set.status = 202
        return view(trial)
      },
      {
        params: Params,
        body: Body,
        detail: operation({
          ...describe,
          summary: 'Try an endpoint as a buyer',
          description:
            'A worker asks the URL without a payment and keeps its 402. On the embedded devnet `buy` also pays it, once. ' +
            'The trial replaces the one before.',
          requestExample: { buy: true },
          success: {
            status: 202,
            description: 'The trial has begun. GET shows how it goes on.',
            schema: Answer,
            example: {
              canBuy: true,
              trial: {
                ...example.trial,
                state: 'asking' as const,
                challenge: null,
                status: null,
                body: null,
                endedAt: null,
              },
            },
          },
          errors: {
            404: 'Endpoint not found',
            409: 'A trial is under way, or there is no payer or no URL',
          },
        }),
      },
    )
}
