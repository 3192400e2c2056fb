import type { Blobs } from '../../blobs/blobs.ts'
import type { Client, Pool } from '../../db.ts'
import { type ExportedMail, exportMails } from '../../mail/messages/exportMails.ts'
import { type Actor, writeAudit } from '../audit.ts'
import { type ExportedRow, exportRows } from './exportRows.ts'
import { findProject, type Project } from './projects.ts'

/**
 * Sets the maximum number of project exports that run at once in all processes together. Each project export holds a
 * database snapshot, which makes PostgreSQL keep old row versions.
 */
export const EXPORTS_MAX = 4
/**
 * Holds the first key of the two-part advisory lock that each running export holds. The advisory locks limit the number
 * of running exports. The value of EXPORT_LOCK_CLASS is arbitrary.
 */
const EXPORT_LOCK_CLASS = 1_163_413_580
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
 * Opens a database snapshot for the export of a project. All exported rows are from one moment, even if the export
 * takes long.
 * @param entry is the audit entry for the export. The service writes this audit entry before it sends the first byte of
 * the export.
 * @returns null if no project has the id. The result `busy` means that the maximum number of exports is already
 * running.
 */
export async function openExport(
  { pool, blobs }: { pool: Pool; blobs: Blobs },
  projectId: string,
  entry: { actor: Actor; part: string },
): Promise<ProjectExport | 'busy' | null> {
  const client = await pool.connect()
  let isOpen = true
  const close = async () => {
    if (!isOpen) return
    isOpen = false
    // If a transaction stays idle too long, PostgreSQL ends the transaction and closes its connection. The rollback
    // fails if PostgreSQL has closed the connection.
    const broken = await client.query('rollback').then(
      () => undefined,
      (error: Error) => error,
    )
    client.release(broken)
  }
  try {
    await client.query('begin isolation level repeatable read read only')
    await client.query(`set local idle_in_transaction_session_timeout = '${IDLE_LIMIT}'`)
    const place = await takePlace(client)
    const project = place === null ? null : await findProject(client, projectId)
    if (place === null || project === null) {
      await close()
      return place === null ? 'busy' : null
    }
    await writeAudit(pool, entry.actor, {
      action: 'project.export',
      subject: projectId,
      detail: entry.part,
      outcome: 'ok',
    })
    return {
      project,
      at: place,
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
 * Counts a project export as running until its transaction ends, unless the maximum number of exports is already
 * running.
 * @returns the present time by the database's clock. Null means that the maximum number of exports is already running.
 */
async function takePlace(db: Client): Promise<Date | null> {
  for (let place = 1; place <= EXPORTS_MAX; place++) {
    const { rows } = await db.query<{ taken: boolean; now: Date }>(
      'select pg_try_advisory_xact_lock($1, $2) as taken, clock_timestamp() as now',
      [EXPORT_LOCK_CLASS, place],
    )
    if (rows[0]!.taken) return rows[0]!.now
  }
  return null
}
