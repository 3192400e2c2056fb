import type { Keyring, Sealed, SecretContext } from '../../shared/vault/envelope.ts'
import { type Pool, transaction } from '../db.ts'

/** Lists the columns of seller_endpoints that hold the secret of the endpoint's webhook. */
export type SecretRow = {
  webhook_secret: string | null
  webhook_key_id: string | null
  webhook_wrapped_key: Buffer | null
  webhook_ciphertext: Buffer | null
}

/**
 * Holds the SQL condition that the endpoint `e` has a webhook secret. Older versions of the service stored a webhook
 * secret in plain text instead of encrypted.
 */
export const HAS_SECRET = `(e.webhook_ciphertext is not null or e.webhook_secret is not null)`

/** Holds the SQL assignments that remove an endpoint's webhook secret. */
export const NO_SECRET = `webhook_secret = null, webhook_key_id = null, webhook_wrapped_key = null,
  webhook_ciphertext = null`

/**
 * Describes the stored form of a webhook secret. The form `plain` comes from older versions of the service, which did
 * not encrypt webhook secrets.
 */
export type StoredSecret = { plain: string } | { sealed: Sealed }

/** Returns the stored webhook secret of a database row. Null means that the row has no webhook secret. */
export function storedSecret(row: SecretRow): StoredSecret | null {
  const { webhook_key_id: keyId, webhook_wrapped_key: wrappedKey } = row
  if (keyId !== null && wrappedKey !== null && row.webhook_ciphertext !== null) {
    return { sealed: { keyId, wrappedKey, ciphertext: row.webhook_ciphertext } }
  }
  return row.webhook_secret === null ? null : { plain: row.webhook_secret }
}

/** Returns the encryption context (associated data) of a webhook secret. */
export const webhookContext = (projectId: string, endpointId: string): SecretContext => ({
  purpose: 'webhook-secret',
  projectId,
  name: endpointId,
  version: 1,
})

/** Encrypts the webhook secret of an endpoint. */
export const sealWebhookSecret = (
  keyring: Keyring,
  endpoint: { projectId: string; id: string; secret: string },
): Sealed =>
  keyring.seal(Buffer.from(endpoint.secret), webhookContext(endpoint.projectId, endpoint.id))

/**
 * Decrypts the webhook secret of an endpoint. @throws {UnknownMasterKeyError} if the process lacks the master key of
 * the secret. @throws {BrokenSealError} if the secret cannot be decrypted.
 */
export const openWebhookSecret = (
  keyring: Keyring,
  endpoint: { projectId: string; id: string; secret: StoredSecret },
): string =>
  'plain' in endpoint.secret
    ? endpoint.secret.plain
    : keyring
        .open(endpoint.secret.sealed, webhookContext(endpoint.projectId, endpoint.id))
        .toString()

const BATCH = 100

/**
 * Encrypts the plain webhook secrets that older versions stored. A migration cannot do this, because it has no master
 * keys. Each batch is one transaction and skips locked rows. Several processes may run the function at the same time,
 * and a process may repeat it.
 * @returns the number of newly encrypted webhook secrets.
 */
export async function encryptPlainWebhookSecrets(pool: Pool, keyring: Keyring): Promise<number> {
  let total = 0
  for (let done = BATCH; done === BATCH; total += done) {
    done = await transaction(pool, async (db) => {
      const { rows } = await db.query<{ id: string; project_id: string; webhook_secret: string }>(
        `select id, project_id, webhook_secret from seller_endpoints
         where webhook_secret is not null order by row limit ${BATCH} for no key update skip locked`,
      )
      const sealed = rows.map((row) =>
        sealWebhookSecret(keyring, {
          projectId: row.project_id,
          id: row.id,
          secret: row.webhook_secret,
        }),
      )
      await db.query(
        `update seller_endpoints e set webhook_secret = null, webhook_key_id = n.key_id,
           webhook_wrapped_key = n.wrapped_key, webhook_ciphertext = n.ciphertext
         from unnest($1::text[], $2::text[], $3::bytea[], $4::bytea[]) n (id, key_id, wrapped_key, ciphertext)
         where e.id = n.id`,
        [
          rows.map(({ id }) => id),
          sealed.map(({ keyId }) => keyId),
          sealed.map(({ wrappedKey }) => wrappedKey),
          sealed.map(({ ciphertext }) => ciphertext),
        ],
      )
      return rows.length
    })
  }
  return total
}
