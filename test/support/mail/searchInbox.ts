import type { Pool } from '../../../sql/db.ts'
import { newProject } from '../till/tillRows.ts'

/** Creates a project whose inbox has one thread, for messages that a test stores itself. @returns the project's id. */
export async function newInbox(pool: Pool): Promise<string> {
  const projectId = await newProject(pool)
  await pool.query(
    `insert into threads (id, project_id, subject, created_at, updated_at, message_count)
     values ('thd_' || $1, $1, 'Thread', now(), now(), 1)`,
    [projectId],
  )
  return projectId
}
