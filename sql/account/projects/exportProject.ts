import type { Blobs } from '../../blobs/blobs.ts'
import type { Client, Pool } from '../../db.ts'
import { type ExportedMail, exportMails } from '../../mail/messages/exportMails.ts'
import { type Actor, ORGANIZATION, writeAudit } from '../audit.ts'
import { type ExportedRow, exportRows } from './exportRows.ts'
import { findProject, type Project } from './projects.ts'

/**
 * Sets the maximum number of project exports that run at once in all processes together, because each export holds a
 * database snapshot, which makes PostgreSQL keep old row versions.
 */
export const EXPORTS_MAX = 4
/**
 * Sets the maximum number of project exports of one platform key that run at once. It is below EXPORTS_MAX, so that the
 * exports of one key never block those of all other keys.
 */
export const EXPORTS_PER_KEY_MAX = 2
/**
 * Holds the first keys of the two-part advisory locks that each running export holds. One lock limits the exports of
 * all keys, and one the exports of a platform key. The values are arbitrary.
 */
const EXPORT_LOCK_CLASS = 1_163_413_580
const KEY_LOCK_CLASS = 1_163_413_581
/** Sets the time after which a project export ends if the HTTP client stops reading. */
const IDLE_LIMIT = '60s'

/** Describes the data of a project at one moment. */
export type ProjectExport = {
  project: Project
  /** Holds the time of the database snapshot, by the database's clock. */
  at: Date
  rows(): AsyncGenerator<ExportedRow>
  mails(): AsyncGenerator<ExportedMail>
  close(): Promise<void>
}

/**
 * Opens a database snapshot for the export of a project. All exported rows are from the same moment, even if the export
 * takes long.
 * @param entry is the audit entry for the export. The service writes this audit entry before it sends the first byte of
 * the export.
 * @returns null if no project has the id. The result `busy` means that too many exports are running. The result `key
 * busy` means that too many exports of the platform key are running.
 */
export async function openExport(
  { pool, blobs }: { pool: Pool; blobs: Blobs },
  projectId: string,
  entry: { actor: Actor; part: string },
): Promise<ProjectExport | 'busy' | 'key busy' | null> {
  const client = await pool.connect()
  let isOpen = true
  const close = async () => {
    if (!isOpen) return
    isOpen = false
    // PostgreSQL ends a transaction that stays idle too long, and closes its connection. The rollback then fails, and
    // the code makes the pool drop the connection.
    const broken = await client.query('rollback').then(
      () => undefined,
      (error: Error) => error,
    )
    client.release(broken)
  }
  try {
    await client.query('begin isolation level repeatable read read only')
    await client.query(`set local idle_in_transaction_session_timeout = '${IDLE_LIMIT}'`)
    const at = await takePlace(client, entry.actor.keyPrefix)
    if (at === 'busy' || at === 'key busy') {
      await close()
      return at
    }
    const project = await findProject(client, projectId)
    if (project === null) {
      await close()
      return null
    }
    const exported = {
      action: 'project.export',
      subject: projectId,
      detail: entry.part,
      outcome: 'ok',
    } as const
    await writeAudit(pool, entry.actor, exported)
    // The function also writes an entry into the audit log of the organization, because this entry stays when the audit
    // log of the project is deleted with the project.
    await writeAudit(pool, { ...entry.actor, projectId: ORGANIZATION }, exported)
    return {
      project,
      at,
      rows: () => exportRows(client, projectId),
      mails: () => exportMails(client, blobs, projectId),
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

/**
 * Counts a project export as running until its transaction ends, unless too many exports are already running.
 * @returns the present time by the database's clock, or the limit that is reached.
 */
async function takePlace(db: Client, keyPrefix: string): Promise<Date | 'busy' | 'key busy'> {
  const take = async (lockClass: number, places: number, name = '') => {
    for (let place = 1; place <= places; place++) {
      const { rows } = await db.query<{ taken: boolean; now: Date }>(
        `select pg_try_advisory_xact_lock($1, case when $3 = '' then $2 else hashtext($3 || ' ' || $2::int) end) as taken,
                clock_timestamp() as now`,
        [lockClass, place, name],
      )
      if (rows[0]!.taken) return rows[0]!.now
    }
    return null
  }
  if ((await take(KEY_LOCK_CLASS, EXPORTS_PER_KEY_MAX, keyPrefix)) === null) return 'key busy'
  return (await take(EXPORT_LOCK_CLASS, EXPORTS_MAX)) ?? 'busy'
}
