import { type Pool, type Queryable, transaction } from '../../db.ts'
import { deleteUnusedRawMails } from '../../mail/messages/rawMails.ts'
import { isPurseEmpty } from '../../purse/purseMoney.ts'
import { addJob, hasNoJob } from '../../queue/jobs.ts'
import { RATE_WINDOWS } from '../keys/rateWindows.ts'

/**
 * Sets the maximum number of rows of a deleted project that one transaction deletes, because the deletion of a large
 * inbox must not hold locks for minutes.
 */
const PURGE_BATCH = 1_000
/**
 * Limits the bytes of mail that one transaction deletes. Otherwise a transaction that deletes gigabytes would exceed
 * the statement timeout at each attempt. A transaction deletes at least one mail, even if the mail is larger.
 */
const PURGE_BATCH_BYTES = 32 * 1024 * 1024

/**
 * Limits how long the purge (data deletion) of a project waits before it checks again whether a purse has money. The
 * wait is a quarter of the time since the deletion, but lies between `least` and `most`. The wait grows, because money
 * that somebody else sent may stay for ever.
 */
const PURSE_DELAY = { least: '30 seconds', most: '1 hour' }

/**
 * Deletes the rows of a deleted project in batches, with one transaction for each batch. After a crash, the purge (data
 * deletion) can run again. The service keeps the project's payments for audit, with their endpoints and retention days.
 * While the project's purse may have money, the service keeps its private keys and purchases, and the purge runs again
 * later.
 * @returns 'waits' if the purge (data deletion) must run again later.
 */
export async function purgeProject(pool: Pool, projectId: string): Promise<'done' | 'waits'> {
  const batch = (table: string, key: string, bytes: string) =>
    `with sized as (
       select t.${key}, coalesce(${bytes}, 0) as bytes
       from ${table} t join projects p on p.id = t.project_id left join raw_mails r on r.id = t.raw_id
       where t.project_id = $1 and p.deleted_at is not null limit ${PURGE_BATCH}
     ), doomed as (
       select ${key}, sum(bytes) over (order by ${key}) - bytes as before from sized
     )
     delete from ${table} where ${key} in (select ${key} from doomed where before < ${PURGE_BATCH_BYTES})
     returning raw_id`
  for (const [table, key, bytes] of MAIL_TABLES) {
    for (let removed = 1; removed > 0; ) {
      removed = await transaction(pool, async (db) => {
        const { rows } = await db.query<{ raw_id: string | null }>(batch(table, key, bytes), [
          projectId,
        ])
        await deleteUnusedRawMails(
          db,
          rows.flatMap(({ raw_id }) => raw_id ?? []),
        )
        return rows.length
      })
    }
  }
  const isEmpty = await isPurseEmpty(pool, projectId)
  for (const [table, key] of OWN_TABLES) {
    if (!isEmpty && PURSE_TABLES.has(table)) continue
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
  await endErasure(pool, projectId)
  if (isEmpty) return 'done'
  const { rows } = await pool.query<{ at: Date }>(
    `select clock_timestamp() + least(interval '${PURSE_DELAY.most}',
       greatest(interval '${PURSE_DELAY.least}', (clock_timestamp() - deleted_at) / 4)) as at
     from projects where id = $1 and deleted_at is not null`,
    [projectId],
  )
  if (rows[0] !== undefined) await queuePurge(pool, projectId, rows[0].at)
  return 'waits'
}

/**
 * Ends the purge (data deletion) of a deleted project. The function deletes endpoints and retention settings that no
 * payment needs, and records the end. Without this record, the maintenance job would queue the purge job again.
 */
async function endErasure(pool: Pool, projectId: string): Promise<void> {
  await pool.query(
    `delete from seller_endpoints e using projects p
     where e.project_id = $1 and p.id = $1 and p.deleted_at is not null
       and not exists (select from payments where endpoint_id = e.id)`,
    [projectId],
  )
  await pool.query(
    `delete from project_retention r using projects p
     where r.project_id = $1 and p.id = $1 and p.deleted_at is not null
       and not exists (select from payments where project_id = $1)`,
    [projectId],
  )
  // No request can create the project's rate window again, because the API key of a deleted project is invalid.
  await pool.query('delete from rate_windows where subject = any ($1)', [
    RATE_WINDOWS.map((window) => projectId + window),
  ])
  const nothingLeft = [...MAIL_TABLES, ...OWN_TABLES]
    .map(([table]) => `not exists (select from ${table} where project_id = $1)`)
    .join(' and ')
  // The database keeps the inbox address of a deleted project, so that no other project gets it.
  await pool.query(
    `update projects set erased_at = case when ${nothingLeft} then clock_timestamp() end, name = '', display_name = null,
       approver_email = null, pay_to = null, own_addresses = '{}'
     where id = $1 and deleted_at is not null and erased_at is null`,
    [projectId],
  )
}

/**
 * Sets the time after which an unfinished purge (data deletion) without a job counts as lost. Normally, the purge job
 * of a deleted project has ended or is in the queue at this time.
 */
const LOST_AFTER = '1 minute'
const LOST_BATCH = 100

/**
 * Queues the purge (data deletion) again for deleted projects that still have rows but no purge job. The job was lost,
 * or an older version of the service ran the purge.
 */
export async function requeueLostPurges(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ id: string }>(
    `select id from projects
     where deleted_at < clock_timestamp() - interval '${LOST_AFTER}' and erased_at is null
       and ${hasNoJob("'purge_project:' || projects.id")}
     order by deleted_at limit ${LOST_BATCH}`,
  )
  for (const { id } of rows) await queuePurge(pool, id)
  return rows.length
}

/** Queues the purge (data deletion) of a deleted project, for now or for the given time. */
export const queuePurge = (db: Queryable, projectId: string, runAt?: Date): Promise<void> =>
  addJob(db, {
    ...{ task: 'purge_project', payload: { projectId }, key: `purge_project:${projectId}` },
    ...(runAt === undefined ? {} : { runAt }),
  })

/**
 * Lists the tables that hold a project's references to raw mails, each with its primary key column and an SQL
 * expression for the bytes of a row. This expression reads the table (alias t) and the raw mail (alias r).
 */
export const MAIL_TABLES = [
  ['inbound_mails', 'id', 'octet_length(r.bytes)'],
  ['messages', 'row', 't.stored_bytes'],
] as const

/**
 * Lists the tables with a project's rows that do not refer to raw mails, each with its primary key column. The system
 * column `ctid` stands for a primary key of several columns.
 */
export const OWN_TABLES = [
  ['credentials', 'row'],
  ['vault_uses', 'id'],
  ['hand_refunds', 'row'],
  ['purchases', 'row'],
  ['mandates', 'row'],
  ['purse_keys', 'address'],
  ['purses', 'project_id'],
  ['audit_log', 'row'],
  ['suppressions', 'row'],
  ['webhook_deliveries', 'id'],
  ['calendar_events', 'row'],
  ['calendar_instances', 'ctid'],
  ['own_events', 'ctid'],
  ['attachment_texts', 'ctid'],
  ['attachment_reading', 'project_id'],
  ['search_pending', 'ctid'],
  ['search_segments', 'id'],
  ['search_leaves', 'ctid'],
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
  ['offer_counts', 'ctid'],
  ['project_storage', 'project_id'],
  ['project_limits', 'project_id'],
  ['settlement_budgets', 'project_id'],
  ['purse_gas', 'project_id'],
  ['payment_checks', 'id'],
  ['endpoint_trials', 'endpoint_id'],
  ['oauth_grants', 'id'],
  ['person_projects', 'ctid'],
] as const

/** Lists the tables whose rows the purge (data deletion) keeps while the project's purse may have money. */
const PURSE_TABLES: ReadonlySet<string> = new Set(['purchases', 'mandates', 'purse_keys', 'purses'])
