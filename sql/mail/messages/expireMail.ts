import { type Pool, transaction } from '../../db.ts'
import { deleteRows, shrinkThreads } from './deleteMail.ts'
import { deleteUnusedRawMails } from './rawMails.ts'

/**
 * The constants below limit the number of messages, and roughly the number of bytes, that one batch expires, because a
 * message can have up to 35 MB.
 */
const BATCH = 50
const BATCH_BYTES = 8 * 1024 * 1024

/**
 * Holds the SQL condition for mail that may be deleted because of its age. Mail that is not sent yet, that waits for a
 * person's approval or that is scheduled is never deleted because of its age.
 */
const ENDED = `(m.direction = 'received' or exists (
  select from outbound_mails o where o.message_row = m.row and o.state = 'done'))`

/** Selects inbound mails to which no separate message belongs. */
export const REPEATED_OR_REFUSED = `state in ('retransmission', 'discarded')`

/**
 * Selects as `due` the oldest messages of project $1 that are older than $2 and may expire. The selection has at least
 * one message, and it takes further messages only while their total size is at most BATCH_BYTES.
 */
const due = (condition: string): string => `
  held as (
    select m.row, m.thread_row, m.raw_id, m.stored_bytes, m.created_at from messages m
    where m.project_id = $1 and m.created_at < $2::timestamptz and ${ENDED} ${condition}
    order by m.created_at limit ${BATCH} for update of m skip locked
  ), due as (
    select row, thread_row, raw_id from (
      select *, sum(stored_bytes) over (order by created_at, row) - stored_bytes as before from held) h
    where before < ${BATCH_BYTES}
  )`

/**
 * Deletes the oldest mail of a project that is older than a given time, in the same way as a deletion through the API.
 * Nothing is deleted while another transaction, such as one that stores new mail, holds the lock of the inbox.
 * @returns the number of deleted messages and inbound mails. The number 0 means that no old mail is left, or that the
 * inbox is locked.
 */
export async function expireMail(pool: Pool, projectId: string, before: Date): Promise<number> {
  return transaction(pool, async (db) => {
    const { rowCount } = await db.query(
      'select from projects where id = $1 for no key update skip locked',
      [projectId],
    )
    if (rowCount === 0) return 0
    const { rows } = await db.query<{ row: string; thread_row: string }>({
      name: 'expired-mail',
      text: `with ${due('')} select row, thread_row from due`,
      values: [projectId, before],
    })
    if (rows.length > 0) {
      await deleteRows(
        db,
        projectId,
        rows.map(({ row }) => row),
      )
      await shrinkThreads(
        db,
        rows.map((one) => one.thread_row),
      )
    }
    // The next statement deletes inbound mails that were repeated or refused, because no separate message belongs to
    // them.
    const ended = await db.query<{ raw_id: string }>({
      name: 'expired-inbound',
      text: `delete from inbound_mails where id = any (array(
               select id from inbound_mails
               where project_id = $1 and received_at < $2::timestamptz and ${REPEATED_OR_REFUSED}
               order by received_at limit ${BATCH} for update skip locked))
             returning raw_id`,
      values: [projectId, before],
    })
    await deleteUnusedRawMails(
      db,
      ended.rows.map(({ raw_id }) => raw_id),
    )
    return rows.length + ended.rows.length
  })
}

/**
 * Removes the oldest raw mails of a project that are older than a given time. The parsed messages are kept, but their
 * raw mails are not.
 * @returns the number of removed raw mails.
 */
export async function expireRawMail(pool: Pool, projectId: string, before: Date): Promise<number> {
  return transaction(pool, async (db) => {
    const { rows } = await db.query<{ raw_id: string }>({
      name: 'expired-originals',
      text: `with ${due('and m.raw_id is not null')}
             update messages m set raw_id = null, raw_expired = true from due where m.row = due.row
             returning due.raw_id`,
      values: [projectId, before],
    })
    await deleteUnusedRawMails(
      db,
      rows.map(({ raw_id }) => raw_id),
    )
    return rows.length
  })
}
