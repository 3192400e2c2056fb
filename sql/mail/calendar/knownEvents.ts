import { addressKey } from '../../../shared/mail/address.ts'
import type {
  AttendeeState,
  Invite,
  PlacedInvite,
  ReadInvite,
} from '../../../shared/mail/calendar/invite.ts'
import type { Revision } from '../../../shared/mail/calendar/precedence.ts'
import type { Authentication } from '../../../shared/mail/parse/authentication.ts'
import type { Queryable } from '../../db.ts'

/** Describes a message that contains calendar invitations. */
export type InvitingMessage = {
  row: string
  projectId: string
  direction: 'received' | 'sent'
  from: string[]
  inboxAddress: string
  authentication: Authentication | null
}

/** Describes an invite of a message, with the keys of its event in the table calendar_events. */
export type Given = { message: InvitingMessage; invite: ReadInvite; uid: Buffer; instance: string }
/** Describes a calendar invitation whose event has known times. */
export type Place = Omit<Given, 'invite'> & {
  invite: PlacedInvite
  /** Tells whether the calendar file itself states the times of the event. */
  isTimed: boolean
}

/** Holds the `instance` of a row that describes a whole event, not one instance of a series. */
export const WHOLE = '-infinity'

/** Tells whether a message has only one sender, and this sender is proven and has the given address. */
export function isFrom(
  { direction, from, authentication }: InvitingMessage,
  address: string,
): boolean {
  if (direction === 'sent') return true
  const isVouched = authentication?.internal === true || authentication?.aligned === true
  return isVouched && from.length === 1 && addressKey(from[0]!) === addressKey(address)
}

/** Describes an event that the calendar of the project has. */
export type KnownEvent = Revision & {
  row: string
  isProven: boolean
  isOwn: boolean
  status: Invite['status']
  answer: AttendeeState
  invite: Invite
}

/** Finds an event, or one changed instance of a series, in the calendar of a project. */
export async function findEvent(
  db: Queryable,
  { message: { projectId }, uid }: Given,
  { organizer, instance }: { organizer: string; instance: string },
): Promise<KnownEvent | null> {
  const { rows } = await db.query<Omit<KnownEvent, 'stampMs'> & { stamp: Date }>({
    name: 'find-calendar-event',
    text: `select row, sequence, stamp, is_proven as "isProven", is_own as "isOwn", status, answer, invite
           from calendar_events where project_id = $1 and uid_hash = $2 and organizer = $3 and instance = $4::timestamptz`,
    values: [projectId, uid, organizer, instance],
  })
  const [row] = rows
  if (row === undefined) return null
  const { stamp, ...event } = row
  return { ...event, stampMs: stamp.getTime() }
}
