import type { SearchQuery } from '../../../shared/mail/search/searchQuery.ts'
import { type Client, type Pool, snapshot } from '../../db.ts'
import {
  type Message,
  type MessageFilter,
  type MessageRow,
  toMessage,
  upperBound,
  WITHIN_BYTES,
} from '../messages/messages.ts'
import { findHits, type Hit, isSmall, queriesText } from './hits.ts'

/** Describes a search for messages. A message must match all `queries`. */
export type MessageSearch = MessageFilter & { queries: readonly SearchQuery[] }

/**
 * Returns one page of the messages that match a search, newest first, and tells whether more matching messages follow.
 * @throws {SearchTimeoutError} if the search takes too long.
 */
export async function searchMessages(
  pool: Pool,
  search: MessageSearch,
): Promise<{ messages: Message[]; more: boolean }> {
  const rows = (await isSmall(pool, search.projectId))
    ? await readSmall(pool, search)
    : await snapshot(pool, (db) => readLarge(db, search))
  const messages = rows.slice(0, search.limit).map(toMessage)
  return { messages, more: messages.length < (rows[0]?.found ?? 0) }
}

type FoundRow = MessageRow & { found: number }

async function readSmall(pool: Pool, search: MessageSearch): Promise<FoundRow[]> {
  const { rows } = await pool.query<FoundRow>(
    // The SQL text contains the page limit as a number, because with an SQL parameter, the PostgreSQL planner would
    // expect a tenth of the inbox as the result, and would sort all these messages.
    `with page as (
       select row, created_at, text_bytes from messages where ${FITS} and search @@ $4::tsquery
       order by created_at desc, row desc limit ${search.limit + 1}
     ) ${WITHIN_BYTES}`,
    valuesOf(search),
  )
  return rows
}

async function readLarge(db: Client, search: MessageSearch): Promise<FoundRow[]> {
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
  const hits = await findHits(db, wanted, (rows) => check(db, search, rows))
  const { rows } = await db.query<FoundRow>({
    name: 'found-messages',
    text: `with page as (
             select row, created_at, text_bytes from messages where row = any ($1::bigint[])
           ) ${WITHIN_BYTES}`,
    values: [hits.map(({ row }) => row)],
  })
  return rows
}

/**
 * Returns the messages among `rows` that contain the searched words, newest first, until the page is full. The CTE
 * `given` reads the messages by their row numbers before the query compares their words. Without it, the PostgreSQL
 * planner would read the whole inbox in order, because it expects that a few rows fill the page.
 */
async function check(db: Client, search: MessageSearch, rows: readonly string[]): Promise<Hit[]> {
  const found = await db.query<Hit>(
    `with given as materialized (
       select row, project_id, created_at, labels, delivery_status, search from messages
       where row = any ($8::bigint[])
     )
     select row, created_at as at from (
       select row, created_at, search from given where ${FITS} order by created_at desc, row desc offset 0
     ) fitting
     where search @@ $4::tsquery order by created_at desc, row desc limit ${search.limit + 1}`,
    [...valuesOf(search), rows],
  )
  return found.rows
}

/**
 * Returns the SQL parameters of the search query. Parameter $1 is the project, $2 and $3 are the time and the row
 * number of the upper bound, and $4 is the search query. Parameter $5 is the labels, $6 is the time of the lower bound,
 * and $7 is the delivery status.
 */
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

const FITS = `
  project_id = $1 and (created_at, row) < ($2::timestamptz, $3::bigint) and created_at >= $6::timestamptz
  and labels @> $5::text[] and ($7::text is null or delivery_status = $7)`
