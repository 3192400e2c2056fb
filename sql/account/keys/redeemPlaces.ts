/**
 * Counts the redeem calls of a project against the limit of new payments. One unit of this limit is called a place. In
 * each minute, each of the first calls takes one place. A call without a new payment gives its place back for a later
 * payment. Therefore a new payment among the first calls needs no separate SQL statement, and no minute has more
 * payments than places. A burst of other calls can hold all places for some milliseconds, so that a payment at this
 * moment gets 429. A payment that the chain refuses keeps its place, because it is stored, costs a simulation, and
 * counts towards the daily limit. Otherwise an attacker with an empty wallet could use up the daily limit 12 times as
 * fast.
 */
import type { Queryable } from '../../db.ts'
import { countRequests, rateWindowUpsert, type Usage } from './rateWindows.ts'

/**
 * Takes a redeem call out of the limit of new payments, unless its minute is over. This minute ends at `resetsAt`.
 */
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
 * Takes a place (a unit of the limit of new payments) for a new payment, if an earlier call has given a place back. The
 * minute of the call ends at `resetsAt`. After this minute, the call needs no such place, because the new minute has
 * its own places. A call that gets no place changes nothing. Therefore a burst of such calls leaves the returned places
 * for later payments.
 * @returns the number of freed places (units of the limit of new payments) that remain in the minute. Null means that
 * the call got no place.
 */
export async function takePlace(
  db: Queryable,
  projectId: string,
  resetsAt: Date,
): Promise<{ remaining: number; resetsAt: Date } | null> {
  const { rows } = await db.query<{ remaining: number; resets_at: Date }>({
    name: 'take-redeem-place',
    text: `
      with place as materialized (
        select m.start, m.start >= $2::timestamptz as is_over, coalesce(f.used, 0) as freed
        from (select date_trunc('minute', clock_timestamp()) as start) m
        left join rate_windows f on f.subject = $1 || ':redeem-freed' and f.window_start = m.start
      ), taken as (${rateWindowUpsert(
        `select $1 || ':redeem-taken' as subject from place where is_over or freed > 0`,
        '1',
        `(select is_over or w.window_start <> start or w.used < freed from place)`,
      )})
      select greatest(0, p.freed - t.used) as remaining, t.resets_at from taken t cross join place p`,
    values: [projectId, resetsAt],
  })
  const row = rows[0]
  return row === undefined ? null : { remaining: row.remaining, resetsAt: row.resets_at }
}

/** Counts a redeem call whose signature only the chain can check. */
export const countCheck = (db: Queryable, projectId: string): Promise<Usage> =>
  countRequests(db, `${projectId}:redeem-check`, 1)

/** Counts a redeem call for a payment that already exists. */
export const countRepeat = (db: Queryable, paymentId: string): Promise<Usage> =>
  countRequests(db, `${paymentId}:redeem`, 1)
