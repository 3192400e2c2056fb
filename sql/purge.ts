import { purgeAudit } from './audit.ts'
import { type Pool, transaction } from './db.ts'
import { purgeCredentials } from './deleteCredential.ts'
import { purgeDeliveries } from './deliveryLog.ts'
import { deleteUnusedRawMails } from './rawMails.ts'
import { purgeSuppressions } from './suppressions.ts'

/** Rows removed in one transaction, so that a large inbox does not hold locks for minutes. */
const PURGE_BATCH = 1_000

/**
 * Removes the mail, the vault and the logs of a deleted project, a batch a transaction. Safe to run again after a crash.
 * Its endpoints stay, deleted: payments, which are kept for audit, refer to them.
 */
export async function purgeProject(pool: Pool, projectId: string): Promise<void> {
  const batch = (table: string, key: string) =>
    `with doomed as (
       select t.${key} from ${table} t join projects p on p.id = t.project_id
       where t.project_id = $1 and p.deleted_at is not null limit ${PURGE_BATCH})
     delete from ${table} where ${key} in (select ${key} from doomed) returning raw_id`
  for (const [table, key] of [
    ['inbound_mails', 'id'],
    ['messages', 'row'],
  ] as const) {
    for (let removed = PURGE_BATCH; removed === PURGE_BATCH; ) {
      removed = await transaction(pool, async (db) => {
        const { rows } = await db.query<{ raw_id: string | null }>(batch(table, key), [projectId])
        await deleteUnusedRawMails(
          db,
          rows.flatMap(({ raw_id }) => raw_id ?? []),
        )
        return rows.length
      })
    }
  }
  await purgeCredentials(pool, projectId)
  await purgeAudit(pool, projectId)
  await purgeSuppressions(pool, projectId)
  await purgeDeliveries(pool, projectId)
  for (const table of OWN_TABLES) {
    for (let removed = PURGE_BATCH; removed === PURGE_BATCH; ) {
      const { rowCount } = await pool.query(
        `delete from ${table} where ctid = any (array(
           select t.ctid from ${table} t join projects p on p.id = t.project_id
           where t.project_id = $1 and p.deleted_at is not null limit ${PURGE_BATCH}))`,
        [projectId],
      )
      removed = rowCount ?? 0
    }
  }
}

/** What is nobody's once mail and deliveries are gone. */
const OWN_TABLES = [
  'threads',
  'deleted_messages',
  'email_rules',
  'events',
  'event_streams',
  'project_webhooks',
  'idempotency_keys',
] as const
