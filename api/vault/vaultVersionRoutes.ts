import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { operation } from '../http/operation.ts'
import { callerOf } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'
import { listVersions, readVersion, restoreVersion } from './vault.ts'
import {
  EXAMPLE_OPEN_VERSION,
  EXAMPLE_STORED,
  EXAMPLE_VERSION,
  NameParams,
  NameQuery,
  nameOf,
  OpenVersionSchema,
  StoredSchema,
  VersionSchema,
} from './vaultDocs.ts'

const VersionParams = t.Composite([
  NameParams,
  t.Object({
    version: t.String({
      pattern: '^[1-9][0-9]{0,8}$',
      error: 'be a whole number of at least 1',
      openapi: { type: 'integer', minimum: 1, maximum: 999_999_999 },
    }),
  }),
])

const errors = { 404: 'Version not found', 410: 'The version has expired' }

/** Serves the older versions of a credential. */
export function vaultVersionRoutes(services: Services) {
  return new Elysia({ prefix: '/v0/vault/:name/versions' })
    .get(
      '',
      ({ request, params, query }) =>
        listVersions(services, callerOf(request), nameOf({ params, query })),
      {
        params: NameParams,
        query: NameQuery,
        detail: operation({
          tag: 'Vault',
          access: 'vault:read',
          summary: 'List the versions of a credential, newest first',
          description: 'At most ten versions, including the current one. Shows no secret data.',
          success: {
            status: 200,
            description: 'The versions.',
            schema: t.Object({ versions: t.Array(VersionSchema), count: t.Integer() }),
            example: { versions: [EXAMPLE_VERSION], count: 1 },
          },
          errors: { 404: 'Credential not found' },
        }),
      },
    )
    .get(
      '/:version',
      ({ request, params, query }) =>
        readVersion(services, callerOf(request), nameOf({ params, query }), Number(params.version)),
      {
        params: VersionParams,
        query: NameQuery,
        detail: operation({
          tag: 'Vault',
          access: 'vault:read',
          summary: 'Get one version with its secret',
          description:
            'Shows no TOTP secret. A version has expired when its own expiresAt or the expiresAt of the current version has ' +
            'passed.',
          success: {
            status: 200,
            description: 'The version, decrypted.',
            schema: OpenVersionSchema,
            example: EXAMPLE_OPEN_VERSION,
          },
          errors: { ...errors, 403: 'The credential is revealed to its owner only' },
        }),
      },
    )
    .post(
      '/:version/restore',
      ({ request, params, query }) =>
        restoreVersion(
          services,
          callerOf(request),
          nameOf({ params, query }),
          Number(params.version),
        ),
      {
        params: VersionParams,
        query: NameQuery,
        detail: operation({
          tag: 'Vault',
          access: 'vault:write',
          summary: 'Make an old version the newest',
          description:
            'Copies type, data, metadata and expiresAt into a new version. Backup codes that this version or a later one has ' +
            'used stay used.',
          success: {
            status: 200,
            description: 'The credential, without its data.',
            schema: StoredSchema,
            example: { ...EXAMPLE_STORED, version: 3 },
          },
          errors,
        }),
      },
    )
}
