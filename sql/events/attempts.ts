import type { Queryable } from '../db.ts'
import { addPayloadsFrom } from '../queue/jobs.ts'

/** Describes the result of one attempt to deliver a webhook. */
export type AttemptResult = {
  deliveryId: string
  /**
   * Holds the number of the delivery attempt, which continues to grow after replays. Normally, a result is recorded
   * only for the next attempt of the delivery. If a replay starts during an open attempt, two requests have the same
   * number. The second result is then also recorded, but only if it is a success that came after the last replay of an
   * ended delivery.
   */
  attempt: number
  /**
   * The field `ms` is the duration of the delivery attempt in milliseconds. The field `endedMs` is its end as a value
   * of performance.now() in this process.
   */
  ms: number
  endedMs: number
  statusCode: number | null
  error: string | null
  responsePrefix: string | null
  status: 'delivered' | 'aborted' | 'exhausted' | 'pending'
  /**
   * Holds the number of seconds from the end of this delivery attempt to the next attempt. Null means that the delivery
   * is no longer pending.
   */
  retryInS: number | null
}

/**
 * Records attempts of webhook deliveries. The SQL takes all times from the database's clock, so that processes with
 * different clocks keep one schedule. The columns store milliseconds, and the SQL rounds the times up. Otherwise the
 * next attempt could begin too early. All statements lock the rows of deliveries in the order of their ids, so that two
 * of them cannot deadlock.
 */
const RECORD_ATTEMPTS = `
  with moment as materialized (
    select clock_timestamp() as recorded_at
  ), input as materialized (
    select i.*, date_trunc('milliseconds',
      recorded_at - ended_ago_ms * interval '1 millisecond' + interval '999 microseconds') as ended_at
    from moment, unnest($1::text[], $2::int[], $3::float8[], $4::int[], $5::text[], $6::int[], $7::int[], $8::text[],
      $9::text[]) with ordinality
      as i (id, n, ended_ago_ms, ms, status, retry_in_s, status_code, error, response_prefix, place)
  ), locked as materialized (
    select id, attempt, attempts_before, status, error from webhook_deliveries where id = any ($1) order by id for update
  ), accepted as materialized (
    -- The column error is set only if the service itself aborted the delivery, for example because its webhook was
    -- deleted.
    select distinct on (i.id) i.*, l.attempt + 1 as number
    from input i join locked l on l.id = i.id
    where l.attempt = i.n - 1 and l.status = 'pending'
      or i.status = 'delivered' and i.n > l.attempts_before and i.n <= l.attempt
        and l.status <> 'delivered' and l.error is null
    order by i.id, i.status <> 'delivered', i.place
  ), updated as (
    update webhook_deliveries d set
      attempt = a.number, status = a.status, next_attempt_at = a.ended_at + a.retry_in_s * interval '1 second'
    from accepted a where d.id = a.id
    returning a.place, d.next_attempt_at
  ), logged as (
    insert into webhook_attempts (delivery_id, n, started_at, ended_at, status_code, error, response_prefix)
    select id, number, ended_at - ms * interval '1 millisecond', ended_at, status_code, error, response_prefix
    from updated join accepted using (place)
  ), retried as (
    select 'deliver_webhook' as task, 'deliver_webhook:' || id as key,
      json_build_object('deliveryId', id, 'attempt', number + 1) as payload, next_attempt_at
    from updated join accepted using (place) where next_attempt_at is not null order by id
  )
  select
    array(select place::int from updated) as recorded,
    (${addPayloadsFrom('retried', { runAt: 's.next_attempt_at' })})`

/**
 * Records attempts of webhook deliveries, updates the deliveries and queues the next attempts. If the function throws,
 * it has stored none of the delivery attempts.
 * @returns a boolean for each delivery attempt. False means that another run of the delivery job recorded the attempt
 * first, or that the delivery was aborted meanwhile. The delivery then stays unchanged. An exception is a success,
 * which is recorded even if another run has already recorded a failure.
 */
export async function recordAttempts(db: Queryable, results: AttemptResult[]): Promise<boolean[]> {
  const nowMs = performance.now()
  const column = <Value>(read: (result: AttemptResult) => Value) => results.map(read)
  const { rows } = await db.query<{ recorded: number[] }>({
    name: 'record-attempts',
    text: RECORD_ATTEMPTS,
    values: [
      column((result) => result.deliveryId),
      column((result) => result.attempt),
      column((result) => nowMs - result.endedMs),
      column((result) => result.ms),
      column((result) => result.status),
      column((result) => result.retryInS),
      column((result) => result.statusCode),
      column((result) => result.error),
      column((result) => result.responsePrefix),
    ],
  })
  const recorded = new Set(rows[0]!.recorded)
  return results.map((_result, n) => recorded.has(n + 1))
}
