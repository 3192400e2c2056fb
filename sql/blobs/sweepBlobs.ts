import { BlobsAwayError, type ObjectStore } from '../../shared/blobs/objectStore.ts'
import { type Pool, type Queryable, transaction } from '../db.ts'

/**
 * Sets for how many seconds the object store keeps an object that no database row names. For a new object, the database
 * row may not be stored yet. After the deletion of a row, a reader may still need its object.
 */
export const IDLE_MAX_S = 3_600
/**
 * Writes SQL that computes when the oldest open database snapshot began. An export or a dump with an old snapshot still
 * sees deleted messages and reads their objects, so these objects must stay.
 */
const OLDEST_SNAPSHOT = `(
  select min(xact_start) from pg_stat_activity where datname = current_database() and backend_xmin is not null)`
const BATCH = 200
const REMOVALS_AT_ONCE = 8

/**
 * Moves an object's row from `blobs` to `dead_blobs` if no message has named the object for an hour. After this, no
 * message can name the object, because a foreign key requires its row in `blobs`.
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
    // The check whether a message names an object is a separate SQL statement after the locks, because only such a
    // statement sees every reference to the objects that was committed before the locks.
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

/** Names a row of `dead_blobs` by the columns that order the rows. */
export type DeadBlob = { diedAt: Date; hash: Buffer }

/**
 * Removes one batch of objects of `dead_blobs` from the object store, several objects at once. After a crash, the next
 * call repeats the removal of at most one batch. If the store refuses to remove an object, this object stays, and the
 * others are removed without delay.
 * @param after is the last row of the previous batch, so that objects whose removal was refused do not fill every
 * batch. Null begins with the oldest row.
 * @returns the number of removed objects, the first refusal of the store, and the last row of the batch. Null instead
 * of this row means that no further batch follows.
 */
export async function removeDeadBlobs(
  pool: Pool,
  store: ObjectStore,
  after: DeadBlob | null,
): Promise<{ removed: number; refusal: unknown; last: DeadBlob | null }> {
  return transaction(pool, async (db) => {
    const { rows } = await db.query<DeadBlob>(
      `select died_at as "diedAt", hash from dead_blobs
       where $1::timestamptz is null or (died_at, hash) > ($1, $2::bytea)
       order by died_at, hash limit ${BATCH} for update skip locked`,
      [after?.diedAt ?? null, after?.hash ?? null],
    )
    const removed: Buffer[] = []
    let refusal: unknown
    let last = rows.length < BATCH ? null : rows.at(-1)!
    for (let at = 0; at < rows.length; at += REMOVALS_AT_ONCE) {
      const part = rows.slice(at, at + REMOVALS_AT_ONCE).map(({ hash }) => hash)
      const ends = await Promise.allSettled(part.map((hash) => store.remove(hash.toString('hex'))))
      removed.push(...part.filter((_, n) => ends[n]?.status === 'fulfilled'))
      const failures = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason] : []))
      if (failures.some((failure) => failure instanceof BlobsAwayError)) {
        last = null
        break
      }
      refusal ??= failures[0]
    }
    await db.query('delete from dead_blobs where hash = any ($1::bytea[])', [removed])
    return { removed: removed.length, refusal, last }
  })
}

/**
 * Removes all objects of `dead_blobs` from the object store, in batches. @param isStopping is called after each batch.
 * If it returns true, the function ends early.
 * @throws the first refusal of the store, after the last batch.
 */
export async function removeAllDeadBlobs(
  pool: Pool,
  store: ObjectStore,
  isStopping = () => false,
): Promise<void> {
  let refusal: unknown
  let last: DeadBlob | null = null
  do {
    const batch: Awaited<ReturnType<typeof removeDeadBlobs>> = await removeDeadBlobs(
      pool,
      store,
      last,
    )
    refusal ??= batch.refusal
    last = batch.last
  } while (last !== null && !isStopping())
  if (refusal !== undefined) throw refusal
}

/** Counts the objects that, by the database rows, the object store may still have. */
export async function countObjects(db: Queryable): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    'select ((select count(*) from blobs) + (select count(*) from dead_blobs))::int as count',
  )
  return rows[0]!.count
}
