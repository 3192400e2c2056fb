import { type Static, Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { EVENT_SCOPES, EVENT_TYPES } from '../../shared/events/events.ts'
import type { Scope } from '../../shared/scopes.ts'
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
import { readOutboundUrl } from '../till/endpoints/endpointInput.ts'

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
      description:
        'The secret signs the deliveries. Without this field, the service generates a secret.',
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
  t.Object({ secret: t.String({ description: 'Only this answer shows the secret.' }) }),
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
const secretAnswer = {
  schema: WithSecret,
  example: { ...EXAMPLE, secret: `whsec_${'0'.repeat(64)}` },
}

const REGISTER = operation({
  ...describe,
  summary: 'Register a webhook for events',
  description:
    'Headers, signature, retry schedule, delivery log and replay are the same as for payment webhooks. The body is the ' +
    'event as /v0/events sends it. Message events need the scope mail:read, payment events payments:accept.',
  requestExample: { url: EXAMPLE.url, events: EXAMPLE.events },
  success: { status: 201, description: 'The webhook and its secret.', ...secretAnswer },
  errors: { 403: errors[403] },
})

const LIST = operation({
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
})

const CHANGE = operation({
  ...describe,
  summary: 'Change a webhook for events',
  description: 'The change applies to new events. Pending deliveries keep their URL.',
  requestExample: { events: ['message.received', 'message.bounced'] },
  success: { status: 200, description: 'The webhook.', schema: Webhook, example: EXAMPLE },
  errors,
})

const ROTATE_SECRET = operation({
  ...describe,
  summary: 'Replace the secret of a webhook for events',
  description: 'The new secret signs every attempt from now on.',
  success: { status: 200, description: 'The webhook and its new secret.', ...secretAnswer },
  errors,
})

const DELETE = operation({
  ...describe,
  summary: 'Delete a webhook for events',
  description: 'Its pending deliveries are aborted.',
  success: { status: 204, description: 'The webhook is deleted.' },
  errors,
})

/** Serves the webhooks of a project, which are URLs that receive its events. */
export function webhookRoutes(services: Services) {
  return new Elysia({ prefix: '/v0/webhooks' })
    .post(
      '',
      async ({ request, body, set }) => {
        const registered = await register(services, request, body)
        set.status = 201
        return registered
      },
      { body: Body, detail: REGISTER },
    )
    .get('', ({ request, query }) => list(services, request, query), {
      query: PageQuery,
      detail: LIST,
    })
    .patch(
      '/:webhookId',
      ({ request, params, body }) => change(services, request, params.webhookId, body),
      { params: Params, body: Change, detail: CHANGE },
    )
    .post(
      '/:webhookId/rotate-secret',
      ({ request, params }) => rotateSecret(services, request, params.webhookId),
      { params: Params, detail: ROTATE_SECRET },
    )
    .delete('/:webhookId', ({ request, params }) => remove(services, request, params.webhookId), {
      params: Params,
      detail: DELETE,
    })
}

async function register(
  { pool, keyring, config }: Services,
  request: Request,
  body: Static<typeof Body>,
) {
  const projectId = requireEventScopes(request, body.events)
  const url = readOutboundUrl('url', body.url, config.allowPrivateNetworks)
  try {
    const created = { ...body, projectId, url }
    return withSecret(await createProjectWebhook(pool, await keyring(pool), created))
  } catch (error) {
    if (!(error instanceof TooManyWebhooksError)) throw error
    throw badRequest(`A project must have at most ${WEBHOOKS_MAX} webhooks`)
  }
}

async function list({ pool }: Services, request: Request, query: Static<typeof PageQuery>) {
  const { limit, cursor } = readPage(query)
  const projectId = requireEventScopes(request, [])
  const found = await listProjectWebhooks(pool, { projectId, limit: limit + 1, cursor })
  const { page, next } = cutPage(found, limit, ({ createdAt }) => createdAt)
  const { scopes } = identityOf(request)
  const webhooks = page.map((webhook) => {
    const isAllowed = webhook.events.every((type) => scopes.includes(EVENT_SCOPES[type]))
    // An API key without the scopes for all events of a webhook sees only the origin of the webhook's URL, because the
    // path or the query is often a secret of the receiver.
    return isAllowed ? toView(webhook) : { ...toView(webhook), url: new URL(webhook.url).origin }
  })
  return { webhooks, count: page.length, ...next }
}

async function change(
  services: Services,
  request: Request,
  id: string,
  { url, events }: Static<typeof Change>,
) {
  requireEventScopes(request, events ?? [])
  // When a webhook gets a new URL, this URL receives all events of the webhook. Therefore the API key also needs the
  // scopes for the events that the webhook already receives.
  const target = await findTarget(services, request, id)
  const changed = await updateProjectWebhook(services.pool, target, {
    ...(events === undefined ? {} : { events }),
    ...(url === undefined
      ? {}
      : { url: readOutboundUrl('url', url, services.config.allowPrivateNetworks) }),
  })
  if (changed === null) throw await reasonOf(services, request, id)
  return toView(changed)
}

async function rotateSecret(services: Services, request: Request, id: string) {
  const { pool, keyring } = services
  const target = await findTarget(services, request, id)
  const rotated = await rotateProjectWebhook(pool, await keyring(pool), target)
  if (rotated === null) throw await reasonOf(services, request, id)
  return withSecret(rotated)
}

async function remove(services: Services, request: Request, id: string) {
  const target = await findTarget(services, request, id)
  if (!(await deleteProjectWebhook(services.pool, target))) {
    throw await reasonOf(services, request, id)
  }
  return new Response(null, { status: 204 })
}

const withSecret = ({ webhook, secret }: { webhook: ProjectWebhook; secret: string }) => ({
  ...toView(webhook),
  secret,
})

/**
 * Returns a webhook of the project to which the API key belongs. The API key must be allowed to receive all events of
 * the webhook.
 * @throws {ApiError} 403 for a missing scope, 404 for an unknown webhook.
 */
async function findTarget({ pool }: Services, request: Request, id: string) {
  const { scopes } = identityOf(request)
  const events = EVENT_TYPES.filter((type) => scopes.includes(EVENT_SCOPES[type]))
  const target = { projectId: requireEventScopes(request, []), id, events }
  const webhook = await findProjectWebhook(pool, target)
  if (webhook === null) throw missing()
  requireEventScopes(request, webhook.events)
  return target
}

/**
 * Returns the error for a request that could not change a webhook after all. Meanwhile another request has deleted the
 * webhook, or has added an event for which the API key lacks the scope.
 */
const reasonOf = (services: Services, request: Request, id: string): Promise<unknown> =>
  findTarget(services, request, id).then(missing, (error: unknown) => error)

/**
 * Returns the project of an API key if the scopes of the key allow all given events. @throws {ApiError} 403 if the key
 * lacks a scope.
 */
function requireEventScopes(request: Request, events: Static<typeof Events>): string {
  const { projectId, scopes } = identityOf(request)
  if (projectId === null) {
    throw new ApiError(403, 'forbidden', 'A platform key receives no events: use a project key')
  }
  const lacking = events.find((type) => !scopes.includes(EVENT_SCOPES[type]))
  if (lacking === undefined) return projectId
  // A newer version of the service may have stored an event type that this version does not know.
  const scope: Scope | undefined = EVENT_SCOPES[lacking]
  const message =
    scope === undefined
      ? `This version of the service does not know the event ${lacking}`
      : `Missing required scope: ${scope}`
  throw new ApiError(403, 'forbidden', message)
}
