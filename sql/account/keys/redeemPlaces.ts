/**
 * Counts the places of redeem calls. In each minute the first calls of a project hold one place each, as many as the
 * limit of payments. A call without a new payment frees its place. Each later payment takes a freed place. So a new
 * payment among the first calls needs no statement of its own, and no minute has more payments than places. A burst of
 * other calls can hold all places for the milliseconds until it has freed them. A payment at this moment gets 429.
 */
import type { Queryable } from '../../db.ts'
import { countRequests, rateWindowUpsert, type Usage } from './rateWindows.ts'

/** Frees the place of a redeem call, unless its minute is over. The minute of the call ends at `resetsAt`. */
export async function freePlace(db: Queryable, projectId: string, resetsAt: Date): Promise<void> {
  await db.query({
    name: 'free-redeem-place',
    text: rateWindowUpsert(
      `select $1 || ':redeem-freed' as subject
       where date_trunc('minute', clock_timestamp()) + interval '1 minute' = $2::timestamptz`,
    ),
    values: [projectId, resetsAt],
  })
}

/**
 * Takes a freed place for a new payment.
 * @returns how many places were taken, including this place, and how many places were freed.
 */
export async function takePlace(
  db: Queryable,
  projectId: string,
): Promise<{ taken: number; freed: number; resetsAt: Date }> {
  const { rows } = await db.query<{ taken: number; freed: number; resets_at: Date }>({
    name: 'take-redeem-place',
    text: `
      with taken as (${rateWindowUpsert(`select $1 || ':redeem-taken' as subject`)})
      select t.used as taken, t.resets_at, coalesce(f.used, 0) as freed
      from taken t
      left join rate_windows f
        on f.subject = $1 || ':redeem-freed' and f.window_start + interval '1 minute' = t.resets_at`,
    values: [projectId],
  })
  const { taken, freed, resets_at: resetsAt } = rows[0]!
  return { taken, freed, resetsAt }
}

/** Counts a redeem call whose signature only the chain can check. */
export const countCheck = (db: Queryable, projectId: string): Promise<Usage> =>
  countRequests(db, `${projectId}:redeem-check`, 1)

/** Counts a redeem call for a payment that already exists. */
export const countRepeat = (db: Queryable, paymentId: string): Promise<Usage> =>
  countRequests(db, `${paymentId}:redeem`, 1)
