import { messageIdHash } from '../../../shared/mail/threading.ts'
import { type Client, type Pool, type Queryable, transaction } from '../../db.ts'
import { deleteInBatches } from '../../deleteInBatches.ts'
import { withdrawDeleted } from '../approval/heldMails.ts'
import { undoEventsOfUnsent } from '../outbound/unsentMails.ts'
import { deleteUnusedRawMails } from './rawMails.ts'

/**
 * Holds the time for which the service keeps the hash of a deleted message. Senders may send the same mail again for
 * about five days (RFC 5321 §4.5.4.1).
 */
const RETENTION = '7 days'

/**
 * Deletes a message with its text, attachments and raw mail. If the deleted message is an outbound mail in the queue,
 * the service does not send the mail. The function also deletes a thread that has no message any more.
 * @returns false if the project has no such message.
 */
export async function deleteMessage(
  pool: Pool,
  projectId: string,
  messageId: string,
): Promise<boolean> {
  return transaction(pool, async (db) => {
    await lockInbox(db, projectId)
    const { rows } = await db.query<{ row: string; thread_row: string }>(
      'select row, thread_row from messages where project_id = $1 and message_id_hash = $2',
      [projectId, messageIdHash(messageId)],
    )
    if (rows[0] === undefined) return false
    const freed = await deleteRows(db, projectId, [rows[0].row])
    await shrinkThreads(db, [rows[0].thread_row])
    await giveBack(db, projectId, freed)
    return true
  })
}

/**
 * Limits how many messages of a thread one transaction deletes, because the deletion of all messages of a long thread
 * would take longer than the service lets a statement run.
 */
const BATCH = 500

/**
 * Deletes a thread with all its messages, in several transactions. If the function fails, the next call deletes the
 * rest. @returns false if the project has no such thread.
 */
export async function deleteThread(
  pool: Pool,
  projectId: string,
  threadId: string,
): Promise<boolean> {
  let end = await deleteOldest(pool, projectId, threadId)
  const wasFound = end !== 'no thread'
  while (end === 'rest') end = await deleteOldest(pool, projectId, threadId)
  return wasFound
}

/**
 * Deletes the oldest messages of a thread, at most {@link BATCH}. The function also deletes the thread if no message is
 * left. A reply can join the thread until the deletion has locked it. @returns `rest` if messages are left.
 */
async function deleteOldest(
  pool: Pool,
  projectId: string,
  threadId: string,
): Promise<'deleted' | 'rest' | 'no thread'> {
  return transaction(pool, async (db) => {
    await lockInbox(db, projectId)
    const { rows } = await db.query<{ row: string; messages: string[] }>(
      `select t.row, array(select m.row from messages m where m.thread_row = t.row
                           order by m.created_at, m.row limit ${BATCH}) as messages
       from threads t where t.project_id = $1 and t.id = $2`,
      [projectId, threadId],
    )
    if (rows[0] === undefined) return 'no thread'
    const { row, messages } = rows[0]
    const freed = await deleteRows(db, projectId, messages)
    await shrinkThreads(db, messages.length > 0 ? messages.map(() => row) : [row])
    await giveBack(db, projectId, freed)
    const left = await db.query('select from threads where row = $1', [row])
    return left.rowCount === 0 ? 'deleted' : 'rest'
  })
}

/** Locks the row of the project, like `storeParsedMails`. Therefore no message joins a thread during its deletion. */
async function lockInbox(db: Queryable, projectId: string): Promise<void> {
  await db.query('select from projects where id = $1 for no key update', [projectId])
}

/**
 * Corrects threads after a deletion of messages, and deletes empty threads. The SQL finds the last message of a thread
 * by an index, because a count for a thread of a million messages would take a second.
 * @param removed lists the row number of the thread of each deleted message.
 */
export async function shrinkThreads(db: Queryable, removed: readonly string[]): Promise<void> {
  await db.query({
    name: 'shrink-threads',
    text: `
      with touched as (
        select row, count(*)::int as lost from unnest($1::bigint[]) row group by row
      ), rest as (
        select row, lost, (select max(added_at) from messages m where m.thread_row = touched.row) as last from touched
      ), emptied as (
        delete from threads where row in (select row from rest where last is null)
      )
      update threads t set message_count = t.message_count - rest.lost, updated_at = rest.last
      from rest where t.row = rest.row and rest.last is not null`,
    values: [removed],
  })
}

/** Counts the recipients of deleted, unsent mail, by the UTC day on which the API accepted the mail. */
type FreedQuota = { day: string; recipients: number }

/**
 * Takes the recipients of deleted, unsent mail off the daily quota, like a cancellation. The function runs after the
 * changes of the threads, because a batch of new mail also locks the threads before the quotas.
 */
async function giveBack(
  db: Client,
  projectId: string,
  freed: readonly FreedQuota[],
): Promise<void> {
  for (const { day, recipients } of freed) {
    await db.query(
      `update send_quotas set used = greatest(0, used - $3) where project_id = $1 and day = $2::date`,
      [projectId, day, recipients],
    )
  }
}

/**
 * Deletes messages and their dependent rows, except their threads. The caller has locked the inbox that contains the
 * messages.
 * @returns the recipients of scheduled mail, and of mail that waits for approval, among the messages. The caller takes
 *   them off the daily quota after it has changed the threads.
 */
export async function deleteRows(
  db: Client,
  projectId: string,
  rows: readonly string[],
): Promise<FreedQuota[]> {
  // The function `deleteRows` locks the outbound mails first, like `recordMailAttempts`. Therefore the two functions
  // cannot deadlock.
  await db.query(
    'select from outbound_mails where message_row = any ($1::bigint[]) order by message_row for update',
    [rows],
  )
  // A batch of new mail first locks the threads, and then the count of the project's storage. A deletion of messages
  // must lock them in the same order, because the two transactions could otherwise deadlock.
  await db.query(
    `select from threads where row in (select thread_row from messages where row = any ($1::bigint[]))
     order by row for update`,
    [rows],
  )
  const freed = await db.query<FreedQuota>(
    `select (m.created_at at time zone 'UTC')::date::text as day, count(*)::int as recipients
     from messages m join outbound_recipients r on r.message_row = m.row
     where m.row = any ($1::bigint[]) and m.delivery_status in ('scheduled', 'held') and r.state = 'queued'
     group by 1`,
    [rows],
  )
  await withdrawDeleted(db, rows)
  await undoEventsOfUnsent(db, rows)
  // The function also removes the job that would send the mail. Otherwise the job of a deleted scheduled mail could
  // stay in the queue for a year.
  await db.query(
    `select graphile_worker.remove_job('send_mail:' || message_row) from outbound_mails
     where message_row = any ($1::bigint[]) and state <> 'done'`,
    [rows],
  )
  await db.query(
    `insert into deleted_messages (project_id, content_hash)
     select $1, content_hash from messages where row = any ($2::bigint[]) and direction = 'received'
     on conflict do nothing`,
    [projectId, rows],
  )
  const inbound = await db.query<{ raw_id: string }>(
    'delete from inbound_mails where message_row = any ($1::bigint[]) returning raw_id',
    [rows],
  )
  const messages = await db.query<{ raw_id: string | null }>(
    'delete from messages where row = any ($1::bigint[]) returning raw_id',
    [rows],
  )
  const rawIds = [...inbound.rows, ...messages.rows].flatMap(({ raw_id }) => raw_id ?? [])
  await deleteUnusedRawMails(db, rawIds)
  return freed.rows
}

/** Deletes the hashes of messages that were deleted over 7 days ago. No sender will send these messages again. */
export async function forgetDeletedMessages(db: Queryable): Promise<void> {
  await deleteInBatches(
    db,
    'deleted_messages',
    `deleted_at < statement_timestamp() - interval '${RETENTION}'`,
  )
}
