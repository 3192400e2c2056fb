import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { didWeb, receiptDidDocument, receiptJwks } from '../../../shared/till/receiptKey.ts'
import { findProject } from '../../../sql/account/projects/projects.ts'
import { listPaidUrls } from '../../../sql/till/endpoints/discovery.ts'
import { listReceiptKeys } from '../../../sql/till/payments/receiptKeys.ts'
import { notFound } from '../../http/errors.ts'
import { operation } from '../../http/operation.ts'
import { widestNetwork } from '../../http/requestState.ts'
import type { Services } from '../../http/services.ts'

/**
 * Sets for how many seconds caches may keep the public keys, so that clients learn of a key rotation within this time.
 */
const CACHE_CONTROL = 'public, max-age=60'

const RESOURCES_MAX = 1_000
const Key = t.Object({
  kty: t.Literal('OKP'),
  crv: t.Literal('Ed25519'),
  x: t.String(),
  alg: t.String({ examples: ['EdDSA'] }),
})
const DidDocument = t.Object({
  id: t.String({ examples: ['did:web:till.example.com'] }),
  controller: t.Optional(t.String({ description: 'The DID of the service; of a project only.' })),
  verificationMethod: t.Array(
    t.Object({
      id: t.String(),
      type: t.String({ examples: ['JsonWebKey2020', 'Multikey'] }),
      controller: t.String(),
      publicKeyJwk: t.Optional(Key),
      publicKeyMultibase: t.String({ examples: ['z6Mk…'] }),
    }),
    {
      description:
        'Each key twice: as JsonWebKey2020, then as Multikey. Every method has the multibase form.',
    },
  ),
  assertionMethod: t.Array(t.String()),
})

/**
 * Serves the public keys with which anybody can verify receipts. Retired keys are among them, because older receipts
 * must stay verifiable.
 */
export function wellKnownRoutes({ pool, config, strangerReads }: Services) {
  const did = didWeb(config.http.baseUrl)
  const describe = { tag: 'Payments', access: 'public', cors: true } as const
  /** Returns the public keys of this service. @throws {ApiError} 404 if no worker has published a key yet. */
  const ownKeys = async () => {
    const keys = (await listReceiptKeys(pool)).filter((key) => key.did === did)
    if (keys.length === 0) throw notFound()
    return keys
  }
  return new Elysia()
    .get(
      '/.well-known/x402',
      async ({ request, set }) => {
        set.headers['cache-control'] = CACHE_CONTROL
        const { urls, total } = await strangerReads.run(widestNetwork(request), (db) =>
          listPaidUrls(db, RESOURCES_MAX),
        )
        const discovery = `${config.http.baseUrl}/v0/x402/discovery/resources`
        return { version: 1, resources: [...new Set(urls)], total, discovery }
      },
      {
        detail: operation({
          ...describe,
          summary: 'The paid resources of this service',
          description: `The first ${RESOURCES_MAX} of the public list. discovery lists all of them, with prices and pages.`,
          success: {
            status: 200,
            description: 'The URLs.',
            schema: t.Object({
              version: t.Literal(1),
              resources: t.Array(t.String()),
              total: t.Integer(),
              discovery: t.String(),
            }),
            example: {
              version: 1,
              resources: ['https://api.example.com/weather'],
              total: 1,
              discovery: 'https://till.example.com/v0/x402/discovery/resources',
            },
          },
          errors: { 429: 'Too many requests from this network' },
        }),
      },
    )
    .get(
      '/.well-known/jwks.json',
      async ({ set }) => {
        set.headers['cache-control'] = CACHE_CONTROL
        return receiptJwks(await listReceiptKeys(pool))
      },
      {
        detail: operation({
          ...describe,
          summary: 'The receipt keys as a JSON Web Key Set',
          success: {
            status: 200,
            description: 'Ed25519 keys, the signing one first; retired ones stay.',
            schema: t.Object({
              keys: t.Array(
                t.Composite([Key, t.Object({ kid: t.String(), use: t.Literal('sig') })]),
              ),
            }),
          },
        }),
      },
    )
    .get(
      '/.well-known/did.json',
      async ({ set }) => {
        const keys = await ownKeys()
        set.headers['cache-control'] = CACHE_CONTROL
        return receiptDidDocument(keys)
      },
      {
        detail: operation({
          ...describe,
          summary: 'The receipt keys as a DID document',
          success: {
            status: 200,
            description: 'The did:web document of this service.',
            schema: DidDocument,
          },
          errors: { 404: 'No worker has published a key yet' },
        }),
      },
    )
    .get(
      '/identities/:identityId/did.json',
      async ({ params, set }) => {
        const [keys, project] = await Promise.all([ownKeys(), findProject(pool, params.identityId)])
        if (project === null) throw notFound()
        set.headers['cache-control'] = CACHE_CONTROL
        const subject = `${did}:identities:${encodeURIComponent(project.id)}`
        return receiptDidDocument(keys, { subject })
      },
      {
        params: t.Object({ identityId: t.String({ minLength: 1, maxLength: 100 }) }),
        detail: operation({
          ...describe,
          summary: 'The DID document of a project',
          description:
            'Its receipts are signed by the keys of the service, which controls the document.',
          success: { status: 200, description: 'A did:web document.', schema: DidDocument },
          errors: { 404: 'No such project, or no worker has published a key yet' },
        }),
      },
    )
}
