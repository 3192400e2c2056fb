import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { didWeb, receiptDidDocument, receiptJwks } from '../../shared/till/receiptKey.ts'
import { listReceiptKeys } from '../../sql/till/receiptKeys.ts'
import { notFound } from '../http/errors.ts'
import { operation } from '../http/operation.ts'
import type { Services } from '../http/services.ts'

/** Seconds. Clients see a rotation within this time. */
const CACHE_CONTROL = 'public, max-age=60'

/** The public keys of receipts, retired ones included. */
export function wellKnownRoutes({ pool, config }: Services) {
  const did = didWeb(config.http.baseUrl)
  return new Elysia()
    .get(
      '/.well-known/jwks.json',
      async ({ set }) => {
        set.headers['cache-control'] = CACHE_CONTROL
        return receiptJwks(await listReceiptKeys(pool))
      },
      {
        detail: operation({
          summary: 'The receipt keys as a JSON Web Key Set',
          tag: 'Payments',
          access: 'public',
          success: {
            status: 200,
            description: 'Ed25519 keys, the signing one first; retired ones stay.',
            schema: t.Object({ keys: t.Array(t.Object({ kid: t.String(), x: t.String() })) }),
          },
        }),
      },
    )
    .get(
      '/.well-known/did.json',
      async ({ set }) => {
        const keys = (await listReceiptKeys(pool)).filter((key) => key.did === did)
        if (keys.length === 0) throw notFound()
        set.headers['cache-control'] = CACHE_CONTROL
        return receiptDidDocument(keys)
      },
      {
        detail: operation({
          summary: 'The receipt keys as a DID document',
          tag: 'Payments',
          access: 'public',
          success: {
            status: 200,
            description: 'The did:web document of this service.',
            schema: t.Object({ id: t.String() }),
          },
          errors: { 404: 'No worker has published a key yet' },
        }),
      },
    )
}
