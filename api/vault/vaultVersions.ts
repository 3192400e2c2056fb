import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { operation } from '../http/operation.ts'
import { callerOf } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'
import { listVersions, readVersion, restoreVersion } from './vaultOperations.ts'
import {
  EXAMPLE_OPEN_VERSION,
  EXAMPLE_STORED,
  EXAMPLE_VERSION,
  NameParams,
  OpenVersionSchema,
  StoredSchema,
  VersionSchema,
} from './vaultView.ts'

const VersionParams = t.Composite([
  NameParams,
  t.Object({
    version: t.String({
      pattern: '^[1-9][0-9]{0,8}$',
      error: 'be a whole number of at least 1',
      openapi: { type: 'integer', minimum: 1 },
    }),
  }),
])

const errors = { 404: 'Version not found', 410: 'The version has expired' }

/** What a name stood for before. */
export function vaultVersionRoutes(services: Services) {
  return new Elysia({ prefix: '/v0/vault/:name/versions' })
    .get('', ({ request, params }) => listVersions(services, callerOf(request), params.name), {
      params: NameParams,
      detail: operation({
        tag: 'Vault',
        access: 'vault:read',
        summary: 'List the versions of a credential, newest first',
        description: 'At most ten, the current one among them; never with secret data.',
        success: {
          status: 200,
          description: 'The versions.',
          schema: t.Object({ versions: t.Array(VersionSchema), count: t.Integer() }),
          example: { versions: [EXAMPLE_VERSION], count: 1 },
        },
        errors: { 404: 'Credential not found' },
      }),
    })
    .get(
      '/:version',
      ({ request, params }) =>
        readVersion(services, callerOf(request), params.name, Number(params.version)),
      {
        params: VersionParams,
        detail: operation({
          tag: 'Vault',
          access: 'vault:read',
          summary: 'Get one version with its secret',
          description:
            'A TOTP secret is not shown. A version is expired when it is past its own expiresAt, or the credential is ' +
            'past its current one.',
          success: {
            status: 200,
            description: 'The version, decrypted.',
            schema: OpenVersionSchema,
            example: EXAMPLE_OPEN_VERSION,
          },
          errors,
        }),
      },
    )
    .post(
      '/:version/restore',
      ({ request, params }) =>
        restoreVersion(services, callerOf(request), params.name, Number(params.version)),
      {
        params: VersionParams,
        detail: operation({
          tag: 'Vault',
          access: 'vault:write',
          summary: 'Make an old version the newest',
          description:
            'Type, data, metadata and expiresAt come back as a new version. A backup code that the current version lists ' +
            'as used stays used.',
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
