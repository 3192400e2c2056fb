import type { Blobs, StoredContent } from '../../blobs/blobs.ts'
import type { Client, Queryable } from '../../db.ts'

/** Returns the bytes of a raw mail, from its row or from the object store. */
export async function readRawMail(db: Queryable, blobs: Blobs, rawId: string): Promise<Buffer> {
  const { rows } = await db.query<StoredContent>(
    'select bytes, blob from raw_mails where id = $1',
    [rawId],
  )
  return await blobs.read(rows[0]!)
}

/**
 * Deletes the raw mails among `ids` to which no inbox refers. Several inboxes can refer to one raw mail. If an inbound
 * mail that was already processed still refers to a raw mail, only the bytes of the raw mail are deleted. The locks on
 * the raw mails are held until the caller's transaction ends.
 */
export async function deleteUnusedRawMails(db: Client, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  // Without the locks, two inboxes that release a raw mail at the same time would each see the reference of the other
  // inbox. If each of two inboxes still saw the other's reference to a raw mail, neither inbox would delete the raw
  // mail.
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
