import type { Cursor } from '../../../shared/cursor.ts'
import {
  candidatesText,
  type SearchQuery,
  searchText,
} from '../../../shared/mail/search/searchQuery.ts'
import type { Queryable } from '../../db.ts'
import {
  type DeliveryStatus,
  type Message,
  type MessageRow,
  rarestFirst,
  toMessage,
  upperBound,
  WITHIN_BYTES,
} from './messages.ts'

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

/** The newest messages, filtered one by one first. A common word fills its page from them in an inbox of any size. */
const NEWEST = 256
/** Bytes of text of those messages. The terms of one message take up to a megabyte, and each is read from its own place. */
const NEWEST_TEXT_BYTES = 2 * 1024 * 1024
/** The second step: the index on this many newest messages, if the first step found some. */
const RECENT = 4_096
/** Most matches that are sorted by time. A more common word is searched only among the newest messages. */
const SORTED_MAX = 1_000
/** The newest messages in which the index searches such a word. */
const RECENT_OF_MANY = 65_536

/** One page of the messages that match, newest first, and whether there are more. */
export async function searchMessages(
  db: Queryable,
  search: MessageSearch,
): Promise<{ messages: Message[]; more: boolean }> {
  // More than a page among the newest messages: every match is newer than every unread message.
  const isPage = (rows: FoundRow[]) => rows.length > search.limit
  const newest = await read(db, search, 'newest')
  if (isPage(newest)) return pageOf(newest, search.limit)
  const looks = newest.length > 0 ? [RECENT, RECENT_OF_MANY] : [RECENT_OF_MANY]
  for (const among of looks) {
    if (among === RECENT_OF_MANY && (await isRare(db, search))) break
    const since = await timeOf(db, search, among)
    if (since === null) break
    const recent = await readSince(db, search, since)
    if (isPage(recent)) return pageOf(recent, search.limit)
  }
  // Few messages, few matches, or only old matches: sort them all.
  return pageOf(await read(db, search, 'index'), search.limit)
}

/** The time of the `nth` newest message below the upper bound; null: there are fewer. */
async function timeOf(db: Queryable, search: MessageSearch, nth: number): Promise<Date | null> {
  const { at, row } = upperBound(search)
  const { rows } = await db.query<{ created_at: Date }>({
    name: `time-of-${nth}`,
    text: `select created_at from messages where project_id = $1 and (created_at, row) < ($2::timestamptz, $3::bigint)
           order by created_at desc, row desc offset ${nth} limit 1`,
    values: [search.projectId, at, row],
  })
  return rows[0]?.created_at ?? null
}

/** The newest matches since a time, inclusive. */
const readSince = (db: Queryable, search: MessageSearch, since: Date): Promise<FoundRow[]> =>
  read(
    db,
    { ...search, after: new Date(Math.max(since.getTime(), search.after?.getTime() ?? 0)) },
    'recent',
  )

/** Whether at most SORTED_MAX messages can match. */
async function isRare(
  db: Queryable,
  { projectId, queries }: Pick<MessageSearch, 'projectId' | 'queries'>,
): Promise<boolean> {
  const { rows } = await db.query<{ hits: number }>({
    name: 'count-hits',
    text: `select count(*)::int as hits from (
             select from messages where search @@ $1::tsquery limit ${SORTED_MAX + 1}) hit`,
    values: [queries.map((query) => candidatesText(projectId, query)).join(' & ')],
  })
  return rows[0]!.hits <= SORTED_MAX
}

type FoundRow = MessageRow & { found: number }

function pageOf(rows: FoundRow[], limit: number): { messages: Message[]; more: boolean } {
  const messages = rows.slice(0, limit).map(toMessage)
  return { messages, more: messages.length < (rows[0]?.found ?? 0) }
}

async function read(
  db: Queryable,
  search: MessageSearch,
  way: keyof typeof CANDIDATES,
): Promise<FoundRow[]> {
  const { projectId, queries, labels, after, limit } = search
  const { at, row } = upperBound(search)
  const { rows } = await db.query<FoundRow>(
    // The limit is a literal: for a parameter the planner expects a tenth of the inbox and sorts all of it.
    `with ${CANDIDATES[way]}, page as (
       select row, created_at, text_bytes from candidates order by created_at desc, row desc limit ${limit + 1}
     )
     ${WITHIN_BYTES}`,
    [
      projectId,
      at,
      row,
      queriesText(projectId, queries),
      labels,
      after ?? '-infinity',
      search.deliveryStatus ?? null,
    ],
  )
  return rows
}

const WITHIN = `
  project_id = $1 and (created_at, row) < ($2::timestamptz, $3::bigint)
  and created_at >= $6::timestamptz`
const FITS = 'labels @> $5::text[] and ($7::text is null or delivery_status = $7)'
const COLUMNS = 'row, created_at, text_bytes'

/** The first rows of a query, up to NEWEST_TEXT_BYTES. The size is summed before any terms are read. */
const lookedAt = (rows: string, order: string) => `
    looked_at as (
      select * from (
        select *, sum(text_bytes) over (order by ${order}) - text_bytes as bytes_before from ${rows}
      ) summed where bytes_before < ${NEWEST_TEXT_BYTES}
    )`

const CANDIDATES = {
  newest: `
    newest as (
      select ${COLUMNS}, labels, delivery_status, search from messages where ${WITHIN}
      order by created_at desc, row desc limit ${NEWEST}
    ), ${lookedAt('newest', 'created_at desc, row desc')}, candidates as (
      select ${COLUMNS} from looked_at where ${FITS} and search @@ $4::tsquery
    )`,
  // Reads through the search index alone: its terms have the project's prefix.
  index: `
    hits as materialized (
      select ${COLUMNS}, project_id, labels, delivery_status from messages where search @@ $4::tsquery
    ), candidates as (
      select ${COLUMNS} from hits where ${WITHIN} and ${FITS}
    )`,
  // Intersects both indexes; reads only messages in both.
  recent: `
    hits as materialized (
      select ${COLUMNS}, labels, delivery_status from messages where ${WITHIN} and search @@ $4::tsquery
    ), candidates as (
      select ${COLUMNS} from hits where ${FITS}
    )`,
} as const

/** The oldest matching message received after a time, or null. */
export async function findFirstReceived(
  db: Queryable,
  search: FirstSearch,
): Promise<Message | null> {
  const readFirst = (way: keyof typeof FIRST, until: Date | null = null) =>
    firstOf(db, search, FIRST[way], until)
  const { projectId, queries, labels } = search
  if (search.has === 'code') return await readFirst('coded')
  if (search.has === 'text') return await readFirst('read')
  if (search.has === 'invite') return await readFirst('invited')
  if (queries.length === 0 && labels.length === 0) return await readFirst('unsearched')
  if (queries.length === 0) {
    const ordered = { ...search, labels: await rarestFirst(db, projectId, labels) }
    return await firstOf(db, ordered, FIRST.labelled, null)
  }
  const oldest = await readFirst('oldest')
  if (oldest !== null) return oldest
  if (await isRare(db, search)) return await readFirst('index')
  // A common word: the index, on one stretch of time after the other.
  for (let { after } = search; ; ) {
    const until = await timeAfter(db, search.projectId, after, RECENT_OF_MANY)
    const found = await firstOf(db, { ...search, after }, FIRST.index, until)
    if (found !== null || until === null) return found
    after = until
  }
}

/** A one-time code, an attachment that was read, or an invite; null: anything. */
export type Awaited = 'code' | 'text' | 'invite' | null

type FirstSearch = Pick<MessageSearch, 'projectId' | 'queries' | 'labels'> & {
  after: Date
  /** What a message must hold. */
  has?: Awaited
}

const RECEIVED = `project_id = $1 and direction = 'received' and created_at > $2
  and ($5::timestamptz is null or created_at <= $5)`
const CARRIES = 'labels @> $3::text[]'
const FIRST = {
  unsearched: `found as (select ${COLUMNS} from messages where ${RECEIVED} and ${CARRIES} and $4 = '')`,
  // The predicate is that of the index messages_coded.
  coded: `
    found as (
      select ${COLUMNS} from messages
      where ${RECEIVED} and codes <> '[]'::jsonb and ${CARRIES} and ($4 = '' or search @@ $4::tsquery)
    )`,
  // The predicate is that of the index messages_invited.
  invited: `
    found as (
      select ${COLUMNS} from messages
      where ${RECEIVED} and invites is not null and ${CARRIES} and ($4 = '' or search @@ $4::tsquery)
    )`,
  // By the index attachment_texts_ready.
  read: `
    found as (
      select distinct ${COLUMNS} from attachment_texts x join messages on row = x.message_row
      where x.project_id = $1 and x.state = 'ready'
        and messages.project_id = $1 and direction = 'received' and created_at > $2
        and ($5::timestamptz is null or created_at <= $5) and ${CARRIES} and ($4 = '' or search @@ $4::tsquery)
    )`,
  // Reads the messages of the first label and filters by the others.
  labelled: `
    found as (
      select m.row, m.created_at, m.text_bytes
      from message_labels l join messages m on m.row = l.message_row
      where l.project_id = $1 and l.label = ($3::text[])[1] and l.created_at > $2 and $4 = ''
        and ($5::timestamptz is null or l.created_at <= $5)
        and m.direction = 'received' and m.${CARRIES}
    )`,
  oldest: `
    oldest as (
      select ${COLUMNS}, labels, search from messages where ${RECEIVED}
      order by created_at, row limit ${NEWEST}
    ), ${lookedAt('oldest', 'created_at, row')}, found as (
      select ${COLUMNS} from looked_at where ${CARRIES} and search @@ $4::tsquery
    )`,
  index: `
    hits as materialized (
      select ${COLUMNS}, labels from messages where ${RECEIVED} and search @@ $4::tsquery
    ), found as (
      select ${COLUMNS} from hits where ${CARRIES}
    )`,
} as const

async function firstOf(
  db: Queryable,
  { projectId, queries, labels, after }: FirstSearch,
  found: string,
  until: Date | null,
): Promise<Message | null> {
  const { rows } = await db.query<MessageRow>(
    `with ${found}, page as (select ${COLUMNS} from found order by created_at, row limit 1) ${WITHIN_BYTES}`,
    [projectId, after, labels, queriesText(projectId, queries), until],
  )
  return rows[0] === undefined ? null : toMessage(rows[0])
}

/** The time of the `nth` message after a time; null: there are fewer. */
async function timeAfter(
  db: Queryable,
  projectId: string,
  after: Date,
  nth: number,
): Promise<Date | null> {
  const { rows } = await db.query<{ created_at: Date }>({
    name: 'time-after',
    text: `select created_at from messages where project_id = $1 and created_at > $2
           order by created_at, row offset $3 limit 1`,
    values: [projectId, after, nth],
  })
  return rows[0]?.created_at ?? null
}

const queriesText = (projectId: string, queries: readonly SearchQuery[]): string =>
  queries.map((query) => searchText(projectId, query)).join(' & ')

/** Messages stored by a version without a search index, at most `limit`. */
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
