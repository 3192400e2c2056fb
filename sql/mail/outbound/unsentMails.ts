import { messageIdHash } from '../../../shared/mail/threading.ts'
import type { Client, Queryable } from '../../db.ts'
import { type OwnEventChange, undoOwnEvent } from '../calendar/ownEvents.ts'

/** Describes a locked outbound mail. While its row is locked, no worker process can begin a delivery attempt. */
type Unsent = { messageRow: string; status: string }

/**
 * Locks the row of an outbound mail and the row of its message, in the same order as the worker process that sends
 * mail.
 * @returns the status of the locked mail. Null means that the project has no outbound mail with the Message-ID.
 */
export async function lockUnsent(
  db: Client,
  projectId: string,
  messageId: string,
): Promise<Unsent | null> {
  const { rows } = await db.query<{ message_row: string }>(
    `select o.message_row from messages m join outbound_mails o on o.message_row = m.row
     where m.project_id = $1 and m.message_id_hash = $2 for no key update of o`,
    [projectId, messageIdHash(messageId)],
  )
  const messageRow = rows[0]?.message_row
  if (messageRow === undefined) return null
  const read = await db.query<{ status: string }>(
    'select delivery_status as status from messages where row = $1',
    [messageRow],
  )
  return { messageRow, status: read.rows[0]!.status }
}

/**
 * Ends a scheduled or held mail without sending it. Its recipients no longer count towards the quota of the day on
 * which the API accepted the mail. If the mail changes a calendar event of its project, the function takes the change
 * back, because no recipient has seen it. The caller has locked the mail with {@link lockUnsent}.
 */
export async function endUnsent(
  db: Queryable,
  messageRow: string,
  { status, error }: { status: 'cancelled' | 'rejected' | 'expired'; error: string },
): Promise<void> {
  await undoEventsOfUnsent(db, [messageRow])
  await db.query(`update outbound_mails set state = 'done' where message_row = $1`, [messageRow])
  const { rowCount } = await db.query(
    `update outbound_recipients set state = 'failed', error = $2, updated_at = clock_timestamp()
     where message_row = $1 and state = 'queued'`,
    [messageRow, error],
  )
  await db.query(
    `update messages set delivery_status = $2, delivery_error = $3,
       labels = array_remove(array_remove(labels, 'scheduled'), 'held')
     where row = $1`,
    [messageRow, status, error],
  )
  await db.query(
    `update send_quotas q set used = greatest(0, q.used - $2) from messages m
     where m.row = $1 and q.project_id = m.project_id and q.day = (m.created_at at time zone 'UTC')::date`,
    [messageRow, rowCount],
  )
  await db.query('select graphile_worker.remove_job($1)', [`send_mail:${messageRow}`])
}

/**
 * Takes back the changes that scheduled and held mails make to calendar events of their projects, because no recipient
 * has seen these mails. The function begins with the newest change, because an older change can be taken back only
 * after the newer ones. The events have the same order as in a batch of new mail, so that the two transactions never
 * deadlock.
 */
export async function undoEventsOfUnsent(db: Queryable, rows: readonly string[]): Promise<void> {
  const { rows: changes } = await db.query<{ project_id: string; own_event: OwnEventChange }>(
    `select o.project_id, o.own_event from outbound_mails o join messages m on m.row = o.message_row
     where o.message_row = any ($1::bigint[]) and o.own_event is not null
       and m.delivery_status in ('scheduled', 'held')
     order by o.project_id, sha256(convert_to(o.own_event ->> 'uid', 'UTF8')), (o.own_event ->> 'sequence')::int desc`,
    [rows],
  )
  for (const { project_id: projectId, own_event: change } of changes) {
    if (await undoOwnEvent(db, projectId, change)) continue
    // If the code could not take the change back, a later unsent mail has changed the calendar event again. That mail
    // stores the state before its own change. The code replaces this stored state, so that the end of the later mail
    // does not restore the change that is taken back here.
    await db.query(
      `update outbound_mails o set own_event = jsonb_set(o.own_event, '{before}', $4::jsonb) from messages m
       where o.project_id = $1 and o.own_event is not null and o.own_event ->> 'uid' = $2
         and (o.own_event ->> 'sequence')::int = $3 + 1
         and m.row = o.message_row and m.delivery_status in ('scheduled', 'held')`,
      [projectId, change.uid, change.sequence, JSON.stringify(change.before)],
    )
    // The statement above may have waited for another transaction that ended the later mail. In this case, no later
    // change of the calendar event exists any more, so the code tries again to take the present change back.
    await undoOwnEvent(db, projectId, change)
  }
}
