import type { Queryable } from '../../db.ts'
import { deleteByPages } from '../../deleteInBatches.ts'

/**
 * Holds the number of API requests in the current minute, including the present request, and the end of the current
 * minute.
 */
export type Usage = { used: number; resetsAt: Date }

/**
 * Lists the separate counts of a project's requests in a minute. The count '' is for all requests without a separate
 * count. A subject in the table `rate_windows` consists of the project's id and one of these names. The names that
 * begin with `:redeem-` count the places (units of the limit) of redeem calls (sql/account/keys/redeemPlaces.ts).
 */
export const RATE_WINDOWS = [
  '',
  ':x402',
  ':challenge',
  ':redeem',
  ':redeem-freed',
  ':redeem-taken',
  ':redeem-check',
] as const
export type RateWindow = (typeof RATE_WINDOWS)[number]

/**
 * Tells whether the stored rate window is the current one. The window of the next minute also counts as current,
 * because a statement that began before the end of a minute may find it. A window that lies further in the future does
 * not count, because it comes from a clock that was later set back.
 */
const IS_CURRENT = `w.window_start between excluded.window_start and excluded.window_start + interval '1 minute'`

/**
 * Writes an SQL statement that adds `weight` requests to each rate limit subject (such as a project) in the current
 * minute. The database's clock decides when a minute begins, so the limit is exact across API processes. The parameter
 * `subjects` is an SQL query with a text column `subject`, and `weight` is an SQL integer. The parameter `condition` is
 * an SQL condition on the stored window `w`. If the condition is false, the statement changes and returns nothing.
 */
export function rateWindowUpsert(subjects: string, weight = '1', condition = 'true'): string {
  return `
    insert into rate_windows as w (subject, window_start, used)
    select subject, date_trunc('minute', clock_timestamp()), ${weight} from (${subjects}) s
    on conflict (subject) do update set
      used = case when ${IS_CURRENT} then w.used + excluded.used else excluded.used end,
      window_start = case when ${IS_CURRENT} then w.window_start else excluded.window_start end
    where ${condition}
    returning subject, used, window_start + interval '1 minute' as resets_at`
}

/** Counts requests of a rate limit subject, such as a project, a person or a network. */
export async function countRequests(
  db: Queryable,
  subject: string,
  requests: number,
): Promise<Usage> {
  const { rows } = await db.query<{ used: number; resets_at: Date }>({
    name: 'count-requests',
    text: rateWindowUpsert('select $1::text as subject', '$2::int'),
    values: [subject, requests],
  })
  return { used: rows[0]!.used, resetsAt: rows[0]!.resets_at }
}

/**
 * Tells whether a rate limit subject (such as a project) has made at least `most` requests in the current minute. The
 * function counts no request.
 */
export async function hasUsed(db: Queryable, subject: string, most: number): Promise<boolean> {
  const { rowCount } = await db.query({
    name: 'read-rate-window',
    text: `
      select from rate_windows w, (select date_trunc('minute', clock_timestamp()) as window_start) excluded
      where w.subject = $1 and w.used >= $2 and ${IS_CURRENT}`,
    values: [subject, most],
  })
  return rowCount === 1
}

/** Counts one failed authentication from `address` (an IPv4 address or an IPv6 /64 prefix). */
export const countAuthFailure = (db: Queryable, address: string): Promise<Usage> =>
  countRequests(db, `ip:${address}`, 1)

/**
 * Removes rate windows that ended over an hour ago. The table has no index on the time, because the first request of
 * each minute would then have to change this index, too.
 */
export const deleteStaleRateWindows = (db: Queryable): Promise<void> =>
  deleteByPages(db, 'rate_windows', `window_start < statement_timestamp() - interval '1 hour'`)
