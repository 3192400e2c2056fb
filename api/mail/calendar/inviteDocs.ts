import { Type as t } from '@sinclair/typebox'
import { INVITE_EFFECTS } from '../../../shared/events/events.ts'
import {
  ATTENDEE_STATES,
  type Invite,
  METHODS,
  ROLES,
  STATUSES,
} from '../../../shared/mail/calendar/invite.ts'
import { compareRevisions } from '../../../shared/mail/calendar/precedence.ts'
import type { AppliedInvite } from '../../../sql/mail/calendar/applyInvites.ts'
import type { EventState } from '../../../sql/mail/calendar/calendarEvents.ts'

const oneOf = <const Value extends string>(values: readonly Value[], description?: string) =>
  t.Union(
    values.map((value) => t.Literal(value)),
    description === undefined ? {} : { description },
  )

const Nullable = (description: string) => t.Union([t.String(), t.Null()], { description })

const CalendarTimeSchema = t.Object({
  at: t.String({
    description: 'ISO 8601 in UTC. Of a day: midnight in UTC. A time without a zone counts as UTC.',
    examples: ['2026-03-02T09:00:00.000Z'],
  }),
  local: t.String({
    description: "As the event's people see it; a date for whole days.",
    examples: ['2026-03-02T10:00:00'],
  }),
  zone: Nullable('The IANA name; null: the event names no zone that is known.'),
})

const PersonSchema = t.Object({
  address: t.String(),
  name: t.Union([t.String(), t.Null()]),
})

const AttendeeSchema = t.Composite([
  PersonSchema,
  t.Object({ state: oneOf(ATTENDEE_STATES), role: oneOf(ROLES) }),
])

/** Lists the states that an invite can have at the time of an API call. */
const INVITE_STATES = ['current', 'outdated', 'cancelled', 'proposal', 'answer'] as const
type InviteState = (typeof INVITE_STATES)[number]

export const AnswerSchema = oneOf(
  ['needs-action', 'accepted', 'declined', 'tentative', 'delegated'],
  "The project's own answer.",
)

/** Describes the event fields that an invite and the calendar share. */
export const EventFields = {
  uid: t.String(),
  recurrenceId: Nullable(
    'The instance of a series, by its first start; null: the event itself, or the whole series.',
  ),
  summary: t.String(),
  description: t.String(),
  location: t.Union([t.String(), t.Null()]),
  meetingLink: Nullable('The https link that opens the meeting, where one is found.'),
  allDay: t.Boolean(),
  start: CalendarTimeSchema,
  end: t.Composite([CalendarTimeSchema], { description: 'Exclusive.' }),
  organizer: t.Union([PersonSchema, t.Null()]),
  attendees: t.Array(AttendeeSchema),
}

export const InviteSchema = t.Object({
  method: oneOf(METHODS),
  ...EventFields,
  sequence: t.Integer(),
  stamp: t.String({ description: 'DTSTAMP, in ISO 8601.' }),
  status: oneOf(STATUSES),
  recurrence: t.Union([
    t.Object({
      rule: t.String({ examples: ['FREQ=WEEKLY;BYDAY=MO'] }),
      next: t.Array(t.String(), {
        description: 'Starts of the next ten instances, counted from when the mail was read.',
      }),
    }),
    t.Null(),
  ]),
  comment: Nullable('For example of an answer.'),
  effect: oneOf(
    INVITE_EFFECTS,
    'What the message did to the calendar. proposal: its sender is not proven to be the organizer (of an answer: the ' +
      'attendee), and nothing changed. outdated: the calendar knew a later state.',
  ),
  state: oneOf(
    INVITE_STATES,
    'current: the calendar has it so. outdated: a later message changed the event. answer: of an attendee.',
  ),
  answer: AnswerSchema,
})

/** Returns an invite for the response of get-message. */
export const toInvite = (invite: AppliedInvite, event: EventState | null) => ({
  ...invite,
  state: stateOf(invite, event),
  answer: event?.answer ?? ('needs-action' as const),
})

function stateOf(invite: AppliedInvite, event: EventState | null): InviteState {
  if (invite.effect === 'proposal') return 'proposal'
  if (invite.method === 'REPLY') return 'answer'
  if (event === null) return 'outdated'
  const order = compareRevisions(revisionOf(invite), {
    sequence: event.sequence,
    stampMs: event.stamp.getTime(),
  })
  if (order < 0) return 'outdated'
  return event.status === 'cancelled' ? 'cancelled' : 'current'
}

const revisionOf = ({ sequence, stamp }: Invite) => ({ sequence, stampMs: Date.parse(stamp) })
