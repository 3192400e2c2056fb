import { type Client, type Pool, type Queryable, snapshot } from '../../db.ts'
import {
  type Message,
  type MessageRow,
  rarestFirst,
  toMessage,
  WITHIN_BYTES,
} from '../messages/messages.ts'
import { findHits, type Hit, isSmall, queriesText } from './hits.ts'
import type { MessageSearch } from './searchMessages.ts'

/**
 * Names the content that a message must have: a one-time code, an attachment with a read text, or a calendar
 * invitation. Null means that the message needs no particular content.
 */
export type Awaited = 'code' | 'text' | 'invite' | null

type FirstSearch = Pick<MessageSearch, 'projectId' | 'queries' | 'labels'> & {
  after: Date
  /** Names the content that the awaited message must have, such as a one-time code. */
  has?: Awaited
}

/**
 * Finds the oldest matching message that a project received after a given time. @returns null if the project received
 * no matching message.
 * @throws {SearchTimeoutError} if the search takes too long.
 */
export async function findFirstReceived(pool: Pool, search: FirstSearch): Promise<Message | null> {
  const { projectId, queries, labels } = search
  if (search.has === 'code') return await firstOf(pool, search, FIRST.coded)
  if (search.has === 'text') return await firstOf(pool, search, FIRST.read)
  if (search.has === 'invite') return await firstOf(pool, search, FIRST.invited)
  if (queries.length === 0 && labels.length === 0) {
    return await firstOf(pool, search, FIRST.unsearched)
  }
  if (queries.length === 0) {
    const ordered = { ...search, labels: await rarestFirst(pool, projectId, labels) }
    return await firstOf(pool, ordered, FIRST.labelled)
  }
  if (await isSmall(pool, projectId)) return await firstOf(pool, search, FIRST.searched)
  const wanted = {
    projectId,
    queries,
    order: 'oldest',
    sinceMs: search.after.getTime(),
    untilMs: Infinity,
    limit: 1,
  } as const
  return await snapshot(pool, async (db) => {
    const [hit] = await findHits(db, wanted, (rows) => check(db, search, rows))
    return hit === undefined ? null : await readRow(db, hit.row)
  })
}

const COLUMNS = 'row, created_at, text_bytes'
const RECEIVED = `project_id = $1 and direction = 'received' and created_at > $2`
const CARRIES = 'labels @> $3::text[]'
const MATCHES = `($4 = '' or search @@ $4::tsquery)`

/**
 * Returns the SQL parameters of the query for the awaited message. Parameter $1 is the project, $2 the time after which
 * the message was received, $3 the labels, and $4 the search query.
 */
const valuesOf = ({ projectId, queries, labels, after }: FirstSearch): unknown[] => [
  projectId,
  after,
  labels,
  queriesText(projectId, queries),
]

const FIRST = {
  unsearched: `select ${COLUMNS} from messages where ${RECEIVED} and ${CARRIES} and $4 = ''`,
  searched: `select ${COLUMNS} from messages where ${RECEIVED} and ${CARRIES} and search @@ $4::tsquery`,
  // The SQL condition on `codes` is the same as the condition of the partial index messages_coded, so that PostgreSQL
  // uses this index.
  coded: `
    select ${COLUMNS} from messages
    where ${RECEIVED} and codes <> '[]'::jsonb and ${CARRIES} and ${MATCHES}`,
  // The SQL condition on `invites` is the same as the condition of the partial index messages_invited, so that
  // PostgreSQL uses this index.
  invited: `
    select ${COLUMNS} from messages
    where ${RECEIVED} and invites is not null and ${CARRIES} and ${MATCHES}`,
  // The condition on `state` lets PostgreSQL use the partial index attachment_texts_ready for the query `read`.
  read: `
    select distinct ${COLUMNS} from attachment_texts x join messages on row = x.message_row
    where x.project_id = $1 and x.state = 'ready'
      and messages.project_id = $1 and direction = 'received' and created_at > $2 and ${CARRIES} and ${MATCHES}`,
  // The query `labelled` reads the messages that have the first label of the filter, and keeps the messages that also
  // have all other labels.
  labelled: `
    select m.row, m.created_at, m.text_bytes
    from message_labels l join messages m on m.row = l.message_row
    where l.project_id = $1 and l.label = ($3::text[])[1] and l.created_at > $2 and $4 = ''
      and m.direction = 'received' and m.${CARRIES}`,
} as const

async function firstOf(db: Queryable, search: FirstSearch, found: string): Promise<Message | null> {
  const { rows } = await db.query<MessageRow>(
    `with page as (
       select ${COLUMNS} from (${found}) found order by created_at, row limit 1
     ) ${WITHIN_BYTES}`,
    valuesOf(search),
  )
  return rows[0] === undefined ? null : toMessage(rows[0])
}

async function check(db: Client, search: FirstSearch, rows: readonly string[]): Promise<Hit[]> {
  const found = await db.query<Hit>({
    name: 'first-received-among',
    // The CTE `given` reads the messages by their row numbers before the query compares the words. `searchMessages`
    // uses the same CTE and explains it.
    text: `with given as materialized (
             select row, project_id, created_at, labels, direction, search from messages
             where row = any ($5::bigint[])
           )
           select row, created_at as at from given
           where ${RECEIVED} and ${CARRIES} and search @@ $4::tsquery order by created_at, row limit 1`,
    values: [...valuesOf(search), rows],
  })
  return found.rows
}

async function readRow(db: Queryable, row: string): Promise<Message | null> {
  const { rows } = await db.query<MessageRow>({
    name: 'read-found-message',
    text: `with page as (select ${COLUMNS} from messages where row = $1) ${WITHIN_BYTES}`,
    values: [row],
  })
  return rows[0] === undefined ? null : toMessage(rows[0])
}
