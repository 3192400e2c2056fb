import { type Static, Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { parseIsoTime } from '../../../shared/isoTime.ts'
import { addressKey } from '../../../shared/mail/address.ts'
import { localOf } from '../../../shared/mail/calendar/zones.ts'
import type { Queryable } from '../../../sql/db.ts'
import { type CalendarItem, listCalendar } from '../../../sql/mail/calendar/calendarEvents.ts'
import { badRequest } from '../../http/errors.ts'
import { MAIL_BODY_MAX_BYTES } from '../../http/input/body.ts'
import { readIdempotencyKey } from '../../http/input/idempotencyKey.ts'
import { operation, PageQuery } from '../../http/operation.ts'
import { cutPage, readPage } from '../../http/page.ts'
import { callerOf, projectOf } from '../../http/requestState.ts'
import type { Services } from '../../http/services.ts'
import { RepliedMessage } from '../messages/messageDocs.ts'
import { MessageParams } from '../messages/messageRoutes.ts'
import { EXAMPLE_REPLIED, SEND_ERRORS } from '../outbound/sendingDocs.ts'
import { AnswerSchema, EventFields } from './inviteDocs.ts'
import { answerInvite, RsvpBody } from './rsvp.ts'

/** Sets the maximum number of days that one query of the calendar may cover. */
const SPAN_MAX_DAYS = 366
const DAY_MS = 24 * 60 * 60 * 1000

const Moment = (description: string) => t.Optional(t.String({ maxLength: 40, description }))

export const CalendarQuery = t.Composite([
  t.Object({
    from: Moment(
      'The list holds events that end after this time. Write ISO 8601 with a zone, or a date alone. By default it is now.',
    ),
    to: Moment(
      `The list holds events that start before this time. The time is at most ${SPAN_MAX_DAYS} days after \`from\`, and this by default.`,
    ),
  }),
  PageQuery,
])

const CalendarEvent = t.Object({
  ...EventFields,
  recurs: t.Boolean(),
  answer: AnswerSchema,
  own: t.Boolean({ description: 'True means that the project is the organizer.' }),
  messageId: t.Union([t.String(), t.Null()], {
    description: 'This message announces the event. Null means that the message was deleted.',
  }),
})

/** Describes one page of calendar events. */
export const CalendarPage = t.Object({
  events: t.Array(CalendarEvent),
  count: t.Integer(),
  nextPageToken: t.Optional(t.String()),
})

const EXAMPLE = {
  uid: '7f2c@example.com',
  recurrenceId: null,
  summary: 'Cargo review',
  description: '',
  location: 'Room 2',
  meetingLink: 'https://meet.example.com/cargo',
  allDay: false,
  start: {
    at: '2026-03-02T09:00:00.000Z',
    local: '2026-03-02T10:00:00',
    zone: 'Europe/Berlin',
  },
  end: {
    at: '2026-03-02T09:30:00.000Z',
    local: '2026-03-02T10:30:00',
    zone: 'Europe/Berlin',
  },
  organizer: { address: 'ada@example.com', name: 'Ada' },
  attendees: [
    {
      address: 'agent@mail.example.com',
      name: null,
      state: 'needs-action' as const,
      role: 'required' as const,
    },
  ],
  recurs: false,
  answer: 'accepted' as const,
  own: false,
  messageId: '<offer-1@example.com>',
}

/** Serves the calendar of a project, and the route that answers an invitation. */
export function calendarRoutes(services: Services) {
  return new Elysia()
    .get(
      '/v0/calendar',
      ({ request, query }) => readCalendarPage(services.pool, projectOf(request), query),
      {
        query: CalendarQuery,
        detail: operation({
          summary: 'List the events of a time, in order of their starts',
          description:
            'Events that the project organizes, or has accepted or tentatively accepted. Each instance of a series is an item; ' +
            'instances stand up to two years ahead, and back one year.',
          tag: 'Messages',
          access: 'mail:read',
          success: {
            status: 200,
            description: 'One page of events.',
            schema: CalendarPage,
            example: { events: [EXAMPLE], count: 1 },
          },
        }),
      },
    )
    .post(
      '/v0/messages/:messageId/rsvp',
      async ({ request, params, body, set }) => {
        const sent = await answerInvite(
          services,
          callerOf(request),
          { ...body, messageId: params.messageId },
          {
            key: readIdempotencyKey(request.headers.get('idempotency-key')),
            held: callerOf(request).holdsMail,
          },
        )
        set.status = 201
        return sent
      },
      {
        params: MessageParams,
        body: RsvpBody,
        detail: operation({
          summary: 'Answer an invitation',
          description:
            'Sends the answer to the organizer (RFC 5546, RFC 6047), in the thread of the invitation. Rules, suppressions and ' +
            "the owner's approval stand as for each mail. The calendar changes when the answer is on its way.",
          tag: 'Messages',
          access: 'mail:send',
          idempotencyKey: true,
          bodyMaxBytes: MAIL_BODY_MAX_BYTES,
          largeFor: 'attachments',
          requestExample: { answer: 'accepted' },
          success: {
            status: 201,
            description: 'The answer was accepted.',
            schema: RepliedMessage,
            example: { ...EXAMPLE_REPLIED, subject: 'Accepted: Cargo review' },
          },
          errors: {
            404: 'Message not found',
            409: 'The event was changed or cancelled, its sender is not proven to be the organizer, or the message is still being read',
            ...SEND_ERRORS,
          },
        }),
      },
    )
}

function momentOf(field: string, given: string): Date {
  const at = parseIsoTime(given)
  if (at === null) throw badRequest(`${field} must be an ISO 8601 date, or a time with a zone`)
  return at
}

/** Returns one page of the calendar. @throws {ApiError} 400 for an invalid query. */
export async function readCalendarPage(
  db: Queryable,
  { projectId }: { projectId: string },
  query: Static<typeof CalendarQuery>,
): Promise<Static<typeof CalendarPage>> {
  const from = query.from === undefined ? new Date() : momentOf('from', query.from)
  const longest = new Date(from.getTime() + SPAN_MAX_DAYS * DAY_MS)
  const to = query.to === undefined ? longest : momentOf('to', query.to)
  const spanMs = to.getTime() - from.getTime()
  if (spanMs <= 0 || spanMs > SPAN_MAX_DAYS * DAY_MS) {
    throw badRequest(`to must be after from, by at most ${SPAN_MAX_DAYS} days`)
  }
  const { limit, cursor } = readPage(query)
  const after =
    cursor === null ? null : { startsAt: new Date(cursor.atMs), eventRow: String(cursor.row) }
  const found = await listCalendar(db, { projectId, from, to, after, limit: limit + 1 })
  const rows = found.map((item) => ({ ...item, row: BigInt(item.eventRow) }))
  const { page, next } = cutPage(rows, limit, ({ startsAt }) => startsAt)
  return { events: page.map(toEvent), count: page.length, ...next }
}

/**
 * Returns one instance of a calendar event in the form of the API. Its start and end are those of the single instance.
 * All other fields are those of the whole series.
 */
function toEvent({
  invite,
  startsAt,
  endsAt,
  local,
  isOwn,
  answer,
  messageId,
  answers,
}: CalendarItem) {
  const { zone } = invite.start
  const states = new Map(answers.map(({ address, state }) => [address, state]))
  // If the time zone has no IANA name, the local start time of the calendar event contains the offset from UTC.
  const offsetMs =
    invite.allDay || invite.end.zone !== null ? 0 : Date.parse(`${local}Z`) - startsAt.getTime()
  const endLocal = localOf(endsAt.getTime() + offsetMs, invite.end.zone)
  return {
    uid: invite.uid,
    recurrenceId: invite.recurrence === null ? invite.recurrenceId : startsAt.toISOString(),
    summary: invite.summary,
    description: invite.description,
    location: invite.location,
    meetingLink: invite.meetingLink,
    allDay: invite.allDay,
    start: { at: startsAt.toISOString(), local, zone },
    end: {
      at: endsAt.toISOString(),
      local:
        invite.recurrence === null
          ? invite.end.local
          : invite.allDay
            ? endLocal.slice(0, 10)
            : endLocal,
      zone: invite.end.zone,
    },
    organizer: invite.organizer,
    attendees: invite.attendees.map((one) => ({
      ...one,
      state: states.get(addressKey(one.address)) ?? one.state,
    })),
    recurs: invite.recurrence !== null || invite.recurrenceId !== null,
    answer,
    own: isOwn,
    messageId,
  }
}
