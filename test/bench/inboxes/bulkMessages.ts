import pg from 'pg'
import type { Queryable } from '../../../sql/db.ts'
import { buildSegments } from '../../../sql/mail/search/buildSegments.ts'
import type { Setting } from '../setting.ts'

/**
 * Loads messages into the database without the triggers, because these would slow down the load. Afterwards the
 * function does the work of the triggers for all messages at once, and builds the search segments of the large
 * projects.
 */
export async function loadInBulk(
  { url, pool }: Setting,
  load: (client: Queryable) => Promise<{ largeProjects: readonly string[] }>,
): Promise<void> {
  // The SQL statements of the load take minutes, so they run on a separate connection without the pool’s statement
  // timeout.
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query('set statement_timeout = 0')
    const triggers = async (state: 'enable' | 'disable') => {
      for (const name of ['messages_labels_added', 'messages_search_added']) {
        await client.query(`alter table messages ${state} trigger ${name}`)
      }
    }
    await triggers('disable')
    const { largeProjects } = await load(client)
    await triggers('enable')
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
    const tables = ['messages', 'threads', 'message_labels', 'search_pending', 'search_leaves']
    await client.query(`vacuum analyze ${tables.join(', ')}, search_segments, search_blocks`)
  } finally {
    await client.end()
  }
}
