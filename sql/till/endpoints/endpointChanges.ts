import { newEndpointId, newWebhookSecret } from '../../../shared/ids.ts'
import type { Metadata } from '../../../shared/till/bazaar/metadata.ts'
import type { Keyring } from '../../../shared/vault/envelope.ts'
import { type Client, type Pool, type Queryable, transaction } from '../../db.ts'
import { abortDeliveriesOf } from '../../events/deliveryLog.ts'
import { HAS_SECRET, NO_SECRET, sealWebhookSecret } from '../../events/webhookSecrets.ts'
import { checkEndpoint, queueEndpointCheck } from './endpointChecks.ts'
import {
  ENDPOINT_COLUMNS,
  type Endpoint,
  type EndpointRow,
  findEndpointByResource,
  toEndpoint,
} from './endpoints.ts'

/** Limits the number of endpoints of one project. Deleted endpoints do not count. */
export const ENDPOINTS_MAX = 1_000

/** Reports that a project already has {@link ENDPOINTS_MAX} endpoints that are not deleted. */
export class TooManyEndpointsError extends Error {}
/** Reports that the caller asked for a webhook secret for an endpoint that has no webhook URL. */
export class SecretWithoutWebhookError extends Error {}

/** Describes a change of a seller's endpoint. Fields that are absent stay as they are. */
export type EndpointChange = {
  urlPattern?: string
  priceAtomic?: bigint
  network?: string
  description?: string | null
  /** Holds the URL of the endpoint's webhook. The value null removes the webhook and its secret. */
  webhookUrl?: string | null
  webhookSecret?: string
  discoverable?: boolean
  /** Tells whether the endpoint sells. The value false pauses the endpoint. */
  active?: boolean
  metadata?: MetadataChange
  /**
   * Holds the URL of the endpoint's OpenAPI document. The value null removes the document, and all metadata that a
   * worker process has read from it.
   */
  openApiUrl?: string | null
}

/** Holds changes of an endpoint's metadata. The value null removes a part of the metadata. */
export type MetadataChange = { [Part in keyof Metadata]?: Metadata[Part] | null }

/**
 * Describes an endpoint after a change. The field `newSecret` holds the endpoint's new webhook secret, which no other
 * API response shows. Null means that the secret is unchanged.
 */
export type ChangedEndpoint = { endpoint: Endpoint; newSecret: string | null }

const changedParts = (change: MetadataChange = {}) => {
  const entries = Object.entries(change)
  return {
    set: Object.fromEntries(entries.filter(([, value]) => value !== null)),
    removed: entries.filter(([, value]) => value === null).map(([name]) => name),
  }
}

/**
 * Registers an endpoint (a resource with a price), or changes the existing endpoint for the same resource, and queues
 * its verification. The function locks the project's row. Therefore concurrent calls create only one endpoint and
 * respect ENDPOINTS_MAX.
 * @returns null if the project is deleted.
 * @throws {TooManyEndpointsError} if the project has too many endpoints. @throws {SecretWithoutWebhookError} if the
 * caller wants a webhook secret but the endpoint has no webhook URL.
 */
export async function putEndpoint(
  pool: Pool,
  keyring: Keyring,
  input: EndpointChange & {
    projectId: string
    urlPattern: string
    matchKey: string
    priceAtomic: bigint
    network: string
  },
): Promise<(ChangedEndpoint & { created: boolean }) | null> {
  return transaction(pool, async (db) => {
    const { projectId, matchKey } = input
    const project = await db.query(
      'select from projects where id = $1 and deleted_at is null for no key update',
      [projectId],
    )
    if (project.rowCount === 0) return null
    const existing = await findEndpointByResource(db, projectId, matchKey)
    const id = existing?.id ?? (await insertEndpoint(db, input))
    await checkEndpoint(db, { id, urlPattern: input.urlPattern })
    const changed = (await changeEndpoint(db, keyring, { projectId, id, change: input }))!
    return { ...changed, created: existing === null }
  })
}

async function insertEndpoint(
  db: Queryable,
  input: {
    projectId: string
    urlPattern: string
    matchKey: string
    priceAtomic: bigint
    network: string
  },
): Promise<string> {
  const { rows } = await db.query<{ count: number }>(
    'select count(*)::int as count from seller_endpoints where project_id = $1 and deleted_at is null',
    [input.projectId],
  )
  if (rows[0]!.count >= ENDPOINTS_MAX) throw new TooManyEndpointsError()
  const id = newEndpointId()
  await db.query(
    `insert into seller_endpoints (id, project_id, url_pattern, match_key, price_atomic, network)
     values ($1, $2, $3, $4, $5, $6)`,
    [id, input.projectId, input.urlPattern, input.matchKey, input.priceAtomic, input.network],
  )
  return id
}

/** Changes an endpoint in a new database transaction. @returns null if the project has no such endpoint. */
export function updateEndpoint(
  pool: Pool,
  keyring: Keyring,
  target: { projectId: string; id: string; change: EndpointChange },
): Promise<ChangedEndpoint | null> {
  return transaction(pool, (db) => changeEndpoint(db, keyring, target))
}

async function changeEndpoint(
  db: Client,
  keyring: Keyring,
  { projectId, id, change }: { projectId: string; id: string; change: EndpointChange },
): Promise<ChangedEndpoint | null> {
  const found = await db.query<{
    webhook_url: string | null
    has_secret: boolean
    has_seen: boolean
  }>(
    `select webhook_url, ${HAS_SECRET} as has_secret, seen_metadata <> '{}' as has_seen from seller_endpoints e
     where project_id = $1 and id = $2 and deleted_at is null for update`,
    [projectId, id],
  )
  const before = found.rows[0]
  if (before === undefined) return null
  const webhookUrl = change.webhookUrl === undefined ? before.webhook_url : change.webhookUrl
  if (webhookUrl === null && change.webhookSecret !== undefined)
    throw new SecretWithoutWebhookError()
  const generated = webhookUrl !== null && !before.has_secret ? newWebhookSecret() : null
  const newSecret = change.webhookSecret ?? generated
  if (webhookUrl === null) {
    await abortDeliveriesOf(db, { endpointId: id, error: 'the webhook URL was removed' })
  }
  const sealed =
    newSecret === null ? null : sealWebhookSecret(keyring, { projectId, id, secret: newSecret })
  const metadata = changedParts(change.metadata)
  const clearsSeen = change.metadata !== undefined || change.openApiUrl !== undefined
  const { rows } = await db.query<EndpointRow>(
    `update seller_endpoints set
       url_pattern = coalesce($2, url_pattern),
       price_atomic = coalesce($3, price_atomic),
       network = coalesce($4, network),
       description = case when $5 then $6 else description end,
       webhook_url = $7,
       discoverable = coalesce($12, discoverable),
       paused_at = case when $13::boolean is null then paused_at when $13 then null
                        else coalesce(paused_at, clock_timestamp()) end,
       metadata = (metadata || $14::jsonb) - $15::text[],
       -- The stored metadata of the endpoint's 402 response repeats the former metadata, so the SQL clears it until the
       -- next check.
       seen_metadata = case when $16 then '{}' else seen_metadata end,
       open_api_metadata = case when $17 and $18::text is distinct from open_api_url then '{}' else open_api_metadata end,
       open_api_detail = case when $17 then null else open_api_detail end,
       open_api_status = case when $17 then case when $18::text is null then null else 'pending' end else open_api_status end,
       open_api_url = case when $17 then $18 else open_api_url end,
       webhook_secret = case when $8 then webhook_secret end,
       webhook_key_id = case when $8 then webhook_key_id else $9 end,
       webhook_wrapped_key = case when $8 then webhook_wrapped_key else $10 end,
       webhook_ciphertext = case when $8 then webhook_ciphertext else $11 end
     where id = $1 returning ${ENDPOINT_COLUMNS}`,
    [
      id,
      change.urlPattern ?? null,
      change.priceAtomic ?? null,
      change.network ?? null,
      change.description !== undefined,
      change.description ?? null,
      webhookUrl,
      webhookUrl !== null && newSecret === null,
      sealed?.keyId ?? null,
      sealed?.wrappedKey ?? null,
      sealed?.ciphertext ?? null,
      change.discoverable ?? null,
      change.active ?? null,
      metadata.set,
      metadata.removed,
      clearsSeen,
      change.openApiUrl !== undefined,
      change.openApiUrl ?? null,
    ],
  )
  // The check of the endpoint reads the OpenAPI document again. In this way, it restores the metadata that the SQL has
  // deleted.
  if (typeof change.openApiUrl === 'string' || (clearsSeen && before.has_seen)) {
    await queueEndpointCheck(db, id)
  }
  return { endpoint: toEndpoint(rows[0]!), newSecret }
}

/**
 * Replaces the secret of an endpoint's webhook. The service signs all later webhook requests with the new secret.
 * @returns the endpoint with its new webhook secret. Null means that the project has no endpoint with the id.
 * @throws {SecretWithoutWebhookError} if the endpoint has no webhook URL.
 */
export async function rotateWebhookSecret(
  pool: Pool,
  keyring: Keyring,
  target: { projectId: string; id: string },
): Promise<ChangedEndpoint | null> {
  return updateEndpoint(pool, keyring, { ...target, change: { webhookSecret: newWebhookSecret() } })
}

/**
 * Deletes an endpoint and aborts its pending webhook deliveries. The row stays, because payments refer to the endpoint.
 */
export async function deleteEndpoint(
  pool: Pool,
  { projectId, id }: { projectId: string; id: string },
): Promise<boolean> {
  return transaction(pool, async (db) => {
    const { rowCount } = await db.query(
      `update seller_endpoints set deleted_at = clock_timestamp(), ${NO_SECRET}
       where project_id = $1 and id = $2 and deleted_at is null`,
      [projectId, id],
    )
    if (rowCount === 0) return false
    await abortDeliveriesOf(db, { endpointId: id, error: 'the endpoint was deleted' })
    return true
  })
}

/** Deletes every endpoint of a project, in the transaction that deletes the project. */
export async function deleteEndpointsOfProject(db: Queryable, projectId: string): Promise<void> {
  await db.query(
    `update seller_endpoints set deleted_at = clock_timestamp(), ${NO_SECRET}
     where project_id = $1 and deleted_at is null`,
    [projectId],
  )
  await abortDeliveriesOf(db, { projectId, error: 'the project was deleted' })
}
