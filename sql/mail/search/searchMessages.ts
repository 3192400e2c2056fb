import type { Cursor } from '../../../shared/cursor.ts'
import type { SearchQuery } from '../../../shared/mail/search/searchQuery.ts'
import type { Client, Pool } from '../../db.ts'
import {
  type DeliveryStatus,
  type Message,
  type MessageRow,
  toMessage,
  upperBound,
  WITHIN_BYTES,
} from '../messages/messages.ts'
import { findHits, type Hit, isSmall, queriesText } from './found.ts'

export type MessageSearch = {
  projectId: string
  /** A message must match all of them. */
  queries: readonly SearchQuery[]
  labels: readonly string[]
  after: Date | null
  before: Date | null
  deliveryStatus?: DeliveryStatus | null
  cursor: Cursor | null
  limit: number
}

/**
 * One page of the messages that match, newest first, and whether there are more.
 * @throws {SearchTimeoutError}
 */
export async function searchMessages(
  pool: Pool,
  search: MessageSearch,
): Promise<{ messages: Message[]; more: boolean }> {
  const { projectId, limit } = search
  const { rows } = await pool.query<MessageRow & { found: number }>(
    (await isSmall(pool, projectId))
      ? {
          // The limit is a literal: for a parameter the planner expects a tenth of the inbox and sorts all of it.
          text: `with page as (${matchesAmong('true')} order by created_at desc, row desc limit ${limit + 1}) ${WITHIN_BYTES}`,
          values: valuesOf(search),
        }
      : {
          name: 'found-messages',
          text: `with page as (
                   select row, created_at, text_bytes from messages where row = any ($1::bigint[])
                 ) ${WITHIN_BYTES}`,
          values: [(await hitsOf(pool, search)).map(({ row }) => row)],
        },
  )
  const messages = rows.slice(0, limit).map(toMessage)
  return { messages, more: messages.length < (rows[0]?.found ?? 0) }
}

function hitsOf(pool: Pool, search: MessageSearch): Promise<Hit[]> {
  const { projectId, queries, after, limit } = search
  const until = upperBound(search).at
  const wanted = {
    projectId,
    queries,
    order: 'newest',
    sinceMs: after === null ? -Infinity : after.getTime(),
    untilMs: until instanceof Date ? until.getTime() : Infinity,
    limit: limit + 1,
  } as const
  return findHits(pool, wanted, (db, rows) => check(db, search, rows))
}

/** The terms of a message are read, newest first, until the page is full. */
async function check(db: Client, search: MessageSearch, rows: readonly string[]): Promise<Hit[]> {
  const found = await db.query<Hit>(
    `select row, created_at as at from (${candidatesAmong('row = any ($8::bigint[])')}
       order by created_at desc, row desc offset 0) candidates
     where search @@ $4::tsquery order by created_at desc, row desc limit ${search.limit + 1}`,
    [...valuesOf(search), rows],
  )
  return found.rows
}

/** $1 the project, $2 and $3 the upper bound, $4 the query, $5 labels, $6 the lower bound, $7 the status. */
const valuesOf = (search: MessageSearch): unknown[] => {
  const { at, row } = upperBound(search)
  return [
    search.projectId,
    at,
    row,
    queriesText(search.projectId, search.queries),
    search.labels,
    search.after ?? '-infinity',
    search.deliveryStatus ?? null,
  ]
}

const candidatesAmong = (condition: string) => `
  select row, created_at, text_bytes, search from messages
  where ${condition} and project_id = $1 and (created_at, row) < ($2::timestamptz, $3::bigint)
    and created_at >= $6::timestamptz and labels @> $5::text[] and ($7::text is null or delivery_status = $7)`

const matchesAmong = (condition: string) =>
  `${candidatesAmong(condition)} and search @@ $4::tsquery`
