import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { USE_METHODS } from '../../shared/vault/bounds/useMethods.ts'
import { ENCODINGS } from '../../shared/vault/signText.ts'
import { BODY_OMITTED } from '../../shared/vault/useAnswer.ts'
import { HEADERS_MAX, URL_MAX_LENGTH } from '../../shared/vault/useRequest.ts'
import { readIdempotencyKey } from '../http/input/idempotencyKey.ts'
import { operation, Time } from '../http/operation.ts'
import { callerOf } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'
import { NameParams, NameQuery, nameOf } from './vaultDocs.ts'
import { SIGN_ALGORITHMS, signWithCredential } from './vaultSign.ts'
import { readUse, useCredential } from './vaultUse.ts'

const oneOf = <Word extends string>(words: readonly Word[], description: string) =>
  t.Union(
    words.map((word) => t.Literal(word)),
    { description },
  )

/**
 * Describes the HTTP request that the service sends with a secret. The vault operation itself checks the lengths,
 * because MCP tools pass requests of the same form.
 */
export const RequestSchema = t.Object({
  method: t.Optional(oneOf(USE_METHODS, 'The default is POST with a body, and GET without one.')),
  url: t.String({ maxLength: URL_MAX_LENGTH, description: 'The request goes to this https URL.' }),
  headers: t.Optional(
    t.Record(t.String(), t.String(), {
      maxProperties: HEADERS_MAX,
      description:
        'Host, Content-Length and Accept-Encoding are the service’s own. Range and conditions are refused.',
    }),
  ),
  body: t.Optional(
    t.Unknown({
      description: 'A string is sent unchanged. An object or an array is sent as JSON.',
    }),
  ),
})

export const UseSchema = t.Object({
  useId: t.String({ examples: ['use_0a1b2c3d4e5f60718293a4b5'] }),
  name: t.String(),
  state: t.String({
    enum: ['pending', 'answered', 'failed', 'unknown'],
    description:
      '`failed` means that the server got no request. `unknown` means that the server may have got the request once, and may have acted.',
  }),
  response: t.Union([
    t.Object({
      status: t.Integer(),
      statusText: t.String(),
      headers: t.Record(t.String(), t.String()),
      body: t.Union([t.String(), t.Null()]),
      bodyOmitted: t.Union([t.String({ enum: [...BODY_OMITTED] }), t.Null()], {
        description: 'This field says why there is no body.',
      }),
    }),
    t.Null(),
  ]),
  error: t.Union([t.String(), t.Null()]),
  createdAt: Time,
  expiresAt: t.String({ format: 'date-time', description: 'The answer is kept until this time.' }),
})

const EncodingSchema = (what: string) =>
  t.Optional(oneOf(ENCODINGS, `This field names the encoding of ${what}. The default is utf8.`))

export const SignFields = {
  algorithm: oneOf(
    SIGN_ALGORITHMS,
    '`aws-sigv4` signs `request`. The other algorithms sign `text`.',
  ),
  field: t.Optional(
    t.String({
      maxLength: 64,
      description:
        'This field of `data` signs, such as `secret` or `key`. Passwords and TOTP secrets sign nothing.',
    }),
  ),
  keyEncoding: EncodingSchema('the key of HMAC'),
  text: t.Optional(t.String({ maxLength: 256 * 1024 })),
  textEncoding: EncodingSchema('text'),
  request: t.Optional(RequestSchema),
  region: t.Optional(t.String({ maxLength: 64, examples: ['us-east-1'] })),
  service: t.Optional(t.String({ maxLength: 64, examples: ['s3'] })),
}

export const SignedSchema = t.Object({
  algorithm: t.String(),
  signatureHex: t.Optional(t.String()),
  signatureBase64: t.Optional(t.String()),
  publicKeyHex: t.Optional(t.String({ description: 'This value is the Ed25519 public key.' })),
  headers: t.Optional(
    t.Record(t.String(), t.String(), {
      description: 'Add these headers to the request. They sign the request.',
    }),
  ),
})

/** Sets how many seconds a call waits for the end of a request with a secret if the caller names no time. */
const WAIT_DEFAULT_S = 25
const WAIT_MAX_S = 40

const UseQuery = t.Composite([
  NameQuery,
  t.Object({
    timeout: t.Optional(
      t.String({
        pattern: '^(?:[0-9]|[123][0-9]|40)$',
        error: `be a whole number of 0 to ${WAIT_MAX_S}`,
        openapi: { type: 'integer', minimum: 0, maximum: WAIT_MAX_S, default: WAIT_DEFAULT_S },
        description: 'The request waits at most this many seconds for the end.',
      }),
    ),
  }),
])
const waitMsOf = ({ timeout }: { timeout?: string | undefined }) =>
  Number(timeout ?? WAIT_DEFAULT_S) * 1000

const UseParams = t.Composite([
  NameParams,
  t.Object({ useId: t.String({ pattern: '^use_[0-9a-f]{24}$', error: 'be the id of a use' }) }),
])

const EXAMPLE = {
  useId: 'use_0a1b2c3d4e5f60718293a4b5',
  name: 'github',
  state: 'answered',
  response: {
    status: 200,
    statusText: 'OK',
    headers: { 'content-type': 'application/json' },
    body: '{"login":"ada","token":"[masked]"}',
    bodyOmitted: null,
  },
  error: null,
  createdAt: '2026-01-05T09:30:00.000Z',
  expiresAt: '2026-01-05T09:40:01.000Z',
}

const common = { tag: 'Vault', access: 'vault:use' } as const
const pending = { status: 202, description: 'The use has not ended: read it at /uses/{useId}.' }

/**
 * Serves the routes that use a secret in an HTTP request or sign with a secret. None of these routes shows the secret.
 */
export function vaultUseRoutes(services: Services) {
  return new Elysia({ prefix: '/v0/vault/:name' })
    .post(
      '/use',
      async ({ request, params, query, body, set }) => {
        const use = await useCredential(services, callerOf(request), nameOf({ params, query }), {
          given: body.request,
          key: readIdempotencyKey(request.headers.get('idempotency-key')),
          waitMs: waitMsOf(query),
        })
        if (use.state === 'pending') set.status = 202
        return use
      },
      {
        params: NameParams,
        query: UseQuery,
        body: t.Object({ request: RequestSchema }),
        detail: operation({
          ...common,
          summary: 'Send an HTTPS request with the secret filled in',
          description:
            '{{password}}, {{totp}}, {{apiKey}}, {{basicAuth}} and the other fields of the credential stand for their ' +
            'values. A field of data stands only where placement allows it. Host, method and path must be among allowedHosts, ' +
            'allowedMethods and allowedPaths. The answer has [masked] for every form of every secret. No redirect is followed. A request is sent at most once.',
          idempotencyKey: true,
          requestExample: {
            request: {
              method: 'POST',
              url: 'https://github.com/session',
              body: { login: '{{username}}', password: '{{password}}', otp: '{{totp}}' },
            },
          },
          success: {
            status: 200,
            description: 'The use has ended, with an answer or without.',
            schema: UseSchema,
            example: EXAMPLE,
          },
          alsoAnswer: pending,
          errors: {
            403: 'The host, the method, the path or the place of the secret is not allowed',
            404: 'Credential not found',
            409: 'The Idempotency-Key was used for another request',
            410: 'The credential has expired',
            429: 'Too many uses of the project are under way',
          },
        }),
      },
    )
    .get(
      '/uses/:useId',
      async ({ request, params, query, set }) => {
        const use = await readUse(services, callerOf(request), nameOf({ params, query }), {
          id: params.useId,
          waitMs: waitMsOf(query),
        })
        if (use.state === 'pending') set.status = 202
        return use
      },
      {
        params: UseParams,
        query: UseQuery,
        detail: operation({
          ...common,
          summary: 'Get a use with its answer',
          description: 'For ten minutes after its end.',
          success: {
            status: 200,
            description: 'The use has ended.',
            schema: UseSchema,
            example: EXAMPLE,
          },
          alsoAnswer: pending,
          errors: { 404: 'Use not found' },
        }),
      },
    )
    .post(
      '/sign',
      ({ request, params, query, body }) =>
        signWithCredential(services, callerOf(request), nameOf({ params, query }), body),
      {
        params: NameParams,
        query: NameQuery,
        body: t.Object(SignFields),
        detail: operation({
          ...common,
          summary: 'Sign with a key of the credential',
          description:
            'HMAC-SHA256 and Ed25519 sign a text, AWS Signature Version 4 a request. A session token comes as ' +
            '{{sessionToken}}: a use fills it in.',
          requestExample: { algorithm: 'hmac-sha256', field: 'secret', text: 'POST /orders' },
          success: {
            status: 200,
            description: 'The signature.',
            schema: SignedSchema,
            example: {
              algorithm: 'hmac-sha256',
              signatureHex: 'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7',
              signatureBase64: 'sDRMYdjbOFNcqK/OrwvxK4gdwgDJgz2nJuk3bC4yz/c=',
            },
          },
          errors: {
            403: 'The host, the method or the path is not allowed',
            404: 'Credential not found',
            410: 'The credential has expired',
          },
        }),
      },
    )
}
