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
    description:
      'The time is ISO 8601 in UTC. A whole day begins at midnight in UTC. A time without a zone counts as UTC.',
    examples: ['2026-03-02T09:00:00.000Z'],
  }),
  local: t.String({
    description: 'The people of the event see the time in this form. A whole day is a date.',
    examples: ['2026-03-02T10:00:00'],
  }),
  zone: Nullable('The zone has its IANA name. Null means that the event names no known zone.'),
})

const PersonSchema = t.Object({
  address: t.String(),
  name: t.Union([t.String(), t.Null()]),
})

const AttendeeSchema = t.Composite([
  PersonSchema,
  t.Object({ state: oneOf(ATTENDEE_STATES), role: oneOf(ROLES) }),
])

/** Lists the states that a calendar invitation can have when the API returns it. */
const INVITE_STATES = ['current', 'outdated', 'cancelled', 'proposal', 'answer'] as const
type InviteState = (typeof INVITE_STATES)[number]

export const AnswerSchema = oneOf(
  ['needs-action', 'accepted', 'declined', 'tentative', 'delegated'],
  'The project itself gave this answer.',
)

/** Describes the event fields that both a calendar invitation and an entry of the calendar have. */
export const EventFields = {
  uid: t.String(),
  recurrenceId: Nullable(
    'The first planned start names one instance of a series. Null means the event itself, or the whole series.',
  ),
  summary: t.String(),
  description: t.String(),
  location: t.Union([t.String(), t.Null()]),
  meetingLink: Nullable(
    'This https link opens the meeting. The field is null if the event holds no such link.',
  ),
  allDay: t.Boolean(),
  start: CalendarTimeSchema,
  end: t.Composite([CalendarTimeSchema], { description: 'The event ends before this time.' }),
  organizer: t.Union([PersonSchema, t.Null()]),
  attendees: t.Array(AttendeeSchema),
}

export const InviteSchema = t.Object({
  method: oneOf(METHODS),
  ...EventFields,
  sequence: t.Integer(),
  stamp: t.String({ description: 'This time is the DTSTAMP of the event, in ISO 8601.' }),
  status: oneOf(STATUSES),
  recurrence: t.Union([
    t.Object({
      rule: t.String({ examples: ['FREQ=WEEKLY;BYDAY=MO'] }),
      next: t.Array(t.String(), {
        description:
          'The list holds the starts of the next ten instances after the time at which the mail was read.',
      }),
    }),
    t.Null(),
  ]),
  comment: Nullable('An answer can hold such a comment.'),
  effect: oneOf(
    INVITE_EFFECTS,
    'The effect says how the message changed the calendar. `proposal` means that nothing changed, because nothing proves that ' +
      'the sender is the organizer (for an answer: the attendee). `outdated` means that the calendar knew a later state.',
  ),
  state: oneOf(
    INVITE_STATES,
    '`current` means that the calendar holds this state. `outdated` means that a later message changed the event. `answer` means that an attendee answered.',
  ),
  answer: AnswerSchema,
})

/** Returns a calendar invitation in the form in which the get-message response shows it. */
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
