import type { Pool, Queryable } from '../../../sql/db.ts'
import { buildSegments } from '../../../sql/mail/search/buildSegments.ts'

/**
 * Loads messages without the triggers that would slow it, then does their work at once, and builds the segments of the
 * large projects.
 */
export async function loadInBulk(
  client: Queryable,
  pool: Pool,
  load: () => Promise<{ largeProjects: readonly string[] }>,
): Promise<void> {
  await client.query('alter table messages disable trigger messages_labels_added')
  await client.query('alter table messages disable trigger messages_search_added')
  const { largeProjects } = await load()
  await client.query('alter table messages enable trigger messages_labels_added')
  await client.query('alter table messages enable trigger messages_search_added')
  await client.query(
    `insert into message_labels (project_id, label, created_at, message_row)
     select project_id, unnest(labels), created_at, row from messages on conflict do nothing`,
  )
  await client.query(
    `insert into search_pending (project_id, created_at, message_row, text_bytes)
     select project_id, created_at, row, text_bytes from messages m
     where not exists (select from search_leaves l where l.project_id = m.project_id) on conflict do nothing`,
  )
  for (const projectId of largeProjects) {
    while ((await buildSegments(pool, projectId)) !== null);
  }
  await client.query(
    `vacuum analyze messages, threads, message_labels, search_pending, search_leaves, search_segments, search_blocks`,
  )
}
