import { type Pool, transaction } from '../db.ts'
import { deleteUnusedRawMails } from '../mail/rawMails.ts'

/** Rows deleted in one transaction: a large inbox must not hold locks for minutes. */
const PURGE_BATCH = 1_000

/**
 * Deletes the mail, the vault and the logs of a deleted project, one transaction per batch. Safe to run again after a
 * crash. Its endpoints stay, marked as deleted: payments refer to them and are kept for audit.
 */
export async function purgeProject(pool: Pool, projectId: string): Promise<void> {
  const batch = (table: string, key: string) =>
    `with doomed as (
       select t.${key} from ${table} t join projects p on p.id = t.project_id
       where t.project_id = $1 and p.deleted_at is not null limit ${PURGE_BATCH})
     delete from ${table} where ${key} in (select ${key} from doomed) returning raw_id`
  for (const [table, key] of MAIL_TABLES) {
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
  for (const [table, key] of OWN_TABLES) {
    for (let removed = PURGE_BATCH; removed === PURGE_BATCH; ) {
      const { rowCount } = await pool.query(
        `delete from ${table} where ${key} = any (array(
           select t.${key} from ${table} t join projects p on p.id = t.project_id
           where t.project_id = $1 and p.deleted_at is not null limit ${PURGE_BATCH}))`,
        [projectId],
      )
      removed = rowCount ?? 0
    }
  }
}

/** Tables whose rows refer to raw mails, with the key column. */
export const MAIL_TABLES = [
  ['inbound_mails', 'id'],
  ['messages', 'row'],
] as const

/** The other tables of a project, with the key column; `ctid` for a key of several columns. */
export const OWN_TABLES = [
  ['credentials', 'row'],
  ['vault_uses', 'id'],
  ['audit_log', 'row'],
  ['suppressions', 'row'],
  ['webhook_deliveries', 'id'],
  ['threads', 'row'],
  ['deleted_messages', 'ctid'],
  ['email_rules', 'id'],
  ['events', 'ctid'],
  ['event_streams', 'project_id'],
  ['project_writes', 'project_id'],
  ['project_webhooks', 'id'],
  ['drafts', 'row'],
  ['approvals', 'row'],
  ['known_recipients', 'ctid'],
  ['idempotency_keys', 'ctid'],
  ['send_quotas', 'project_id'],
  ['project_usage', 'project_id'],
  ['project_storage', 'project_id'],
  ['project_limits', 'project_id'],
  ['settlement_budgets', 'project_id'],
] as const
