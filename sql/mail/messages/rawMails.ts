import type { Blobs, StoredContent } from '../../blobs/blobs.ts'
import type { Client, Queryable } from '../../db.ts'

/** Returns the bytes of a raw mail, from its database row or from the object store. */
export async function readRawMail(db: Queryable, blobs: Blobs, rawId: string): Promise<Buffer> {
  const { rows } = await db.query<StoredContent>(
    'select bytes, blob from raw_mails where id = $1',
    [rawId],
  )
  return await blobs.read(rows[0]!)
}

/**
 * Deletes those raw mails among `ids` that no inbox needs any more. Several inboxes can need the same raw mail. If only
 * processed inbound mails still refer to a raw mail, the function deletes the bytes and keeps the row. The row locks on
 * the raw mails last until the caller's transaction ends.
 */
export async function deleteUnusedRawMails(db: Client, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  // Two transactions may release the same raw mail for two inboxes at the same time. Without the row locks, each would
  // see the reference of the other inbox, and neither would delete the raw mail.
  await db.query(
    'select from raw_mails where id = any ($1::bigint[]) order by id for no key update',
    [ids],
  )
  await db.query(
    `delete from raw_mails r where r.id = any ($1::bigint[])
       and not exists (select from inbound_mails i where i.raw_id = r.id)
       and not exists (select from messages m where m.raw_id = r.id)`,
    [ids],
  )
  await db.query(
    `update raw_mails r set bytes = '', blob = null where r.id = any ($1::bigint[])
       and (r.bytes <> '' or r.blob is not null)
       and not exists (select from inbound_mails i where i.raw_id = r.id and i.state = 'accepted')
       and not exists (select from messages m where m.raw_id = r.id)`,
    [ids],
  )
}
