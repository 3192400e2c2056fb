import { lifetimeOf } from '../../account/projects/retention.ts'
import type { Queryable } from '../../db.ts'

/** Limits how many calendar events one batch deletes or checks. */
const BATCH = 250

/**
 * Limits for how long the service keeps a calendar event that is over, and whose message is deleted. Within these
 * bounds the retention of mail applies. A sender may send an old invitation again for some days, and it must stay
 * outdated.
 */
const KEPT = { least: "interval '7 days'", most: "interval '366 days'" }

/**
 * Writes an SQL expression for the time before which calendar events of project p must have been over to be deleted.
 * @param mail is an SQL expression for the time before which mail is expired. Null means that no mail expires.
 */
export const overBefore = (mail: string): string =>
  `greatest(clock_timestamp() - ${KEPT.most}, least(clock_timestamp() - ${KEPT.least}, coalesce(${mail}, '-infinity')))`

/**
 * Writes an SQL condition for calendar events of project $1 that have been over for so long that the service may delete
 * them.
 */
const IS_OVER = `over_at < now() - least(${KEPT.most}, greatest(${KEPT.least},
  coalesce(${lifetimeOf('mail', '$1')}, ${KEPT.most})))`

/**
 * Deletes calendar events of a project that are over, and whose messages are deleted. An event that the project
 * organizes stays known with its SEQUENCE as long as the calendar has the event.
 * @returns the number of deleted and checked events. 0 means that no such event is left now.
 */
export async function expireEvents(db: Queryable, projectId: string): Promise<number> {
  const { rowCount } = await db.query({
    name: 'expired-calendar-events',
    text: `delete from calendar_events where row = any (array(
             select row from calendar_events where project_id = $1 and message_row is null and ${IS_OVER}
             order by over_at limit ${BATCH} for update skip locked))`,
    values: [projectId],
  })
  const { rows } = await db.query<{ checked: number }>({
    name: 'expired-own-events',
    text: `
      with checked as materialized (
        select o.ctid as at, exists (
          select from calendar_events e
          where e.project_id = o.project_id and e.uid_hash = o.uid_hash and e.is_own) as is_known
        from own_events o where o.project_id = $1 and o.${IS_OVER}
        order by o.over_at limit ${BATCH} for update of o skip locked
      ), gone as (
        delete from own_events where ctid = any (array(select at from checked where not is_known))
      ), known as (
        update own_events set over_at = clock_timestamp()
        where ctid = any (array(select at from checked where is_known))
      )
      select count(*)::int as checked from checked`,
    values: [projectId],
  })
  return (rowCount ?? 0) + rows[0]!.checked
}

/** Sets the maximum number of coming calendar events without a message in the calendar of a project. */
export const COMING_MAX = 50_000

/**
 * Tells whether the calendar of a project is full. Calendar events whose messages are kept do not count, because the
 * messages count towards the storage of the project.
 */
export async function isCalendarFull(
  db: Queryable,
  projectId: string,
  max = COMING_MAX,
): Promise<boolean> {
  const { rowCount } = await db.query({
    name: 'is-calendar-full',
    text: `select from calendar_events
           where project_id = $1 and message_row is null and over_at > statement_timestamp()
             and instance = '-infinity'
           order by over_at offset $2 limit 1`,
    values: [projectId, max - 1],
  })
  return rowCount === 1
}
