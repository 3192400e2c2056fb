import type { Pool } from '../db.ts'

/** Holds a position in the WAL as a number. */
export type Lsn = bigint

/** Holds a WAL position that no replica can reach, because a real position in the WAL has only 64 bits. */
export const UNREACHABLE: Lsn = 1n << 64n

/**
 * Parses a hexadecimal WAL position `X/Y`. X is the upper 32 bits and Y the lower 32 bits (PostgreSQL, type pg_lsn).
 */
export function parseLsn(text: string): Lsn {
  const [upper, lower] = text.split('/') as [string, string]
  return (BigInt(`0x${upper}`) << 32n) | BigInt(`0x${lower}`)
}

/**
 * Writes an SQL expression for the WAL position after a project's last write. The expression ignores a position that
 * the server has not reached yet. After a restore with pg_dump, such a position comes from the former server, and no
 * replica of the present server would reach it for a long time.
 * @param projectId is an SQL expression.
 * @param isWanted is an SQL condition. If the condition is false, the expression is null.
 */
export const writtenTo = (projectId: string, isWanted: string): string =>
  `(select lsn::text from project_writes p
    where ${isWanted} and p.project_id = ${projectId} and p.lsn <= pg_current_wal_insert_lsn())`

/**
 * Records that the given projects may have written to the primary database server. A caller first commits, then calls
 * `markWritten`, and then sends its HTTP response.
 */
export async function markWritten(pool: Pool, projectIds: readonly string[]): Promise<void> {
  await pool.query({
    name: 'mark-written',
    text: `insert into project_writes as w (project_id, lsn)
           select id, pg_current_wal_insert_lsn() from projects
           where id = any ($1) and deleted_at is null order by id
           on conflict (project_id) do update set lsn = case
             when w.lsn > pg_current_wal_insert_lsn() then excluded.lsn else greatest(w.lsn, excluded.lsn) end`,
    values: [projectIds],
  })
}

/** Returns the WAL position up to which a replica has replayed. Null means that the database server is no replica. */
export async function readReplayed(replica: Pool): Promise<Lsn | null> {
  const { rows } = await replica.query<{ lsn: string | null }>({
    name: 'read-replayed',
    text: `select case when pg_is_in_recovery() then pg_last_wal_replay_lsn() end::text as lsn`,
  })
  const lsn = rows[0]?.lsn ?? null
  return lsn === null ? null : parseLsn(lsn)
}
