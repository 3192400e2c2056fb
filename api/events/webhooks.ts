import { type Static, Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { EVENT_SCOPES, EVENT_TYPES, type EventType } from '../../shared/events/events.ts'
import {
  createProjectWebhook,
  deleteProjectWebhook,
  findProjectWebhook,
  listProjectWebhooks,
  type ProjectWebhook,
  rotateProjectWebhook,
  TooManyWebhooksError,
  updateProjectWebhook,
  WEBHOOKS_MAX,
} from '../../sql/events/webhooks.ts'
import { ApiError, badRequest, notFound } from '../http/errors.ts'
import { operation, PageQuery, Time } from '../http/operation.ts'
import { cutPage, readPage } from '../http/page.ts'
import { identityOf } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'
import { readOutboundUrl } from '../till/endpointInput.ts'

const SECRET_MIN_LENGTH = 16
const SECRET_MAX_LENGTH = 256

const Event = t.Union(EVENT_TYPES.map((type) => t.Literal(type)))
const Events = t.Array(Event, { minItems: 1, maxItems: EVENT_TYPES.length, uniqueItems: true })
const Url = t.String({ minLength: 1, maxLength: 2_000, examples: ['https://example.com/hooks'] })

const Body = t.Object({
  url: Url,
  events: Events,
  secret: t.Optional(
    t.String({
      minLength: SECRET_MIN_LENGTH,
      maxLength: SECRET_MAX_LENGTH,
      description: 'To sign with; one is made when left out.',
    }),
  ),
})
const Change = t.Object({ url: t.Optional(Url), events: t.Optional(Events) })
const Params = t.Object({ webhookId: t.String({ minLength: 1, maxLength: 100 }) })

const Webhook = t.Object({
  webhookId: t.String(),
  url: t.String(),
  events: Events,
  createdAt: Time,
})
const WithSecret = t.Composite([
  Webhook,
  t.Object({ secret: t.String({ description: 'Shown here and never again.' }) }),
])

const EXAMPLE = {
  webhookId: 'wh_0a1b2c3d4e5f60718293a4b5',
  url: 'https://example.com/hooks',
  events: ['message.received'],
  createdAt: '2026-01-05T09:30:00.000Z',
}

const toView = ({ id, url, events, createdAt }: ProjectWebhook) => ({
  webhookId: id,
  url,
  events,
  createdAt: createdAt.toISOString(),
})

const missing = () => notFound('Webhook not found')
const describe = { tag: 'Webhooks', access: 'key' } as const
const errors = { 403: 'The key lacks the scope of an event', 404: 'Webhook not found' } as const

/** Registers the URLs that a project's events are sent to. */
export function projectWebhookRoutes(services: Services) {
  const { pool, keyring, config } = services
  return new Elysia({ prefix: '/v0/webhooks' })
    .post(
      '',
      async ({ request, body, set }) => {
        const projectId = mayHear(request, body.events)
        const url = readOutboundUrl('url', body.url, config.allowPrivateNetworks)
        try {
          const made = await createProjectWebhook(pool, await keyring(pool), {
            ...body,
            projectId,
            url,
          })
          set.status = 201
          return { ...toView(made.webhook), secret: made.secret }
        } catch (error) {
          if (!(error instanceof TooManyWebhooksError)) throw error
          throw badRequest(`A project must have at most ${WEBHOOKS_MAX} webhooks`)
        }
      },
      {
        body: Body,
        detail: operation({
          ...describe,
          summary: 'Register a webhook for events',
          description:
            'Headers, signature, schedule, log and replay are those of payment webhooks; the body is the event as the stream ' +
            'tells it. Wants the scope mail:read for message events and payments:accept for payment events.',
          requestExample: { url: EXAMPLE.url, events: EXAMPLE.events },
          success: {
            status: 201,
            description: 'The webhook and its secret.',
            schema: WithSecret,
            example: { ...EXAMPLE, secret: `whsec_${'0'.repeat(64)}` },
          },
          errors: { 403: errors[403] },
        }),
      },
    )
    .get(
      '',
      async ({ request, query }) => {
        const { limit, cursor } = readPage(query)
        const projectId = mayHear(request, [])
        const found = await listProjectWebhooks(pool, { projectId, limit: limit + 1, cursor })
        const { page, next } = cutPage(found, limit, ({ createdAt }) => createdAt)
        return { webhooks: page.map(toView), count: page.length, ...next }
      },
      {
        query: PageQuery,
        detail: operation({
          ...describe,
          summary: 'List webhooks for events, newest first',
          success: {
            status: 200,
            description: 'One page of webhooks.',
            schema: t.Object({
              webhooks: t.Array(Webhook),
              count: t.Integer(),
              nextPageToken: t.Optional(t.String()),
            }),
            example: { webhooks: [EXAMPLE], count: 1 },
          },
          errors: { 403: errors[403] },
        }),
      },
    )
    .patch(
      '/:webhookId',
      async ({ request, params, body }) => {
        const target = { projectId: mayHear(request, body.events ?? []), id: params.webhookId }
        const { url, events } = body
        const before = await findProjectWebhook(pool, target)
        if (before === null) throw missing()
        // To send elsewhere what the key may not hear would be a way to hear it.
        mayHear(request, before.events)
        const changed = await updateProjectWebhook(pool, target, {
          ...(events === undefined ? {} : { events }),
          ...(url === undefined
            ? {}
            : { url: readOutboundUrl('url', url, config.allowPrivateNetworks) }),
        })
        if (changed === null) throw missing()
        return toView(changed)
      },
      {
        params: Params,
        body: Change,
        detail: operation({
          ...describe,
          summary: 'Change a webhook for events',
          description: 'For events to come; what is on its way goes to where it was made for.',
          requestExample: { events: ['message.received', 'message.bounced'] },
          success: { status: 200, description: 'The webhook.', schema: Webhook, example: EXAMPLE },
          errors,
        }),
      },
    )
    .post(
      '/:webhookId/rotate-secret',
      async ({ request, params }) => {
        const target = { projectId: mayHear(request, []), id: params.webhookId }
        const before = await findProjectWebhook(pool, target)
        if (before === null) throw missing()
        mayHear(request, before.events)
        const made = await rotateProjectWebhook(pool, await keyring(pool), target)
        if (made === null) throw missing()
        return { ...toView(made.webhook), secret: made.secret }
      },
      {
        params: Params,
        detail: operation({
          ...describe,
          summary: 'Replace the secret of a webhook for events',
          description: 'Every attempt from now on is signed with the new secret.',
          success: {
            status: 200,
            description: 'The webhook and its new secret.',
            schema: WithSecret,
            example: { ...EXAMPLE, secret: `whsec_${'0'.repeat(64)}` },
          },
          errors,
        }),
      },
    )
    .delete(
      '/:webhookId',
      async ({ request, params }) => {
        const target = { projectId: mayHear(request, []), id: params.webhookId }
        if (!(await deleteProjectWebhook(pool, target))) throw missing()
        return new Response(null, { status: 204 })
      },
      {
        params: Params,
        detail: operation({
          ...describe,
          summary: 'Delete a webhook for events',
          description: 'What is on its way to it is given up.',
          success: { status: 204, description: 'The webhook is gone.' },
          errors,
        }),
      },
    )
}

/** The project of a key that may hear of all these events. @throws {ApiError} 403 */
function mayHear(request: Request, events: Static<typeof Events>): string {
  const { projectId, scopes } = identityOf(request)
  if (projectId === null) {
    throw new ApiError(403, 'forbidden', 'A platform key hears no events: use a project key')
  }
  const lacking = events
    .map((type: EventType) => EVENT_SCOPES[type])
    .find((scope) => !scopes.includes(scope))
  if (lacking !== undefined) {
    throw new ApiError(403, 'forbidden', `Missing required scope: ${lacking}`)
  }
  return projectId
}
