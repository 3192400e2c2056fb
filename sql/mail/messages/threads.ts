import type { Cursor } from '../../../shared/cursor.ts'
import { type Pool, type Queryable, transaction } from '../../db.ts'
import { inBatches } from '../../inBatches.ts'
import { LABELS_MAX, TooManyLabelsError } from './messageLabels.ts'

/** Describes one conversation of one inbox. */
export type Thread = {
  row: string
  threadId: string
  inboxAddress: string
  subject: string
  messageCount: number
  createdAt: Date
  updatedAt: Date
}

type ThreadRow = {
  row: string
  id: string
  email_address: string
  subject: string
  message_count: number
  created_at: Date
  updated_at: Date
}

const COLUMNS =
  't.row, t.id, p.email_address, t.subject, t.message_count, t.created_at, t.updated_at'

const toThread = (row: ThreadRow): Thread => ({
  row: row.row,
  threadId: row.id,
  inboxAddress: row.email_address,
  subject: row.subject,
  messageCount: row.message_count,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
})

export type ThreadPage = {
  threads: Thread[]
  /** Holds the start of the next page of threads. Null means that no further page follows. */
  next: Cursor | null
}

/**
 * Returns one page of threads, the most recently updated first. A new message moves its thread to the top of the list,
 * so a client that reads page after page could miss this thread. Therefore the page token holds the time at which the
 * client read the first page. Later pages order the threads as they were at that time, so that no thread is missing or
 * repeated.
 */
export async function listThreads(
  db: Queryable,
  { projectId, cursor, limit }: { projectId: string; cursor: Cursor | null; limit: number },
): Promise<ThreadPage> {
  const rows =
    cursor === null
      ? await firstPage(db, projectId, limit)
      : await laterPage(db, projectId, cursor, limit)
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  if (rows.length <= limit || last === undefined) return { threads: page.map(toThread), next: null }
  const asOfMs = cursor?.asOfMs ?? page[0]!.updated_at.getTime()
  const next = { atMs: last.position.getTime(), row: BigInt(last.row), asOfMs }
  return { threads: page.map(toThread), next }
}

type PositionedRow = ThreadRow & { position: Date }

async function firstPage(db: Queryable, projectId: string, limit: number) {
  const { rows } = await db.query<PositionedRow>({
    name: 'list-threads',
    text: `
      select ${COLUMNS}, t.updated_at as position
      from threads t join projects p on p.id = t.project_id
      where t.project_id = $1
      order by t.updated_at desc, t.row desc limit $2`,
    values: [projectId, limit + 1],
  })
  return rows
}

async function laterPage(db: Queryable, projectId: string, cursor: Cursor, limit: number) {
  const at = new Date(cursor.atMs)
  const asOf = new Date(cursor.asOfMs ?? cursor.atMs)
  const { rows } = await db.query<PositionedRow>({
    name: 'list-threads-after',
    text: `
      with unmoved as (
        select row, updated_at as position from threads
        where project_id = $1 and (updated_at, row) < ($2::timestamptz, $3::bigint)
        order by updated_at desc, row desc limit $5
      ), moved as (
        select t.row, m.position
        from threads t cross join lateral (
          select max(added_at) as position from messages
          where thread_row = t.row and added_at <= $4::timestamptz) m
        where t.project_id = $1 and t.updated_at > $4::timestamptz
          and (m.position, t.row) < ($2::timestamptz, $3::bigint)
        order by m.position desc, t.row desc limit $5
      )
      select ${COLUMNS}, o.position
      from (select * from unmoved union all select * from moved) o
      join threads t on t.row = o.row join projects p on p.id = t.project_id
      order by o.position desc, o.row desc limit $5`,
    values: [projectId, at, cursor.row, asOf, limit + 1],
  })
  return rows
}

/** Finds one thread of a project. @returns null if the project has no such thread. */
export async function findThread(
  db: Queryable,
  projectId: string,
  threadId: string,
): Promise<Thread | null> {
  const { rows } = await db.query<ThreadRow>({
    name: 'find-thread',
    text: `select ${COLUMNS} from threads t join projects p on p.id = t.project_id
           where t.project_id = $1 and t.id = $2`,
    values: [projectId, threadId],
  })
  return rows[0] === undefined ? null : toThread(rows[0])
}

/** Limits how many messages of a thread one statement changes. */
const BATCH = 500

/**
 * Adds labels to every message of a thread and removes labels. If a label is in both lists, the function removes the
 * label from the messages.
 * @returns false if the project has no thread with the id.
 * @throws {TooManyLabelsError} if a message would have too many labels. If the function throws this error, it changes
 * no message.
 */
export async function updateThreadLabels(
  pool: Pool,
  change: {
    projectId: string
    threadId: string
    add: readonly string[]
    remove: readonly string[]
  },
): Promise<boolean> {
  return transaction(pool, async (db) => {
    const thread = await findThread(db, change.projectId, change.threadId)
    if (thread === null) return false
    // Other statements also lock messages in this order, so that two transactions never deadlock.
    const batches = inBatches<{ row: string }>(db, {
      text: 'select row from messages where thread_row = $1 order by row',
      values: [thread.row],
      size: BATCH,
    })
    for await (const rows of batches) {
      const messageRows = rows.map(({ row }) => row)
      await changeLabels(db, messageRows, change)
    }
    return true
  })
}

async function changeLabels(
  db: Queryable,
  messageRows: readonly string[],
  { add, remove }: { add: readonly string[]; remove: readonly string[] },
): Promise<void> {
  const { rows } = await db.query<{ is_over: boolean }>(
    `with locked as (
       select row, labels from messages where row = any ($1::bigint[]) order by row for no key update
     )
     update messages m set labels = array(
       select label from (
         select label, n from unnest(locked.labels) with ordinality l (label, n)
         union all
         select label, 1000 + n from unnest($2::text[]) with ordinality a (label, n)
         where not (label = any (locked.labels))
       ) kept
       where not (label = any ($3::text[])) order by n)
     from locked where m.row = locked.row
     returning cardinality(m.labels) > greatest($4::int, cardinality(locked.labels)) as is_over`,
    [messageRows, add, remove, LABELS_MAX],
  )
  if (rows.some((row) => row.is_over)) throw new TooManyLabelsError()
}
