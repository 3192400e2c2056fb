import { isDeepStrictEqual } from 'node:util'
import type { Queryable } from '../../db.ts'
import { uidHash } from './uidHash.ts'

/** Describes the last state of a calendar event that a project organizes. The field `sequence` is its SEQUENCE. */
export type OwnEvent = { sequence: number; event: object }

/**
 * Describes a change of a calendar event that a project organizes. The field `sequence` holds the SEQUENCE (RFC 5545) of
 * the changed event. The field `before` holds the event before the change. Null means that the change made the event.
 */
export type OwnEventChange = { uid: string; sequence: number; before: object | null }

/**
 * Describes a change of a calendar event that a project organizes, with the event after the change. The field `endsAt`
 * holds the end of the event. Null means that the change does not state it.
 */
export type OwnEventRevision = OwnEventChange & { event: object; endsAt: Date | null }

/**
 * Names a calendar event that a project organizes, with the change that a mail makes to this event. The service sends
 * the mail at `sendAt`, or at once.
 */
type Revised = { projectId: string; ownEvent: OwnEventRevision; sendAt: Date | null }

/**
 * Sets how many days before the end of a calendar event the service may forget the event, if the calendar does not have
 * it. The calendar lacks the event if the mail of the event is deleted before a worker reads it.
 */
const AHEAD_DAYS = 730
/** Sets the number of days for which a mail may wait for approval at most. */
const WAITING_DAYS = 30

/** Finds a calendar event that a project organizes. @returns null if the project organizes no event with the UID. */
export async function findOwnEvent(
  db: Queryable,
  projectId: string,
  uid: string,
): Promise<OwnEvent | null> {
  const { rows } = await db.query<OwnEvent>({
    name: 'find-own-event',
    text: 'select sequence, event from own_events where project_id = $1 and uid_hash = $2',
    values: [projectId, uidHash(uid)],
  })
  return rows[0] ?? null
}

/**
 * Locks the calendar events that mails change, in the order of their keys.
 * @returns the changes that begin with the present state of their events.
 */
export async function lockOwnEvents(
  db: Queryable,
  revised: readonly Revised[],
): Promise<Set<OwnEventRevision>> {
  if (revised.length === 0) return new Set()
  const { rows } = await db.query<OwnEvent & { project_id: string; hash: string }>({
    name: 'lock-own-events',
    text: `select project_id, encode(uid_hash, 'hex') as hash, sequence, event from own_events
           where (project_id, uid_hash) in (select * from unnest($1::text[], $2::bytea[]))
           order by project_id, uid_hash for update`,
    values: keysOf(revised),
  })
  const known = new Map(rows.map((row) => [`${row.hash} ${row.project_id}`, row]))
  const isCurrent = ({ projectId, ownEvent: { uid, sequence, before } }: Revised) => {
    const stored = known.get(`${uidHash(uid).toString('hex')} ${projectId}`)
    if (stored === undefined || before === null) return stored === undefined && before === null
    return stored.sequence === sequence - 1 && isDeepStrictEqual(stored.event, before)
  }
  return new Set(revised.filter(isCurrent).map(({ ownEvent }) => ownEvent))
}

/** Stores changes of calendar events that the caller has locked with {@link lockOwnEvents}. */
export async function writeOwnEvents(db: Queryable, revised: readonly Revised[]): Promise<void> {
  if (revised.length === 0) return
  await db.query({
    name: 'write-own-events',
    text: `insert into own_events (project_id, uid_hash, sequence, event, over_at)
           select project_id, hash, sequence, event, interval '${WAITING_DAYS} days'
             + greatest(now(), send_at,
               case when ends_at is not null then least(ends_at, now() + interval '${AHEAD_DAYS} days') end)
           from unnest($1::text[], $2::bytea[], $3::int[], $4::jsonb[], $5::timestamptz[], $6::timestamptz[])
             u (project_id, hash, sequence, event, send_at, ends_at)
           order by project_id, hash
           on conflict (project_id, uid_hash) do update set sequence = excluded.sequence, event = excluded.event,
             over_at = greatest(own_events.over_at, excluded.over_at)`,
    values: [
      ...keysOf(revised),
      revised.map(({ ownEvent }) => ownEvent.sequence),
      revised.map(({ ownEvent }) => JSON.stringify(ownEvent.event)),
      revised.map(({ sendAt }) => sendAt),
      revised.map(({ ownEvent }) => ownEvent.endsAt),
    ],
  })
}

const keysOf = (revised: readonly Revised[]) => [
  revised.map(({ projectId }) => projectId),
  revised.map(({ ownEvent }) => uidHash(ownEvent.uid)),
]

/**
 * Takes back a change of a calendar event that this project organizes, because the service does not send the mail with
 * the change. If the event has changed again since, the function changes nothing.
 * @returns false if the function changes nothing, because the event has changed again since.
 */
export async function undoOwnEvent(
  db: Queryable,
  projectId: string,
  { uid, sequence, before }: OwnEventChange,
): Promise<boolean> {
  const where = 'where project_id = $1 and uid_hash = $2 and sequence = $3'
  const key = [projectId, uidHash(uid), sequence]
  const { rowCount } =
    before === null
      ? await db.query(`delete from own_events ${where}`, key)
      : await db.query(
          `update own_events set sequence = sequence - 1, event = $4::jsonb ${where}`,
          [...key, JSON.stringify(before)],
        )
  return rowCount !== 0
}
