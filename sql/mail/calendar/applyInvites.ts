import type { InviteEffect } from '../../../shared/events/events.ts'
import { addressKey } from '../../../shared/mail/address.ts'
import type {
  AttendeeState,
  CalendarTime,
  Invite,
  ReadInvite,
} from '../../../shared/mail/calendar/invite.ts'
import { effectOf, type Revision } from '../../../shared/mail/calendar/precedence.ts'
import { localOf } from '../../../shared/mail/calendar/zones.ts'
import type { Client, Queryable } from '../../db.ts'
import { answerOf, forgetAnswers, forgetFormerAnswers } from './attendeeAnswers.ts'
import { hasAllChanges, placeInstances } from './instances.ts'
import {
  findEvent,
  type Given,
  type InvitingMessage,
  isFrom,
  type KnownEvent,
  type Place,
  WHOLE,
} from './knownEvents.ts'
import { uidHash } from './uidHash.ts'

/** Describes an invite, together with the change that it made in the calendar. */
export type AppliedInvite = Invite & { effect: InviteEffect }

/**
 * Applies the invites of a message to the calendar of its project, in the caller's transaction. An invite changes
 * nothing if it is outdated, or does not come from the organizer.
 */
export async function applyInvites(
  db: Client,
  message: InvitingMessage,
  invites: readonly ReadInvite[],
): Promise<AppliedInvite[]> {
  const applied: AppliedInvite[] = []
  // The transaction of each message locks the UIDs of its events in the same order. Therefore two transactions never
  // deadlock.
  const hashes = [...new Set(invites.map(({ uid }) => uidHash(uid).toString('hex')))].sort()
  await db.query({
    name: 'lock-calendar-events',
    text: `select pg_advisory_xact_lock(hashtextextended('event ' || $1 || k.key, 0)) from (
             select key from unnest($2::text[]) with ordinality as u (key, n) order by n) k`,
    values: [message.projectId, hashes],
  })
  for (const invite of invites) {
    const place = await timed(db, {
      message,
      invite,
      uid: uidHash(invite.uid),
      instance: invite.recurrenceId ?? WHOLE,
    })
    if (place === null) continue
    const effect = await apply(db, place)
    const { source: _, ...shown } = place.invite
    applied.push({ ...shown, effect })
  }
  return applied
}

/**
 * Gives an invite without times the times that its event has in the calendar.
 * @returns null if the calendar lacks the event, so that the invite changes nothing.
 */
async function timed(db: Queryable, given: Given): Promise<Place | null> {
  const { message, invite, instance } = given
  if (invite.start !== null && invite.end !== null) {
    const { start, end } = invite
    return { ...given, invite: { ...invite, start, end }, isTimed: true }
  }
  const organizer =
    invite.method === 'REPLY' ? addressKey(message.inboxAddress) : organizerOf(invite)
  const known = await findEvent(db, given, { organizer, instance })
  if (known !== null) {
    const { allDay, start, end, recurrence } = known.invite
    return { ...given, invite: { ...invite, allDay, start, end, recurrence }, isTimed: false }
  }
  const series = await findEvent(db, given, { organizer, instance: WHOLE })
  if (series === null) return null
  const { allDay, start, end } = series.invite
  const movedMs = Date.parse(instance) - Date.parse(start.at)
  const moved = { allDay, start: later(start, movedMs), end: later(end, movedMs) }
  return { ...given, invite: { ...invite, ...moved }, isTimed: false }
}

function later({ at, local, zone }: CalendarTime, ms: number): CalendarTime {
  const laterMs = Date.parse(at) + ms
  return {
    at: new Date(laterMs).toISOString(),
    local: localOf(laterMs, zone).slice(0, local.length),
    zone,
  }
}

function apply(db: Queryable, place: Place): Promise<InviteEffect> {
  switch (place.invite.method) {
    case 'REPLY':
      return place.message.direction === 'sent' ? ownAnswer(db, place) : answerOf(db, place)
    case 'REQUEST':
    case 'PUBLISH':
    case 'CANCEL':
      return revise(db, place)
    default:
      // A calendar event changes only through a mail of its organizer. Therefore an attendee, or the attendee's mail
      // program, can only propose a change.
      return Promise.resolve('proposal')
  }
}

/**
 * Applies a meeting request or a cancellation to the calendar. The message describes the whole event as the organizer
 * wants it.
 */
async function revise(db: Queryable, place: Place): Promise<InviteEffect> {
  const { message, invite, instance } = place
  const organizer = organizerOf(invite)
  const known = await findEvent(db, place, { organizer, instance })
  const isProven = organizer !== '' && isFrom(message, organizer)
  const isCancellation = invite.status === 'cancelled'
  const series =
    instance === WHOLE ? null : await findEvent(db, place, { organizer, instance: WHOLE })
  const effect = effectOf(known, revisionOf(invite), {
    isProven,
    isCancellation,
    series: series && { ...series, isCancelled: series.status === 'cancelled' },
  })
  if (effect !== 'new' && effect !== 'updated') return effect
  const isNewChange = instance !== WHOLE && known === null
  if (isNewChange && (await hasAllChanges(db, place, organizer))) return 'proposal'
  const isOwn = message.direction === 'sent'
  const answer = isOwn ? 'accepted' : keptAnswer(invite, known, series)
  const row = await storeEvent(db, place, { organizer, isProven, isOwn, answer })
  const rows = [row]
  if (instance === WHOLE) {
    if (isProven) await forgetUnprovenInstances(db, place, organizer)
    const isMoved = known !== null && !isSameTime(known.invite, invite)
    const isRevived = known?.status === 'cancelled' && !isCancellation
    if (isMoved || isRevived) await forgetChangedInstances(db, place, { organizer, row })
    if (isCancellation) rows.push(...(await cancelInstances(db, place, organizer)))
  } else if (isMovedInstance(known, invite)) {
    await forgetAnswers(db, series === null ? [row] : [row, series.row], instance)
  }
  if (!isCancellation) await forgetFormerAnswers(db, row, invite)
  await placeInstances(db, rows)
  return isCancellation ? 'cancelled' : effect
}

const organizerOf = ({ organizer }: Pick<Invite, 'organizer'>): string =>
  organizer === null ? '' : addressKey(organizer.address)

const revisionOf = ({ sequence, stamp }: Invite): Revision => ({
  sequence,
  stampMs: Date.parse(stamp),
})

/**
 * Returns the project's earlier answer to an invitation if the answer still counts. An attendee must answer again when
 * the time of the event changes (RFC 5546 §3.2.2.1). A single instance inherits the answer to the series of the
 * instance.
 */
function keptAnswer(
  invite: Invite,
  known: KnownEvent | null,
  series: KnownEvent | null,
): AttendeeState {
  if (known !== null) return isSameTime(known.invite, invite) ? known.answer : 'needs-action'
  const isAtItsTime = invite.recurrenceId === invite.start.at
  return series !== null && (isAtItsTime || invite.status === 'cancelled')
    ? series.answer
    : 'needs-action'
}

const isSameTime = (a: Invite, b: Invite): boolean =>
  a.start.at === b.start.at &&
  a.end.at === b.end.at &&
  (a.recurrence?.rule ?? null) === (b.recurrence?.rule ?? null)

/** Tells whether a calendar invitation moves an instance of a series away from the time that its attendees know. */
const isMovedInstance = (known: KnownEvent | null, invite: Invite): boolean =>
  known === null ? invite.recurrenceId !== invite.start.at : !isSameTime(known.invite, invite)

async function storeEvent(
  db: Queryable,
  { message, invite, uid, instance }: Place,
  event: { organizer: string; isProven: boolean; isOwn: boolean; answer: AttendeeState },
): Promise<string> {
  const { source, ...shown } = invite
  const { rows } = await db.query<{ row: string }>({
    name: 'store-calendar-event',
    text: `
      insert into calendar_events as e (project_id, uid_hash, organizer, instance, sequence, stamp, is_proven, is_own,
        status, answer, invite, source, message_row)
      values ($1, $2, $3, $4::timestamptz, $5, $6, $7, $8, $9, $10, $11, $12, $13)
      on conflict (project_id, uid_hash, organizer, instance) do update set sequence = excluded.sequence,
        stamp = excluded.stamp, is_proven = excluded.is_proven, is_own = e.is_own or excluded.is_own,
        status = excluded.status, answer = excluded.answer, invite = excluded.invite, source = excluded.source,
        message_row = excluded.message_row, expand_at = null, expand_tries = 0, updated_at = clock_timestamp()
      returning row`,
    values: [
      message.projectId,
      uid,
      event.organizer,
      instance,
      invite.sequence,
      invite.stamp,
      event.isProven,
      event.isOwn,
      invite.status,
      event.answer,
      JSON.stringify(shown),
      source,
      message.row,
    ],
  })
  return rows[0]!.row
}

/**
 * Deletes instances of a calendar event that somebody else announced before the organizer announced the whole series.
 */
async function forgetUnprovenInstances(
  db: Queryable,
  { message: { projectId }, uid }: Place,
  organizer: string,
): Promise<void> {
  await db.query({
    name: 'forget-unproven-instances',
    text: `delete from calendar_events where project_id = $1 and uid_hash = $2 and organizer = $3
           and instance > '-infinity' and not is_proven`,
    values: [projectId, uid, organizer],
  })
}

/**
 * Deletes the earlier changed instances of a calendar series when the whole series moves to another time, or takes
 * place again after a cancellation. The function also deletes the attendees' answers to the earlier series.
 */
async function forgetChangedInstances(
  db: Queryable,
  { message: { projectId }, invite, uid }: Place,
  { organizer, row }: { organizer: string; row: string },
): Promise<void> {
  await db.query({
    name: 'forget-changed-instances',
    text: `delete from calendar_events where project_id = $1 and uid_hash = $2 and organizer = $3
           and instance > '-infinity' and (sequence, stamp) < ($4, $5)`,
    values: [projectId, uid, organizer, invite.sequence, invite.stamp],
  })
  await forgetAnswers(db, [row], null)
}

async function cancelInstances(
  db: Queryable,
  { message: { projectId }, uid }: Place,
  organizer: string,
): Promise<string[]> {
  const { rows } = await db.query<{ row: string }>({
    name: 'cancel-changed-instances',
    text: `update calendar_events set status = 'cancelled', updated_at = clock_timestamp()
           where project_id = $1 and uid_hash = $2 and organizer = $3 and instance > '-infinity' and status <> 'cancelled'
           returning row`,
    values: [projectId, uid, organizer],
  })
  return rows.map(({ row }) => row)
}

/**
 * Records this project's own answer to a calendar invitation. An answer to a whole series also applies to the changed
 * instances of the series. An answer is ignored if a newer answer is recorded, or if the organizer has moved the event
 * since. The order can change, because an answer that waited for approval may be sent after a newer one. The organizer
 * also ignores the older answer (RFC 5546 §2.1.5).
 */
async function ownAnswer(db: Queryable, { message, invite, uid, instance, isTimed }: Place) {
  const state = invite.attendees[0]?.state ?? 'needs-action'
  const { rows } = await db.query<{ row: string }>({
    name: 'answer-event',
    text: `
      with events as (
        select row, instance, answer_stamp > $6::timestamptz as is_answered,
          sequence > $7 and invite -> 'start' ->> 'at' is distinct from $8 as is_moved
        from calendar_events
        where project_id = $1 and uid_hash = $2 and organizer = $3 and $4::timestamptz in (instance, '-infinity')
      )
      update calendar_events e set answer = $5, answer_stamp = $6, updated_at = clock_timestamp()
      from events v
      where e.row = v.row and v.is_answered is not true
        and not exists (select from events where instance = $4 and (is_answered or is_moved))
      returning e.row`,
    values: [
      ...[message.projectId, uid, organizerOf(invite), instance, state, invite.stamp],
      ...[invite.sequence, isTimed ? invite.start.at : null],
    ],
  })
  await placeInstances(
    db,
    rows.map(({ row }) => row),
  )
  return rows.length === 0 ? ('outdated' as const) : ('answered' as const)
}
