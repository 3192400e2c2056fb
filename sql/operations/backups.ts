import type { Queryable } from '../db.ts'

/** Records that a backup of the database has ended. The function keeps only the record of the newest backup. */
export async function recordBackup(db: Queryable): Promise<void> {
  await db.query('insert into backups default values')
  await db.query('delete from backups where finished_at < (select max(finished_at) from backups)')
}

/** Returns the time when the last backup ended. Null means that no backup is recorded. */
export async function lastBackupAt(db: Queryable): Promise<Date | null> {
  const { rows } = await db.query<{ at: Date | null }>('select max(finished_at) as at from backups')
  return rows[0]?.at ?? null
}
