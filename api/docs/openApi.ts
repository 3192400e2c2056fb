import type { TSchema } from '@sinclair/typebox'
import type { AnyElysia } from 'elysia'
import { PROJECT_SCOPES } from '../../shared/scopes.ts'
import { BODY_MAX_BYTES } from '../http/input/body.ts'
import { ErrorBody, type Operation } from '../http/operation.ts'

type Json = Record<string, unknown>

/** Describes an operation object of OpenAPI 3.1, with the fields that this service writes. */
export type OperationObject = {
  operationId: string
  summary: string
  description: string
  tags: string[]
  parameters?: Json[]
  requestBody?: Json
  responses: Record<string, Json>
  security?: Json[]
}

/** Describes an OpenAPI 3.1 document. */
export type OpenApiDocument = {
  openapi: string
  info: Json
  servers: Json[]
  tags: { name: string; description: string }[]
  paths: Record<string, Record<string, OperationObject>>
  components: Json
}

const TAGS: Record<Operation['tag'], string> = {
  Messages: 'The mail of an inbox: list, read, label, send, reply.',
  Drafts: 'Mail that is being written.',
  Threads: 'Conversations.',
  Vault: 'Credentials, encrypted, addressed by name; one-time codes; versions.',
  Logs: 'The audit log: actor, action, time.',
  Purse: 'Pay for requests, within the mandates of the owner (x402 versions 1 and 2).',
  Sellers: 'The endpoints that a seller charges for, with their prices and webhooks.',
  Rules: 'The addresses that an inbox accepts mail from, sends to and replies to.',
  Events: 'The live events of a project.',
  Webhooks: 'Registered URLs for events, their deliveries, and replay.',
  Payments: 'Ask for USDC, redeem payments, read records and receipts (x402 versions 1 and 2).',
  Identity: 'The project or platform of a key.',
  Platform: 'Projects: create, change, rotate keys, delete. For platform keys.',
  Service: 'Health and documentation of the service itself.',
}

/** Builds the OpenAPI document from the input schemas and the `detail` objects of the routes. */
export function openApiDocument(app: AnyElysia, baseUrl: string): OpenApiDocument {
  const paths: OpenApiDocument['paths'] = {}
  for (const { method, path, hooks } of app.routes) {
    const template = path.replace(/:(\w+)/g, '{$1}')
    paths[template] ??= {}
    paths[template][method.toLowerCase()] = operationObject(method, template, hooks)
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Purser',
      version: '0',
      description:
        'An email inbox, a vault and a till for software agents. Every list is paged: pass nextPageToken back as ' +
        'pageToken until it is absent.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: baseUrl }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths,
    components: {
      schemas: { Error: plain(ErrorBody) },
      securitySchemes: {
        key: {
          type: 'http',
          scheme: 'bearer',
          description: `A project key (loid-…) with the scope of the operation (${PROJECT_SCOPES.join(', ')}), or a platform key (lopk-…).`,
        },
      },
    },
  }
}

const idempotencyKey = (required: boolean): Json => ({
  name: 'Idempotency-Key',
  in: 'header',
  required,
  description:
    '1 to 255 visible ASCII characters. For 24 hours, or longer if the operator says so, the same key and request get the first answer again.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
})

type Hooks = { detail?: unknown; params?: TSchema; query?: TSchema; body?: TSchema }

function operationObject(method: string, template: string, hooks: Hooks): OperationObject {
  const detail = hooks.detail as Operation
  const { access, success } = detail
  const scope = access === 'public' || access === 'key' ? '' : ` Scope: \`${access}\`.`
  const parameters = [
    ...parameterObjects('path', hooks.params),
    ...parameterObjects('query', hooks.query),
    ...(detail.idempotencyKey ? [idempotencyKey(detail.idempotencyKey === 'required')] : []),
  ]
  return {
    operationId: operationId(method, template),
    summary: detail.summary,
    description: `${detail.description ?? ''}${scope}`.trim(),
    tags: [detail.tag],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(hooks.body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            content: json(requestSchema(plain(hooks.body), detail), detail.requestExample),
          },
        }),
    responses: {
      ...errorResponses(method, detail, hooks),
      ...Object.fromEntries(
        [success, ...(detail.alsoAnswer === undefined ? [] : [detail.alsoAnswer])].map(
          ({ status, description }) => [
            status,
            { description, ...(status === 204 ? {} : successContent(success)) },
          ],
        ),
      ),
    },
    security: access === 'public' ? [] : [{ key: access === 'key' ? [] : [access] }],
  }
}

/**
 * Returns the schema of a request body with `additionalProperties: false` at each object, because the API refuses
 * unknown fields. Public routes, and routes with `openBody`, accept any field, so their schemas stay as they are.
 */
function requestSchema(schema: unknown, { access, openBody }: Operation): unknown {
  if (access === 'public' || openBody) return schema
  return JSON.parse(JSON.stringify(schema), (_, value) => {
    if (value?.type !== 'object' || value.properties === undefined) return value
    return { additionalProperties: false, ...value }
  })
}

function successContent({ schema, example, contentType }: Operation['success']): Json {
  if (schema === undefined) return {}
  const shown = { schema: plain(schema), ...(example === undefined ? {} : { example }) }
  return { content: { [contentType ?? 'application/json']: shown } }
}

/**
 * Makes the OpenAPI id of an operation from its method and path. For example, `GET /v0/messages/{messageId}` becomes
 * `getMessagesByMessageId`.
 */
function operationId(method: string, template: string): string {
  const words = template
    .replace(/^\/v0/, '')
    .split(/[/.-]/)
    .filter((part) => part !== '')
    .map((part) => (part.startsWith('{') ? `by-${part.slice(1, -1)}` : part))
    .flatMap((part) => part.split('-'))
  return method.toLowerCase() + words.map((word) => word[0]!.toUpperCase() + word.slice(1)).join('')
}

function parameterObjects(place: 'path' | 'query', schema: TSchema | undefined): Json[] {
  return Object.entries((schema?.properties ?? {}) as Record<string, TSchema>).map(
    ([name, property]) => {
      const { description, ...rest } = plain(property) as Json
      return {
        name,
        in: place,
        required: place === 'path' || (schema?.required ?? []).includes(name),
        ...(description === undefined ? {} : { description }),
        schema: rest,
      }
    },
  )
}

function errorResponses(method: string, detail: Operation, hooks: Hooks): Record<string, Json> {
  const { access, errors = {} } = detail
  // A request with any method but GET may have a body. Therefore it can cause errors about its body, even if the
  // operation needs no body.
  const readsBody = method !== 'GET'
  // A public operation without a schema for path and query accepts any parameters. Therefore its URL never causes a
  // 400.
  const isLenient = access === 'public' && hooks.query === undefined && hooks.params === undefined
  const described: Record<number, string | undefined> = {
    400:
      isLenient && !readsBody
        ? undefined
        : 'An input is invalid; message names it and its requirement',
    401: access === 'public' ? undefined : 'Missing, malformed or unknown key',
    403: access === 'public' || access === 'key' ? undefined : `Missing required scope: ${access}`,
    409: detail.idempotencyKey ? 'The Idempotency-Key was used for another request' : undefined,
    408: readsBody ? 'The body arrives too slowly' : undefined,
    413: readsBody ? `The body is larger than ${bodyLimit(detail)}` : undefined,
    415: readsBody ? 'A body that is not JSON' : undefined,
    429: access === 'public' ? undefined : 'Too many requests; Retry-After is the wait in seconds',
    500: 'Something went wrong',
    503: 'The database cannot be reached; Retry-After is the wait in seconds',
    ...errors,
  }
  return Object.fromEntries(
    Object.entries(described).flatMap(([status, description]) =>
      description === undefined
        ? []
        : [
            [
              status,
              { description, content: json({ $ref: '#/components/schemas/Error' }, undefined) },
            ],
          ],
    ),
  )
}

const bodyLimit = ({ bodyMaxBytes, largeFor }: Operation): string =>
  largeFor === undefined || bodyMaxBytes === undefined
    ? `${bodyMaxBytes ?? BODY_MAX_BYTES} bytes`
    : `${BODY_MAX_BYTES} bytes, with ${largeFor} ${bodyMaxBytes}`

const json = (schema: unknown, example: unknown): Json => ({
  'application/json': { schema, ...(example === undefined ? {} : { example }) },
})

/**
 * Returns a TypeBox schema as plain JSON Schema, without symbols and `error` texts. If a schema has the member
 * `openapi`, the document shows this member instead of the schema. Some schemas need this, because they exist only to
 * check a query string. A property of an object may have the name `openapi` or `error`, because property names are not
 * schema keywords.
 */
export function plain(schema: TSchema): unknown {
  return JSON.parse(
    JSON.stringify(schema, (key, value) => {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
      if (key === 'properties') return value
      const { error, openapi, pattern, ...rest } = value as Json
      if (openapi !== undefined) return { ...rest, ...(openapi as Json) }
      return pattern === undefined ? rest : { ...rest, pattern }
    }),
  )
}
