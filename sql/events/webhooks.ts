import type { Cursor } from '../../shared/cursor.ts'
import type { EventType } from '../../shared/events/events.ts'
import { newWebhookId, newWebhookSecret } from '../../shared/ids.ts'
import type { Keyring } from '../../shared/vault/envelope.ts'
import { holdProject } from '../account/projects/holdProject.ts'
import { type Pool, type Queryable, transaction } from '../db.ts'
import { deleteInBatches } from '../deleteInBatches.ts'
import { pageStart } from '../pageStart.ts'
import { abortDeliveriesOf } from './deliveryLog.ts'
import { sealWebhookSecret } from './webhookSecrets.ts'

/** Sets the maximum number of webhooks that one project may have. */
export const WEBHOOKS_MAX = 20

/** Describes a webhook of a project. */
export type ProjectWebhook = {
  id: string
  url: string
  events: EventType[]
  createdAt: Date
  row: bigint
}

/** Reports that a project already has {@link WEBHOOKS_MAX} webhooks. */
export class TooManyWebhooksError extends Error {}

type WebhookRow = { id: string; url: string; events: EventType[]; created_at: Date; row: string }

const COLUMNS = 'id, url, events, created_at, row'

const toWebhook = (row: WebhookRow): ProjectWebhook => ({
  id: row.id,
  url: row.url,
  events: row.events,
  createdAt: row.created_at,
  row: BigInt(row.row),
})

/**
 * Registers a webhook of a project.
 * @param secret is the webhook secret that the caller chose. If `secret` is absent, the service creates a new webhook
 * secret.
 * @returns the webhook and its webhook secret. No other operation returns the webhook secret.
 * @throws {TooManyWebhooksError} if the project has too many webhooks. @throws {ProjectGoneError} if the project is
 * deleted.
 */
export async function createProjectWebhook(
  pool: Pool,
  keyring: Keyring,
  webhook: { projectId: string; url: string; events: readonly EventType[]; secret?: string },
): Promise<{ webhook: ProjectWebhook; secret: string }> {
  const { projectId, url, events, secret = newWebhookSecret() } = webhook
  const id = newWebhookId()
  const sealed = sealWebhookSecret(keyring, { projectId, id, secret })
  return transaction(pool, async (db) => {
    await holdProject(db, projectId)
    const { rows } = await db.query<WebhookRow>(
      `insert into project_webhooks
         (id, project_id, url, events, webhook_key_id, webhook_wrapped_key, webhook_ciphertext)
       select $1, $2, $3, $4, $5, $6, $7
       where (select count(*) from project_webhooks where project_id = $2 and deleted_at is null) < ${WEBHOOKS_MAX}
       returning ${COLUMNS}`,
      [id, projectId, url, events, sealed.keyId, sealed.wrappedKey, sealed.ciphertext],
    )
    if (rows[0] === undefined) throw new TooManyWebhooksError()
    return { webhook: toWebhook(rows[0]), secret }
  })
}

/** Lists the webhooks of a project, newest first, with at most `limit` webhooks after the cursor. */
export async function listProjectWebhooks(
  db: Queryable,
  { projectId, limit, cursor }: { projectId: string; limit: number; cursor: Cursor | null },
): Promise<ProjectWebhook[]> {
  const { rows } = await db.query<WebhookRow>(
    `select ${COLUMNS} from project_webhooks
     where project_id = $1 and deleted_at is null and (created_at, row) < ($2::timestamptz, $3::bigint)
     order by created_at desc, row desc limit $4`,
    [projectId, ...pageStart(cursor), limit],
  )
  return rows.map(toWebhook)
}

type Target = { projectId: string; id: string }

/** Finds one webhook of a project. @returns null if the project has no such webhook. */
export async function findProjectWebhook(
  db: Queryable,
  { projectId, id }: Target,
): Promise<ProjectWebhook | null> {
  const { rows } = await db.query<WebhookRow>(
    `select ${COLUMNS} from project_webhooks where project_id = $1 and id = $2 and deleted_at is null`,
    [projectId, id],
  )
  return rows[0] === undefined ? null : toWebhook(rows[0])
}

/**
 * Describes the webhook that a caller wants to change. The field `events` lists the event types that the caller may
 * read. A webhook that receives another type does not change, because the owner may have added this type since the
 * check of the caller's scopes.
 */
type OwnTarget = Target & { events: readonly EventType[] }

/** Selects the webhook of an {@link OwnTarget} by the parameters $1 (project), $2 (id) and $3 (events). */
const IS_TARGET = 'project_id = $1 and id = $2 and events <@ $3::text[] and deleted_at is null'

/**
 * Changes a webhook. The change affects only future events.
 * @returns null if the project has no such webhook, or if the caller may not read all events of the webhook.
 */
export async function updateProjectWebhook(
  db: Queryable,
  { projectId, id, events }: OwnTarget,
  change: { url?: string; events?: readonly EventType[] },
): Promise<ProjectWebhook | null> {
  const { rows } = await db.query<WebhookRow>(
    `update project_webhooks set url = coalesce($4, url), events = coalesce($5, events)
     where ${IS_TARGET} returning ${COLUMNS}`,
    [projectId, id, events, change.url ?? null, change.events ?? null],
  )
  return rows[0] === undefined ? null : toWebhook(rows[0])
}

/**
 * Replaces the secret of a project's webhook. The service signs all later delivery attempts with the new secret.
 * @returns null if the project has no such webhook, or if the caller may not read all events of the webhook.
 */
export async function rotateProjectWebhook(
  db: Queryable,
  keyring: Keyring,
  { projectId, id, events }: OwnTarget,
): Promise<{ webhook: ProjectWebhook; secret: string } | null> {
  const secret = newWebhookSecret()
  const sealed = sealWebhookSecret(keyring, { projectId, id, secret })
  const { rows } = await db.query<WebhookRow>(
    `update project_webhooks set webhook_key_id = $4, webhook_wrapped_key = $5, webhook_ciphertext = $6
     where ${IS_TARGET} returning ${COLUMNS}`,
    [projectId, id, events, sealed.keyId, sealed.wrappedKey, sealed.ciphertext],
  )
  return rows[0] === undefined ? null : { webhook: toWebhook(rows[0]), secret }
}

const WITHOUT_SECRETS = `webhook_key_id = null, webhook_wrapped_key = null, webhook_ciphertext = null,
  url = substring(url from '^[a-zA-Z]+://[^/?#]+')`

/**
 * Sets the columns of a deleted webhook. The row stays for the log of its deliveries. It keeps neither the secret nor
 * the path of the URL, because both can be secrets. Only the deliveries in the log keep the URL.
 */
export const DELETED = `deleted_at = clock_timestamp(), ${WITHOUT_SECRETS}`

/**
 * Deletes a webhook and aborts the pending deliveries to the webhook.
 * @returns false if the project has no such webhook, or if the caller may not read all events of the webhook.
 */
export async function deleteProjectWebhook(
  pool: Pool,
  { projectId, id, events }: OwnTarget,
): Promise<boolean> {
  return transaction(pool, async (db) => {
    const { rowCount } = await db.query(
      `update project_webhooks set ${DELETED} where ${IS_TARGET}`,
      [projectId, id, events],
    )
    if (rowCount === 0) return false
    await abortDeliveriesOf(db, { webhookId: id, error: 'the webhook was deleted' })
    return true
  })
}

/** Deletes the rows of webhooks that were deleted a day ago and whose deliveries are no longer in the log. */
export async function deleteForgottenWebhooks(db: Queryable): Promise<void> {
  // A process of an older version deletes a webhook but leaves its secret in place, so this update removes such
  // secrets.
  await db.query(
    `update project_webhooks set ${WITHOUT_SECRETS} where deleted_at is not null and webhook_key_id is not null`,
  )
  await deleteInBatches(
    db,
    'project_webhooks',
    `deleted_at < statement_timestamp() - interval '1 day'
     and not exists (select from webhook_deliveries d where d.webhook_id = project_webhooks.id)`,
  )
}
