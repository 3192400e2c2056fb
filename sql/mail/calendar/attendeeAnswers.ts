import type { InviteEffect } from '../../../shared/events/events.ts'
import { addressKey } from '../../../shared/mail/address.ts'
import { ATTENDEES_MAX, type Attendee, type Invite } from '../../../shared/mail/calendar/invite.ts'
import type { Queryable } from '../../db.ts'
import { findEvent, isFrom, type Place, WHOLE } from './knownEvents.ts'

/**
 * Records an attendee's answer to a calendar event that this project organizes. The answer counts only if the mail is
 * proven to come from the attendee. An answer to a changed instance of a series is judged by this instance, because the
 * instance may have other attendees and another start than the series.
 */
export async function answerOf(db: Queryable, place: Place): Promise<InviteEffect> {
  const { message, invite, instance, isTimed } = place
  const [attendee] = invite.attendees
  const organizer = addressKey(message.inboxAddress)
  const event =
    (await findEvent(db, place, { organizer, instance })) ??
    (await findEvent(db, place, { organizer, instance: WHOLE }))
  if (event === null || attendee === undefined || !event.isOwn) return 'proposal'
  if (!isFrom(message, attendee.address) || !isInvited(event.invite, attendee)) return 'proposal'
  // An attendee may answer an earlier version of the calendar event. This answer counts only if the earlier version had
  // the same start.
  const isAboutTime = isTimed && isSameStart(event.invite, invite)
  if (invite.sequence < event.sequence && !isAboutTime) return 'outdated'
  // DTSTAMP has whole seconds. Of two answers in one second, the answer that arrives later counts.
  const { rowCount } = await db.query({
    name: 'store-answer',
    text: `
      insert into calendar_answers as a (event_row, instance, address, state, stamp, comment)
      values ($1, $2::timestamptz, $3, $4, $5, $6)
      on conflict (event_row, instance, address) do update
        set state = excluded.state, stamp = excluded.stamp, comment = excluded.comment where a.stamp <= excluded.stamp`,
    values: [
      event.row,
      instance,
      addressKey(attendee.address),
      attendee.state,
      invite.stamp,
      invite.comment,
    ],
  })
  return rowCount === 1 ? 'answered' : 'outdated'
}

/**
 * Tells whether an attendee's answer is for the present start of a calendar event. A series knows an instance only by
 * its original start.
 */
const isSameStart = (event: Invite, answer: Invite): boolean =>
  event.start.at ===
  (event.recurrenceId === null ? (answer.recurrenceId ?? answer.start.at) : answer.start.at)

const isInvited = ({ attendees }: Invite, { address }: Attendee): boolean =>
  attendees.some((one) => addressKey(one.address) === addressKey(address))

/**
 * Limits how many former attendees of a calendar event keep their answers. The organizer may invite them again. Without
 * the limit, updates with ever new attendees would store more and more answers.
 */
const FORMER_MAX = ATTENDEES_MAX

/** Deletes the oldest answers of attendees who are no longer invited to a calendar event. */
export async function forgetFormerAnswers(
  db: Queryable,
  row: string,
  { attendees }: Invite,
): Promise<void> {
  await db.query({
    name: 'forget-former-answers',
    text: `
      delete from calendar_answers where event_row = $1 and address in (
        select address from calendar_answers where event_row = $1 and address <> all ($2::text[])
        group by address order by max(stamp) desc offset ${FORMER_MAX})`,
    values: [row, attendees.map(({ address }) => addressKey(address))],
  })
}

/** Deletes the attendees' answers to a calendar series and its instances, or only to one of its instances. */
export async function forgetAnswers(
  db: Queryable,
  rows: readonly string[],
  instance: string | null,
): Promise<void> {
  await db.query({
    name: 'forget-answers',
    text: `delete from calendar_answers
           where event_row = any ($1::bigint[]) and instance = coalesce($2::timestamptz, instance)`,
    values: [rows, instance],
  })
}
