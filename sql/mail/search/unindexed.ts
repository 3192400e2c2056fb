import type { Queryable } from '../../db.ts'
import type { Message } from '../messages/messages.ts'

/** Lists at most `limit` messages that an older version without a search index stored. */
export async function listUnindexed(
  db: Queryable,
  limit: number,
): Promise<
  (Pick<Message, 'subject' | 'from' | 'to' | 'cc' | 'text'> & {
    row: string
    projectId: string
    bcc: string[]
    filenames: string[]
  })[]
> {
  const { rows } = await db.query(
    `select row, project_id as "projectId", subject, from_addresses as "from", to_addresses as "to",
            cc_addresses as cc, bcc_addresses as bcc, text_body as text,
            array(select a ->> 'filename' from jsonb_array_elements(attachments) a) as filenames
     from messages where search is null order by row limit $1`,
    [limit],
  )
  return rows
}

/** Stores the search vectors of messages. */
export async function indexMessages(
  db: Queryable,
  vectors: readonly { row: string; vector: string }[],
): Promise<void> {
  await db.query(
    `update messages m set search = v.vector::tsvector
     from unnest($1::bigint[], $2::text[]) v (row, vector) where m.row = v.row`,
    [vectors.map(({ row }) => row), vectors.map(({ vector }) => vector)],
  )
}
