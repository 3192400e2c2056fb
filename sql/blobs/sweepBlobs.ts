import { BlobsAwayError, type ObjectStore } from '../../shared/blobs/objectStore.ts'
import { type Pool, transaction } from '../db.ts'

/**
 * Sets the number of seconds for which the object store keeps an object that no database row names. A database row that
 * names a new object may not be stored yet. A reader may still need the object after its database row was deleted.
 */
export const IDLE_MAX_S = 3_600
/**
 * Writes SQL that computes when the oldest open database snapshot began. An export or a dump with an old snapshot still
 * sees deleted messages, and reads the objects of these messages.
 */
const OLDEST_SNAPSHOT = `(
  select min(xact_start) from pg_stat_activity where datname = current_database() and backend_xmin is not null)`
const BATCH = 200
const REMOVALS_AT_ONCE = 8

/**
 * Moves an object's row from `blobs` to `dead_blobs` if no message has named the object for an hour. After the move no
 * message can name the object, because a foreign key requires a row of the object in `blobs`.
 * @returns the number of checked rows in `blobs`.
 */
export async function buryIdleBlobs(pool: Pool, idleS = IDLE_MAX_S): Promise<number> {
  return transaction(pool, async (db) => {
    const { rows } = await db.query<{ hash: Buffer }>(
      `select hash from blobs
       where idle_since < least(clock_timestamp() - make_interval(secs => $1), ${OLDEST_SNAPSHOT})
       order by idle_since limit ${BATCH} for update skip locked`,
      [idleS],
    )
    // The next SQL statement sees every reference to the objects that was committed before this transaction locked
    // their rows.
    await db.query(
      `with idle as (select unnest($1::bytea[]) as hash), named as (
         update blobs b set idle_since = null from idle where b.hash = idle.hash and (
           exists (select from raw_mails r where r.blob = b.hash)
           or exists (select from message_attachments a where a.blob = b.hash))
         returning b.hash
       ), gone as (
         delete from blobs b using idle where b.hash = idle.hash
           and not exists (select from raw_mails r where r.blob = b.hash)
           and not exists (select from message_attachments a where a.blob = b.hash)
         returning b.hash
       )
       insert into dead_blobs (hash) select hash from gone on conflict do nothing`,
      [rows.map(({ hash }) => hash)],
    )
    return rows.length
  })
}

/**
 * Removes the objects of `dead_blobs` from the object store, several objects at once. If the process crashes, the next
 * call removes at most one batch of objects a second time. If the store refuses to remove an object, the object stays,
 * and the other objects of the batch are removed without delay.
 * @returns the number of removed objects.
 * @throws the first refusal of the store, if the call removed no object.
 */
export async function removeDeadBlobs(pool: Pool, store: ObjectStore): Promise<number> {
  let refusal: unknown
  const count = await transaction(pool, async (db) => {
    const { rows } = await db.query<{ hash: Buffer }>(
      `select hash from dead_blobs order by died_at limit ${BATCH} for update skip locked`,
    )
    const removed: Buffer[] = []
    for (let at = 0; at < rows.length; at += REMOVALS_AT_ONCE) {
      const part = rows.slice(at, at + REMOVALS_AT_ONCE).map(({ hash }) => hash)
      const ends = await Promise.allSettled(part.map((hash) => store.remove(hash.toString('hex'))))
      removed.push(...part.filter((_, n) => ends[n]?.status === 'fulfilled'))
      const failures = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason] : []))
      if (failures.some((failure) => failure instanceof BlobsAwayError)) break
      refusal ??= failures[0]
    }
    await db.query('delete from dead_blobs where hash = any ($1::bytea[])', [removed])
    return removed.length
  })
  if (count === 0 && refusal !== undefined) throw refusal
  return count
}
