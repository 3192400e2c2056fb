import type { Queryable } from '../../db.ts'

/** Describes the summary of a thread in a list of threads. */
export type ThreadDigest = {
  /** Lists the From addresses of the thread's newest message. */
  from: string[]
  /** Holds the beginning of the newest message's text, without quoted history. */
  snippet: string
  /** Tells whether one of the thread's newest messages is unread. */
  unread: boolean
}

/** Limits how many messages of a thread the summary reads, because a thread can have any number of messages. */
const MESSAGES_READ = 20
const SNIPPET_LENGTH = 160

/** Returns the summaries of threads in a map by thread id. */
export async function readThreadDigests(
  db: Queryable,
  { projectId, threadIds }: { projectId: string; threadIds: readonly string[] },
): Promise<Map<string, ThreadDigest>> {
  const { rows } = await db.query<ThreadDigest & { id: string }>({
    name: 'read-thread-digests',
    text: `
      select t.id, newest.from_addresses as "from", newest.snippet, newest.unread
      from threads t cross join lateral (
        select (array_agg(to_json(m.from_addresses) order by n))[1] as from_addresses,
               (array_agg(m.snippet order by n))[1] as snippet, bool_or('unread' = any (m.labels)) as unread
        from (
          select row_number() over (order by created_at desc, row desc) as n, from_addresses, labels,
                 left(coalesce(nullif(extracted_text, ''), text_body), ${SNIPPET_LENGTH}) as snippet
          from messages where thread_row = t.row order by created_at desc, row desc limit ${MESSAGES_READ}
        ) m
      ) newest
      where t.project_id = $1 and t.id = any ($2)`,
    values: [projectId, threadIds],
  })
  return new Map(
    rows.map(({ id, from, snippet, unread }) => [
      id,
      { from: from ?? [], snippet: snippet ?? '', unread: unread ?? false },
    ]),
  )
}
