import type { Queryable } from '../../db.ts'
import { addJob } from '../../queue/jobs.ts'

/**
 * Queues a job that reads the attachments of a project. The database rows tell the job which attachments it must still
 * read.
 */
export const queueReading = (
  db: Queryable,
  projectId: string,
  { runAt, priority = 0 }: { runAt?: Date; priority?: number } = {},
): Promise<void> =>
  addJob(db, {
    task: 'read_attachments',
    payload: { projectId },
    key: `read_attachments:${projectId}`,
    priority,
    ...(runAt === undefined ? {} : { runAt, keepsTime: true }),
  })

/**
 * Sets after how many seconds another job run makes the texts of a message's attachments searchable. Normally, the job
 * run that read the last attachment does so within seconds.
 */
const SEARCHABLE_SECONDS = 60

const searchableKey = (projectId: string, messageRow: string): string =>
  `read_attachments:${projectId}:${messageRow}`

/** Queues a job that makes the attachments of a message searchable if the present run dies before it has done so. */
export const queueSearchable = (
  db: Queryable,
  projectId: string,
  messageRow: string,
): Promise<void> =>
  addJob(db, {
    task: 'read_attachments',
    payload: { projectId, messageRow },
    key: searchableKey(projectId, messageRow),
    inMs: SEARCHABLE_SECONDS * 1000,
  })

/** Removes the job of `recordTexts` after the attachments of the message have become searchable. */
export async function endSearchable(
  db: Queryable,
  projectId: string,
  messageRow: string,
): Promise<void> {
  await db.query('select graphile_worker.remove_job($1)', [searchableKey(projectId, messageRow)])
}

/** Queues the job that reads the attachments of an approved mail, if the mail has an attachment to read. */
export async function queueWaitingReading(
  db: Queryable,
  projectId: string,
  messageRow: string,
): Promise<void> {
  const { rowCount } = await db.query({
    name: 'find-waiting-reading',
    text: `select from attachment_texts where message_row = $1 and state = 'pending' limit 1`,
    values: [messageRow],
  })
  if ((rowCount ?? 0) > 0) await queueReading(db, projectId)
}

/** Records the attachments of a new message that a worker process must read. */
export async function insertPendingTexts(
  db: Queryable,
  { projectId, messageRow }: { projectId: string; messageRow: string },
  attachmentIds: readonly string[],
): Promise<void> {
  if (attachmentIds.length === 0) return
  await db.query({
    name: 'insert-pending-texts',
    text: `insert into attachment_texts (message_row, attachment_id, project_id)
           select $1, id, $2 from unnest($3::text[]) id`,
    values: [messageRow, projectId, attachmentIds],
  })
  await queueReading(db, projectId)
}
