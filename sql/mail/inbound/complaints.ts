import { addressKey } from '../../../shared/mail/address.ts'
import { type BounceKeys, readBounceTag } from '../../../shared/mail/compose/bounceAddress.ts'
import { type Pool, type Queryable, transaction } from '../../db.ts'
import { recordEvents } from '../../events/events.ts'
import { readMessageEvents } from '../messages/messageEvents.ts'
import { suppress } from '../outbound/suppressions.ts'
import { findReturnedCopy } from './bounces.ts'

/** Holds the label that a message gets when a recipient complains about the message. */
const LABEL = 'complained'

/**
 * Records a recipient's complaint about a sent copy of a message. The function stores the label, the suppression and
 * the event only once for each copy.
 * @param detail is the explanation that the complaint report contains.
 */
export async function recordComplaint(
  pool: Pool,
  { messageRow, address, detail }: { messageRow: string; address: string; detail: string },
): Promise<boolean> {
  return transaction(pool, async (db) => {
    const projectId = await lockCopy(db, messageRow)
    if (projectId === null) return false
    const { rowCount } = await db.query(
      `update outbound_recipients set complained_at = clock_timestamp()
       where message_row = $1 and address = $2 and complained_at is null`,
      [messageRow, address],
    )
    if (rowCount !== 1) return false
    await suppress(db, { projectId, messageRow }, [{ address, reason: 'complaint', detail }])
    await db.query(
      `update messages set labels = labels || $2::text where row = $1 and not labels @> array[$2::text]`,
      [messageRow, LABEL],
    )
    const events = await readMessageEvents(db, [messageRow])
    await recordEvents(
      db,
      events.map(({ data, traceparent }) => ({
        projectId,
        type: 'message.complained' as const,
        data,
        traceparent,
      })),
    )
    return true
  })
}

/**
 * Locks an outbound mail. Every function that changes a mail's recipients first locks this row.
 * @returns the project that sent the mail. Null means that the mail is deleted.
 */
async function lockCopy(db: Queryable, messageRow: string): Promise<string | null> {
  const { rows } = await db.query<{ project_id: string }>(
    `select m.project_id from outbound_mails o join messages m on m.row = o.message_row
     where o.message_row = $1 for no key update of o`,
    [messageRow],
  )
  return rows[0]?.project_id ?? null
}

/**
 * Finds the sent copy of a message by one of the given envelope senders. The envelope sender contains the address of
 * the inbox that sent the copy. @returns null if none of the given envelope senders belongs to this service.
 */
export async function findComplainedCopy(
  db: Queryable,
  keys: BounceKeys,
  returnPaths: readonly string[],
): Promise<{ messageRow: string; address: string } | null> {
  for (const path of returnPaths) {
    if (readBounceTag(path) === null) continue
    const { rows } = await db.query<{ id: string }>(
      'select id from projects where email_address = $1 and deleted_at is null',
      [addressKey(path.replace(/\+[^@]*(?=@)/, ''))],
    )
    const projectId = rows[0]?.id
    if (projectId === undefined) continue
    const copy = await findReturnedCopy(db, keys, { projectId, envelopeTo: path })
    if (copy !== null) return { messageRow: copy.messageRow, address: copy.address }
  }
  return null
}
