import type { Instance } from '../../../shared/mail/calendar/instances.ts'
import type { Pool, Queryable } from '../../db.ts'
import { deleteInBatches } from '../../deleteInBatches.ts'
import { addJob, hasNoJob } from '../../queue/jobs.ts'
import type { Place } from './knownEvents.ts'

/**
 * Sets the number of days, from now or from the event's start, for which the service stores instances of a calendar
 * event. After AGAIN_DAYS, the service computes them again.
 */
const AHEAD_DAYS = 730
const AGAIN_DAYS = 180
/** Sets the number of past days for which the service keeps instances of calendar events. */
const BEFORE_DAYS = 366
/**
 * Sets the number of days for which a past instance may still stand in the calendar. Until then, the changed instance
 * must replace it.
 */
const SHOWN_DAYS = BEFORE_DAYS + AGAIN_DAYS
/** Sets the maximum number of stored instances of one calendar event. */
export const INSTANCES_MAX = 2_000
/**
 * Sets the maximum number of attempts to compute the instances of one calendar event. If the event's recurrence rule
 * kills the worker process each time, the event gets no instances.
 */
const TRIES_MAX = 3
/**
 * Sets the number of seconds after which a second job run may compute the instances of a calendar event. The first run
 * has then certainly died.
 */
const CLAIM_SECONDS = 10

/** Tells whether a calendar series already has the maximum number of changed instances that the service stores. */
export async function hasAllChanges(
  db: Queryable,
  place: Place,
  organizer: string,
): Promise<boolean> {
  const { rowCount } = await db.query({
    name: 'has-all-changes',
    text: `select from calendar_events where project_id = $1 and uid_hash = $2 and organizer = $3
             and instance > '-infinity' offset ${INSTANCES_MAX - 1} limit 1`,
    values: [place.message.projectId, place.uid, organizer],
  })
  return rowCount === 1
}

const IN_CALENDAR = `status <> 'cancelled' and answer in ('accepted', 'tentative')`

/**
 * Puts events into the calendar, or removes them. If an event does not recur, the function stores its single instance
 * at once. A job computes the instances of a recurrence rule, because the rule may come from anybody and may have no
 * end.
 */
export async function placeInstances(db: Queryable, eventRows: readonly string[]): Promise<void> {
  if (eventRows.length === 0) return
  await db.query({
    name: 'clear-instances',
    text: 'delete from calendar_instances where event_row = any ($1::bigint[])',
    values: [eventRows],
  })
  await db.query({
    name: 'place-single-instances',
    text: `
      insert into calendar_instances (event_row, project_id, starts_at, ends_at, local)
      select row, project_id, (invite #>> '{start,at}')::timestamptz, (invite #>> '{end,at}')::timestamptz,
        invite #>> '{start,local}'
      from calendar_events where row = any ($1::bigint[]) and source is null and ${IN_CALENDAR}`,
    values: [eventRows],
  })
  await noteEnds(db, eventRows)
  const { rows } = await db.query<{ project_id: string }>({
    name: 'plan-expansion',
    text: `
      update calendar_events set expand_at = clock_timestamp(), expand_tries = 0
      where row = any ($1::bigint[]) and source is not null and ${IN_CALENDAR}
      returning project_id`,
    values: [eventRows],
  })
  const [planned] = rows
  if (planned !== undefined) await queueExpansion(db, planned.project_id)
}

/**
 * Stores the times at which calendar events are over. An event that is not in the calendar is over at once. A series is
 * over when the service finds no further instance of the series.
 */
async function noteEnds(db: Queryable, eventRows: readonly string[]): Promise<void> {
  const isSeries = (series: string, instance: string) =>
    `${series}.project_id = ${instance}.project_id and ${series}.uid_hash = ${instance}.uid_hash
       and ${series}.organizer = ${instance}.organizer and ${series}.instance = '-infinity'`
  await db.query({
    name: 'note-ends-of-events',
    text: `
      update calendar_events e set over_at = case
        when instance > '-infinity' then case
          when exists (select from calendar_events s where ${isSeries('s', 'e')} and s.status = 'cancelled')
          then clock_timestamp()
          else greatest(instance, (invite #>> '{end,at}')::timestamptz) + interval '${SHOWN_DAYS} days' end
        when not (${IN_CALENDAR}) then clock_timestamp()
        when source is null then (invite #>> '{end,at}')::timestamptz
        else 'infinity' end
      where row = any ($1::bigint[])`,
    values: [eventRows],
  })
  // The service keeps a calendar series at least as long as the changed instances of the series.
  await db.query({
    name: 'note-ends-of-series',
    text: `
      update calendar_events s set over_at = i.over_at
      from (select project_id, uid_hash, organizer, max(over_at) as over_at from calendar_events
            where row = any ($1::bigint[]) and instance > '-infinity' group by project_id, uid_hash, organizer) i
      where ${isSeries('s', 'i')} and s.status <> 'cancelled' and s.over_at < i.over_at`,
    values: [eventRows],
  })
}

export const queueExpansion = (db: Queryable, projectId: string, runAt?: Date): Promise<void> =>
  addJob(db, {
    task: 'expand_events',
    payload: { projectId },
    key: `expand_events:${projectId}`,
    ...(runAt === undefined ? {} : { runAt, keepsTime: true }),
  })

/** Describes a calendar event that still needs its instances computed. */
export type DueExpansion = {
  row: string
  source: string
  fromMs: number
  nowMs: number
  untilMs: number
  tries: number
}

/**
 * Reserves a calendar event of a project for one job run, which computes the instances of the event. @returns null if
 * no calendar event of the project needs new instances.
 * @param claim identifies the run of the job. A run that asks twice with the same claim gets the same event both times.
 */
export async function takeExpansion(
  db: Queryable,
  projectId: string,
  claim: string,
): Promise<DueExpansion | null> {
  const { rows } = await db.query<
    Record<'row' | 'source', string> & { now: Date; start: Date; tries: number }
  >({
    name: 'take-expansion',
    text: `
      update calendar_events e set expand_at = clock_timestamp() + interval '${CLAIM_SECONDS} seconds',
        expand_tries = expand_tries + 1, expand_claim = $2
      from (
        select row from calendar_events
        where project_id = $1 and expand_at is not null and (expand_at <= clock_timestamp() or expand_claim = $2)
        order by expand_claim = $2 desc nulls last, expand_at limit 1 for update skip locked) due
      where e.row = due.row
      returning e.row, e.source, clock_timestamp() as now,
        (e.invite #>> '{start,at}')::timestamptz as start, e.expand_tries as tries`,
    values: [projectId, claim],
  })
  const [row] = rows
  if (row === undefined) return null
  const dayMs = 24 * 60 * 60 * 1000
  const nowMs = row.now.getTime()
  return {
    row: row.row,
    source: row.source,
    fromMs: nowMs - BEFORE_DAYS * dayMs,
    nowMs,
    untilMs: Math.max(nowMs, row.start.getTime()) + AHEAD_DAYS * dayMs,
    tries: row.tries,
  }
}

/**
 * Returns the earliest time at which the claim of a job run on a calendar event of the project ends. Another run may
 * then take the event over. Null means that no run holds a claim on a calendar event of the project.
 */
export async function nextExpansionAt(db: Queryable, projectId: string): Promise<Date | null> {
  const { rows } = await db.query<{ at: Date | null }>({
    name: 'next-expansion-at',
    text: `select min(expand_at) as at from calendar_events
           where project_id = $1 and expand_at <= clock_timestamp() + interval '${CLAIM_SECONDS} seconds'`,
    values: [projectId],
  })
  return rows[0]?.at ?? null
}

export const isGivenUp = ({ tries }: DueExpansion): boolean => tries > TRIES_MAX

/**
 * Stores the instances of a calendar event. The function stores nothing if the event has meanwhile left the calendar,
 * or if its recurrence rule has changed. The service stores only the first instances of a long series. It then computes
 * the instances again after half of the time that the stored ones cover.
 */
export async function storeInstances(
  db: Queryable,
  { row, source }: DueExpansion,
  instances: readonly Instance[],
): Promise<void> {
  await db.query({
    name: 'store-instances',
    text: `
      with event as (
        update calendar_events e set expand_tries = 0, expand_claim = null,
          over_at = case when $3 then 'infinity' else greatest(clock_timestamp(), (
            select max(over_at) from calendar_events i
            where i.project_id = e.project_id and i.uid_hash = e.uid_hash and i.organizer = e.organizer
              and i.instance > '-infinity')) end,
          expand_at = case when $3 then clock_timestamp() + least(interval '${AGAIN_DAYS} days',
            case when $7::timestamptz is not null
              then greatest(interval '1 day', ($7::timestamptz - clock_timestamp()) / 2) end) end
        where row = $1 and source = $2 and ${IN_CALENDAR}
        returning row, project_id
      ), old as (
        delete from calendar_instances i using event e
        where i.event_row = e.row and i.starts_at <> all ($4::timestamptz[])
      )
      insert into calendar_instances (event_row, project_id, starts_at, ends_at, local)
      select e.row, e.project_id, i.starts_at, i.ends_at, i.local
      from event e, unnest($4::timestamptz[], $5::timestamptz[], $6::text[]) i (starts_at, ends_at, local)
      on conflict (event_row, starts_at) do update set ends_at = excluded.ends_at, local = excluded.local`,
    values: [
      row,
      source,
      instances.length > 0,
      instances.map(({ startMs }) => new Date(startMs)),
      instances.map(({ endMs }) => new Date(endMs)),
      instances.map(({ local }) => local),
      instances.length < INSTANCES_MAX ? null : new Date(instances.at(-1)!.startMs),
    ],
  })
}

/** Takes back the counted attempt of a job run whose child process could not be started. */
export async function returnExpansionTry(db: Queryable, row: string, claim: string): Promise<void> {
  await db.query({
    name: 'return-expansion-try',
    text: `update calendar_events set expand_tries = greatest(0, expand_tries - 1)
           where row = $1 and expand_claim = $2`,
    values: [row, claim],
  })
}

/**
 * Keeps the stored instances of a calendar event whose new instances no run could compute. The service tries again
 * after a day.
 */
export async function postponeExpansion(
  db: Queryable,
  { row, source }: DueExpansion,
): Promise<void> {
  await db.query({
    name: 'postpone-expansion',
    text: `update calendar_events set expand_tries = 0, expand_claim = null,
             expand_at = clock_timestamp() + interval '1 day'
           where row = $1 and source = $2 and ${IN_CALENDAR}`,
    values: [row, source],
  })
}

const LOST_BATCH = 100

/** Queues missing jobs for calendar events whose instances must be computed. @returns the number of queued jobs. */
export async function requeueExpansions(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ project_id: string }>(
    `select distinct project_id from (
       select project_id from calendar_events where expand_at <= clock_timestamp() order by expand_at limit 1000) x
     where ${hasNoJob("'expand_events:' || x.project_id")}
     limit ${LOST_BATCH}`,
  )
  for (const { project_id } of rows) await queueExpansion(pool, project_id)
  return rows.length
}

/** Deletes unanswered calendar events of other organizers if the invitation message is deleted. */
export const forgetUnanswered = (pool: Pool): Promise<void> =>
  deleteInBatches(
    pool,
    'calendar_events',
    `message_row is null and answer = 'needs-action' and not is_own`,
  )
