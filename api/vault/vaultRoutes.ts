import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import {
  CREDENTIAL_TYPES,
  DATA_MAX_BYTES,
  describeShape,
  METADATA_MAX_BYTES,
} from '../../shared/vault/credential.ts'
import { operation, PageQuery, PartOf } from '../http/operation.ts'
import { callerOf } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'
import {
  currentTotp,
  deleteCredential,
  listCredentials,
  protectCredential,
  readCredential,
  storeCredential,
  takeBackupCode,
} from './vault.ts'
import { ProtectionFields } from './vaultBounds.ts'
import {
  EXAMPLE_ITEM,
  EXAMPLE_OPEN,
  EXAMPLE_STORED,
  ItemSchema,
  NameParams,
  NameQuery,
  nameOf,
  OpenSchema,
  StoredSchema,
} from './vaultDocs.ts'

const SHAPES = CREDENTIAL_TYPES.filter((type) => describeShape(type) !== '')
  .map((type) => `${type}: ${describeShape(type)}`)
  .join('; ')

/**
 * Describes any JSON object in a request body. The members of `data` and `metadata` have no schema, because they must
 * stay unchanged. The vault operation checks them.
 */
const anyObject = (description: string) =>
  t.Unknown({ openapi: { type: 'object', additionalProperties: true, description } })

const PutBody = t.Object({
  ...ProtectionFields,
  type: t.String({
    error: `be one of ${CREDENTIAL_TYPES.join(', ')}`,
    openapi: { type: 'string', enum: [...CREDENTIAL_TYPES] },
  }),
  data: anyObject(
    `The secret fields, at least one; at most ${DATA_MAX_BYTES} bytes of JSON. Any type may hold totp, a TOTP secret ` +
      '(Base32 or an otpauth:// URI), and backupCodes, an array of strings.',
  ),
  metadata: t.Optional(
    anyObject(
      `These fields are not secret, and are stored unencrypted. They have at most ${METADATA_MAX_BYTES} bytes.`,
    ),
  ),
  expiresAt: t.Optional(
    t.Unknown({
      openapi: {
        type: ['string', 'null'],
        maxLength: 40,
        description:
          'The time is ISO 8601 with a zone, or a date. After this time the secret cannot be read.',
      },
    }),
  ),
})

const ListQuery = t.Composite([
  PageQuery,
  t.Object({
    q: PartOf('the name'),
    type: t.Optional(t.Union(CREDENTIAL_TYPES.map((type) => t.Literal(type)))),
    expiringWithin: t.Optional(
      t.String({
        maxLength: 16,
        description:
          'The list holds only credentials that have expired or that expire within this time, the soonest first. Write a whole number and s, m, h, d or w.',
        examples: ['7d'],
      }),
    ),
  }),
])

const read = { tag: 'Vault', access: 'vault:read' } as const
const write = { tag: 'Vault', access: 'vault:write' } as const
const errors = { 404: 'Credential not found' }
const expired = { 410: 'The credential has expired' }
const withheld = { 403: 'The credential is revealed to its owner only' }

/** Serves the credentials of the vault by name. */
export function vaultRoutes(services: Services) {
  return new Elysia({ prefix: '/v0/vault' })
    .use(listAndStore(services))
    .use(readAndDelete(services))
    .use(oneTimeCodes(services))
}

function listAndStore(services: Services) {
  return new Elysia()
    .get('', ({ request, query }) => listCredentials(services, callerOf(request), query), {
      query: ListQuery,
      detail: operation({
        ...read,
        summary: 'List credentials, newest first',
        description:
          'Shows no secret data. Without limit the answer holds all credentials, up to 8 MB of metadata. There are more ' +
          'credentials exactly when the answer has nextPageToken.',
        success: {
          status: 200,
          description: 'The credentials.',
          schema: t.Object({
            credentials: t.Array(ItemSchema),
            count: t.Integer(),
            nextPageToken: t.Optional(t.String()),
          }),
          example: { credentials: [EXAMPLE_ITEM], count: 1 },
        },
      }),
    })
    .put(
      '/:name',
      ({ request, params, query, body }) =>
        storeCredential(services, callerOf(request), nameOf({ params, query }), body),
      {
        params: NameParams,
        query: NameQuery,
        body: PutBody,
        detail: operation({
          ...write,
          summary: 'Store a credential, or overwrite the one with the same name',
          description:
            'An overwrite is a new version; it keeps no field of the old version but reveal. With reveal owner, or bounds of ' +
            'the owner, absent bounds stay, and a key widens none. The last ten versions are kept. Known ' +
            `fields must have their type; other fields are allowed. Known fields: ${SHAPES}.`,
          requestExample: {
            type: 'LOGIN',
            data: { password: 'correct horse', totp: 'JBSWY3DPEHPK3PXP' },
            metadata: { uri: 'https://github.com', username: 'ada' },
          },
          success: {
            status: 200,
            description: 'The credential, without its data.',
            schema: StoredSchema,
            example: EXAMPLE_STORED,
          },
          errors: { 403: 'Only the owner may widen it' },
        }),
      },
    )
}

function readAndDelete(services: Services) {
  return new Elysia()
    .get(
      '/:name',
      ({ request, params, query }) =>
        readCredential(services, callerOf(request), nameOf({ params, query })),
      {
        params: NameParams,
        query: NameQuery,
        detail: operation({
          ...read,
          summary: 'Get a credential with its secret',
          description:
            'data holds unused and used backup codes. It holds no TOTP secret; read the codes at /totp. /v0/logs records ' +
            'every read.',
          success: {
            status: 200,
            description: 'The credential, decrypted.',
            schema: OpenSchema,
            example: EXAMPLE_OPEN,
          },
          errors: { ...errors, ...expired, ...withheld },
        }),
      },
    )
    .patch(
      '/:name',
      ({ request, params, query, body }) =>
        protectCredential(services, callerOf(request), nameOf({ params, query }), body),
      {
        params: NameParams,
        query: NameQuery,
        body: t.Object(ProtectionFields),
        detail: operation({
          ...write,
          summary: 'Change who reads a credential, and where it may be used',
          description:
            'The bounds (allowedHosts, allowedMethods, allowedPaths, placement) belong to the current version, reveal to the ' +
            'credential. A project key may narrow them: reveal to owner, each bound to less. Only the owner widens them.',
          requestExample: { reveal: 'owner', allowedHosts: ['github.com'] },
          success: {
            status: 200,
            description: 'The credential, without its data.',
            schema: ItemSchema,
            example: { ...EXAMPLE_ITEM, reveal: 'owner' },
          },
          errors: { ...errors, 403: 'Only the owner may widen it' },
        }),
      },
    )
    .delete(
      '/:name',
      async ({ request, params, query }) => {
        await deleteCredential(services, callerOf(request), nameOf({ params, query }))
        return new Response(null, { status: 204 })
      },
      {
        params: NameParams,
        query: NameQuery,
        detail: operation({
          ...write,
          summary: 'Delete a credential with all its versions permanently',
          success: { status: 204, description: 'The credential and its data keys are deleted.' },
          errors,
        }),
      },
    )
}

function oneTimeCodes(services: Services) {
  return new Elysia()
    .get(
      '/:name/totp',
      ({ request, params, query }) =>
        currentTotp(services, callerOf(request), nameOf({ params, query })),
      {
        params: NameParams,
        query: NameQuery,
        detail: operation({
          ...read,
          summary: 'Get the current one-time code',
          success: {
            status: 200,
            description: 'The code (RFC 6238); remaining is its validity in seconds.',
            schema: t.Object({
              code: t.String(),
              remaining: t.Integer(),
              backupCodesRemaining: t.Integer(),
            }),
            example: { code: '492039', remaining: 17, backupCodesRemaining: 8 },
          },
          errors: { ...errors, ...expired, ...withheld },
        }),
      },
    )
    .post(
      '/:name/totp/backup',
      ({ request, params, query }) =>
        takeBackupCode(services, callerOf(request), nameOf({ params, query })),
      {
        params: NameParams,
        query: NameQuery,
        detail: operation({
          ...write,
          summary: 'Take a backup code',
          description:
            'Answers each code once. The code moves from data.backupCodes to data.usedBackupCodes.',
          success: {
            status: 200,
            description: 'The code, and the number of unused codes.',
            schema: t.Object({ code: t.String(), remaining: t.Integer() }),
            example: { code: 'a1b2-c3d4', remaining: 7 },
          },
          errors: { ...errors, ...expired, ...withheld },
        }),
      },
    )
}
