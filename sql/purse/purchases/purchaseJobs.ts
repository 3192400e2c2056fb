/** Queues the jobs of purchases, and deletes old quotes and old seller responses of purchases. */
import type { Pool, Queryable } from '../../db.ts'
import { deleteInBatches } from '../../deleteInBatches.ts'
import { addJob, hasNoJob } from '../../queue/jobs.ts'

/**
 * Queues the job that carries out a purchase. @param inMs is the number of milliseconds after which the job runs. If
 * `inMs` is absent, the job runs at once.
 */
export const queuePurchase = (db: Queryable, id: string, inMs?: number): Promise<void> =>
  addJob(db, {
    task: 'buy',
    payload: { purchaseId: id },
    key: `buy:${id}`,
    ...(inMs === undefined ? {} : { inMs }),
  })

/**
 * Sets the time after which a purchase without a job counts as lost. By then, its job has normally run, or is in the
 * queue.
 */
const LOST_AFTER = '1 minute'
const LOST_BATCH = 100

/**
 * Queues a new job for each unfinished purchase that has no job. Purchases of deleted projects get no job, because it
 * would do nothing. @returns the number of queued jobs.
 */
export async function requeueLostPurchases(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ id: string }>(
    `select id from purchases
     where ended_at is null and state <> 'waiting' and created_at < clock_timestamp() - interval '${LOST_AFTER}'
       and exists (select from projects j where j.id = purchases.project_id and j.deleted_at is null)
       and ${hasNoJob("'buy:' || purchases.id")}
     order by created_at limit ${LOST_BATCH}`,
  )
  for (const { id } of rows) await queuePurchase(pool, id)
  return rows.length
}

/**
 * Limits how many responses one statement deletes. With any number of old responses, the statement then stays below the
 * database's statement timeout.
 */
const CLEAN_BATCH = 500

/**
 * Deletes the stored seller responses of purchases after their retention time, one batch after another. The other
 * columns of the purchases stay. The next call deletes the responses that another transaction has locked.
 */
export async function deleteOldAnswers(db: Queryable): Promise<void> {
  const text = `
    update purchases set key_id = null, wrapped_key = null, ciphertext = null
    where row = any (array(
      select row from purchases where key_id is not null and content_until <= statement_timestamp()
      order by content_until limit ${CLEAN_BATCH} for update skip locked))`
  while ((await db.query(text)).rowCount === CLEAN_BATCH);
}

/**
 * Sets the time for which the service keeps the record of a quote after its end. A quote has no Idempotency-Key, so no
 * later call needs the record.
 */
const QUOTE_KEPT = '1 day'

/** Deletes old quotes. An agent may ask for any number of quotes, so their records would grow without a bound. */
export async function deleteOldQuotes(db: Queryable): Promise<void> {
  const isOld = `ended_at < statement_timestamp() - interval '${QUOTE_KEPT}'`
  await deleteInBatches(db, 'purchases', `kind = 'quote' and ${isOld}`)
}
