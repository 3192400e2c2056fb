/**
 * Removes database rows by age. A retention run goes through the projects, and removes one batch of limited size for
 * each retention class.
 */
import { RETENTION_CLASSES, RETENTION_NAMES, type RetentionClass } from '../../shared/retention.ts'
import { ORGANIZATION } from '../account/audit.ts'
import { daysOf, isExpired, RETENTION_DAY, retentionJoins } from '../account/projects/retention.ts'
import type { Pool, Queryable } from '../db.ts'
import { expireEvents, overBefore } from '../mail/calendar/expireEvents.ts'
import { expireMail, expireRawMail, REPEATED_OR_REFUSED } from '../mail/messages/expireMail.ts'
import { isHere } from '../till/watch/chainStatus.ts'

/** Limits the number of old rows that one batch removes. A batch of this size takes at most 23 ms on two cores. */
const BATCH = 250

/** Names a project and a retention class that has old rows in this project. The old rows are older than `before`. */
export type DueRows = { projectId: string; name: RetentionClass; before: Date }

/**
 * Writes SQL that deletes the old rows of a table that fulfil a condition. The SQL parameter $1 is the project, and $2
 * is the time. The SQL skips locked rows, which the next batch deletes.
 */
const deletion = (
  name: RetentionClass,
  { table, age, condition = '' }: { table: string; age: string; condition?: string },
): string =>
  `delete from ${table} where ctid = any (array(
     select ctid from ${table} where project_id = $1 and ${isExpired(name, age)} ${condition}
     order by ${age} limit ${BATCH} for update skip locked))`

/**
 * Holds the SQL condition for final payments whose details the service must still remove. A payment is final when its
 * block is final, or when nobody can use its authorization any more. For a former chain, only the end of the
 * authorization counts, because nobody reads the blocks of that chain. The service keeps amount, parties, nonce, hash,
 * receipt and state. The stored nonce prevents a second payment with the same authorization. An empty value replaces
 * the signature, because no real signature is empty.
 */
const FINAL = `
  details_removed_at is null and (
    (state = 'settled' and finalized_at is not null)
    or (state <> 'failed' and valid_before < extract(epoch from clock_timestamp()) - 86400 and not (${isHere('payments')}))
    or (state = 'failed' and valid_before < extract(epoch from clock_timestamp()) - 86400 and not exists (
      select from transaction_payments m join chain_transactions t on t.hash = m.hash
      where m.payment_id = payments.id and t.state = 'open')))`

const REMOVE_DETAILS = `
  update payments set details_removed_at = clock_timestamp(), signature = '', factory = null, factory_data = null,
    description = null, failure_detail = null, trouble = null, resource_url = regexp_replace(resource_url, '[?#].*$', '')
  where id = any (array(
    select id from payments where project_id = $1 and ${isExpired('paymentDetails', 'created_at')} and ${FINAL}
    order by created_at limit ${BATCH} for no key update skip locked))`

const statement =
  (name: string, text: string) =>
  async (db: Queryable, projectId: string, before: Date): Promise<number> =>
    (await db.query({ name, text, values: [projectId, before] })).rowCount ?? 0

/**
 * Removes one batch of a retention class. @returns the number of removed rows. 0 means that the service may remove no
 * further row now.
 */
const REMOVE: Record<
  RetentionClass,
  (pool: Pool, projectId: string, before: Date) => Promise<number>
> = {
  mail: async (pool, projectId, before) =>
    (await expireMail(pool, projectId, before)) + (await expireEvents(pool, projectId)),
  rawMail: expireRawMail,
  deliveries: statement(
    'expired-deliveries',
    deletion('deliveries', {
      table: 'webhook_deliveries',
      age: 'created_at',
      condition: "and status <> 'pending'",
    }),
  ),
  logs: statement('expired-logs', deletion('logs', { table: 'audit_log', age: 'at' })),
  idempotencyKeys: statement(
    'expired-keys',
    deletion('idempotencyKeys', { table: 'idempotency_keys', age: 'created_at' }),
  ),
  paymentDetails: statement('expired-payment-details', REMOVE_DETAILS),
}

/**
 * Removes one batch of a retention class's old rows. @returns the number of removed rows. 0 means that the service may
 * remove no further row now.
 */
export const removeExpired = (pool: Pool, { projectId, name, before }: DueRows): Promise<number> =>
  REMOVE[name](pool, projectId, before)

/**
 * Writes the SQL condition that the oldest row of project p in a table is older than `before`. The condition reads this
 * row in the order of an index, which takes 4 ms for 200 projects. With `exists`, PostgreSQL would read whole tables if
 * most rows belong to one project, which took 465 ms.
 */
const oldest = (before: string, table: string, age: string, condition = ''): string =>
  `(select ${age} from ${table} where project_id = p.id ${condition} order by ${age} limit 1) < ${before}`

const IS_DUE: Record<RetentionClass, (before: string) => string> = {
  mail: (before) =>
    [
      oldest(before, 'messages', 'created_at'),
      oldest(before, 'inbound_mails', 'received_at', `and ${REPEATED_OR_REFUSED}`),
      oldest(overBefore(before), 'calendar_events', 'over_at', 'and message_row is null'),
      oldest(overBefore(before), 'own_events', 'over_at'),
    ].join(' or '),
  rawMail: (before) => oldest(before, 'messages', 'created_at', 'and raw_id is not null'),
  deliveries: (before) => oldest(before, 'webhook_deliveries', 'created_at'),
  logs: (before) => oldest(before, 'audit_log', 'at'),
  idempotencyKeys: (before) => oldest(before, 'idempotency_keys', 'created_at'),
  paymentDetails: (before) =>
    oldest(before, 'payments', 'created_at', 'and details_removed_at is null'),
}

/**
 * Lists the retention classes that the purge (data deletion) of a deleted project deletes. The retention run skips them
 * for such a project, because the purge takes its locks in another order.
 */
const PURGED: ReadonlySet<RetentionClass> = new Set(['mail', 'rawMail', 'deliveries'])

const column = (name: RetentionClass): string => RETENTION_CLASSES[name].column

const NEXT_DUE = `
  with p as materialized (
    select * from (
      select '${ORGANIZATION}' as id, 0::bigint as row, false as is_live where $1::bigint < 0
      union all (select id, row, deleted_at is null from projects where row > $1::bigint order by row limit $2)) page
  ), timed as (
    select p.id, p.row, p.is_live, ${RETENTION_NAMES.map(
      (name) => `clock_timestamp() - ${daysOf(name)} * ${RETENTION_DAY} as ${column(name)}`,
    ).join(', ')}
    from p ${retentionJoins('p.id')}
  )
  select id, row, ${RETENTION_NAMES.map(
    (name) =>
      `case when ${PURGED.has(name) ? 'p.is_live and ' : ''}(${IS_DUE[name](`p.${column(name)}`)}) then coalesce(${column(name)}, 'epoch') end as "${name}"`,
  ).join(', ')}
  from timed p order by row`

/**
 * Holds the position before the first project in a retention run. A run that begins here processes the organization's
 * audit log.
 */
export const WALK_START = -1n

/**
 * Finds the old rows of the projects after a given row number. The function includes deleted projects, because the
 * service keeps their payments.
 * @returns the old rows. The field `next` is the row number of the last project that the function has read. Null means
 * that no project remains.
 */
export async function findDue(
  db: Queryable,
  after: bigint,
  limit: number,
): Promise<{ due: DueRows[]; next: bigint | null }> {
  const { rows } = await db.query<
    { id: string; row: string } & Record<RetentionClass, Date | null>
  >({ name: 'find-due', text: NEXT_DUE, values: [after, limit] })
  const due = rows.flatMap((row) =>
    RETENTION_NAMES.flatMap((name) => {
      const before = row[name]
      return before === null ? [] : [{ projectId: row.id, name, before }]
    }),
  )
  return { due, next: rows.length < limit ? null : BigInt(rows.at(-1)!.row) }
}
