import type { RetentionClass } from '../../../shared/retention.ts'
import { isExpired } from '../../account/projects/retention.ts'
import { type Pool, transaction } from '../../db.ts'
import { deleteRows, shrinkThreads } from './deleteMail.ts'
import { deleteUnusedRawMails } from './rawMails.ts'

/**
 * BATCH limits how many messages one batch deletes because of their age. BATCH_BYTES roughly limits how many bytes of
 * messages one batch deletes, because a message can have up to 35 MB.
 */
const BATCH = 50
const BATCH_BYTES = 8 * 1024 * 1024

/**
 * Writes the SQL condition for mail that the service may delete because of its age. The condition excludes mail that is
 * not sent yet, that is held for approval, or that is scheduled. The age of a sent mail counts from the time at which
 * the service could send it first. Otherwise a mail that was scheduled long before would go as soon as it is sent, and
 * its bounce would belong to no mail.
 */
const hasEnded = (name: RetentionClass): string => `(m.direction = 'received' or exists (
  select from outbound_mails o where o.message_row = m.row and o.state = 'done'
    and (m.delivery_status in ('cancelled', 'rejected', 'expired') or (${isExpired(name, 'o.accepted_at')}))))`

/** Selects inbound mails that have no message of their own, because they were repeated or refused. */
export const REPEATED_OR_REFUSED = `state in ('retransmission', 'discarded')`

/**
 * Selects, under the name `due`, the oldest expired messages of project $1 that the service may delete. The selection
 * holds at least one message, and takes further messages only while the total size is below BATCH_BYTES.
 */
const due = (name: RetentionClass, condition = ''): string => `
  held as (
    select m.row, m.thread_row, m.raw_id, m.stored_bytes, m.created_at from messages m
    where m.project_id = $1 and ${isExpired(name, 'm.created_at')} and ${hasEnded(name)} ${condition}
    order by m.created_at limit ${BATCH} for update of m skip locked
  ), due as (
    select row, thread_row, raw_id from (
      select *, sum(stored_bytes) over (order by created_at, row) - stored_bytes as before from held) h
    where before < ${BATCH_BYTES}
  )`

/**
 * Deletes a project's oldest mail from before a given time, in the same way as a deletion through the API. While
 * another transaction has locked the inbox, for example to store new mail, the function deletes nothing.
 * @returns the number of deleted messages and inbound mails. The result 0 means that no old mail is left, or that the
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
      text: `with ${due('mail')} select row, thread_row from due`,
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
    // The next SQL statement deletes inbound mails that were repeated or refused, and therefore have no message of
    // their own.
    const ended = await db.query<{ raw_id: string }>({
      name: 'expired-inbound',
      text: `delete from inbound_mails where id = any (array(
               select id from inbound_mails
               where project_id = $1 and ${isExpired('mail', 'received_at')} and ${REPEATED_OR_REFUSED}
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
 * Removes a project's oldest raw mails from before a given time. The function keeps the parsed messages of the removed
 * raw mails.
 * @returns the number of removed raw mails.
 */
export async function expireRawMail(pool: Pool, projectId: string, before: Date): Promise<number> {
  return transaction(pool, async (db) => {
    const { rows } = await db.query<{ raw_id: string }>({
      name: 'expired-originals',
      text: `with ${due('rawMail', 'and m.raw_id is not null')}
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
