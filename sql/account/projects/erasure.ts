import { IDLE_MAX_S } from '../../blobs/sweepBlobs.ts'
import type { Queryable } from '../../db.ts'
import { MAIL_TABLES, OWN_TABLES } from './purgeProject.ts'

/** Lists the classes of database rows that the report about a project's erasure counts. */
const ERASED_CLASSES = ['mail', 'vault', 'deliveries', 'logs', 'other'] as const
type ErasedClass = (typeof ERASED_CLASSES)[number]

/** Sets the maximum number of rows that the report about a project's erasure counts in one table. */
export const COUNTED_MAX = 10_000

const CLASS_OF: Readonly<Record<string, ErasedClass>> = {
  messages: 'mail',
  inbound_mails: 'mail',
  threads: 'mail',
  deleted_messages: 'mail',
  credentials: 'vault',
  vault_uses: 'vault',
  webhook_deliveries: 'deliveries',
  audit_log: 'logs',
}

/** Describes the state of a project's erasure. */
export type Erasure = {
  requestedAt: Date | null
  completedAt: Date | null
  /** Counts the project's rows that the erasure has not deleted yet, up to {@link COUNTED_MAX} rows of each table. */
  left: Record<ErasedClass, number>
  /** Counts the project's database rows that remain after the erasure. */
  kept: { payments: number; endpoints: number; keys: number }
  /** Tells whether the object store still holds objects that the service must remove, and whether a removal is late. */
  objects: 'none' | 'on time' | 'late'
}

const KEPT = [
  ['payments', 'payments'],
  ['endpoints', 'seller_endpoints'],
  ['keys', 'api_keys'],
] as const

const countOf = (table: string): string =>
  `(select count(*) from (select from ${table} where project_id = $1 limit ${COUNTED_MAX}) rows)::int`

/**
 * Writes SQL that counts the project's rows that the erasure has not deleted yet. The result is a JSON object with one
 * number for each class of rows.
 */
const LEFT = `json_build_object(${ERASED_CLASSES.map((name) => {
  const tables = [...MAIL_TABLES, ...OWN_TABLES]
    .map(([table]) => table)
    .filter((table) => (CLASS_OF[table] ?? 'other') === name)
  return `'${name}', ${tables.map(countOf).join(' + ')}`
}).join(', ')})`

const LATE = `interval '${2 * IDLE_MAX_S} seconds'`

/**
 * Writes SQL that tells whether the service must still remove objects from the object store. The result covers all
 * projects together, because an object does not name its project.
 */
const OBJECTS = `case
  when exists (select from blobs where idle_since < clock_timestamp() - ${LATE})
    or exists (select from dead_blobs where died_at < clock_timestamp() - ${LATE}) then 'late'
  when exists (select from blobs) or exists (select from dead_blobs) then 'on time' else 'none' end`

/**
 * Returns the state of a project's erasure, even if the project is not deleted. @returns null if no project ever had
 * the id.
 */
export async function findErasure(db: Queryable, projectId: string): Promise<Erasure | null> {
  const { rows } = await db.query<Erasure>(
    `select deleted_at as "requestedAt", erased_at as "completedAt", ${LEFT} as left,
       json_build_object(${KEPT.map(([name, table]) => `'${name}', ${countOf(table)}`).join(', ')}) as kept,
       ${OBJECTS} as objects
     from projects where id = $1`,
    [projectId],
  )
  return rows[0] ?? null
}
