import { randomBytes } from 'node:crypto'
import { type Static, Type as t } from '@sinclair/typebox'
import { parseIsoTime } from '../../../shared/isoTime.ts'
import { domainOf, type Mailbox } from '../../../shared/mail/address.ts'
import {
  DESCRIPTION_MAX_LENGTH,
  LOCATION_MAX_LENGTH,
  SUMMARY_MAX_LENGTH,
  UID_MAX_LENGTH,
} from '../../../shared/mail/calendar/invite.ts'
import { mayStartAt } from '../../../shared/mail/calendar/seriesInstance.ts'
import {
  isRule,
  isWritableZone,
  type WrittenEvent,
  type WrittenTime,
  writeCancellation,
  writeRequest,
} from '../../../shared/mail/calendar/writeCalendar.ts'
import { ianaName, localOf } from '../../../shared/mail/calendar/zones.ts'
import { calendarType, type SentAttachment } from '../../../shared/mail/compose/sentAttachment.ts'
import { COMING_MAX, isCalendarFull } from '../../../sql/mail/calendar/expireEvents.ts'
import { findOwnEvent, type OwnEventRevision } from '../../../sql/mail/calendar/ownEvents.ts'
import { ApiError, badRequest, notFound } from '../../http/errors.ts'
import type { Services } from '../../http/services.ts'

const TIME_MAX_LENGTH = 40
const RULE_MAX_LENGTH = 500
const URL_MAX_LENGTH = 900

const Moment = (what: string, more = '') =>
  t.Optional(
    t.String({
      maxLength: TIME_MAX_LENGTH,
      description: `${what} is a time with a zone (2026-03-02T09:00:00Z), a local time in \`zone\` (2026-03-02T10:00:00), or a date for whole days (2026-03-02).${more}`,
    }),
  )
const OneLine = (maxLength: number, description: string) =>
  t.Optional(
    t.String({
      minLength: 1,
      maxLength,
      pattern: '^[^\\u0000-\\u001f\\u007f]*$',
      error: `be one line of 1 to ${maxLength} characters`,
      description,
    }),
  )

export const EventInput = t.Optional(
  t.Object(
    {
      uid: t.Optional(
        t.String({
          minLength: 1,
          maxLength: UID_MAX_LENGTH,
          description:
            'Name an event of this project to change or cancel it. Without this field, the event is new, and the answer holds its `uid`.',
        }),
      ),
      cancel: t.Optional(t.Boolean({ description: 'True cancels the event `uid`.' })),
      recurrenceId: t.Optional(
        t.String({
          maxLength: TIME_MAX_LENGTH,
          description:
            'This field changes or cancels one instance of the series `uid`. Give the first planned start of the instance, as a time with a zone.',
        }),
      ),
      summary: OneLine(
        SUMMARY_MAX_LENGTH,
        'This text is the title of the event. The default is the subject.',
      ),
      start: Moment('The start'),
      end: Moment('The end', ' Whole days end on the day after the last day.'),
      zone: t.Optional(
        t.String({
          maxLength: 100,
          description: 'The zone is an IANA time zone.',
          examples: ['Europe/Berlin'],
        }),
      ),
      location: OneLine(LOCATION_MAX_LENGTH, 'The event takes place here.'),
      description: t.Optional(
        t.String({
          maxLength: DESCRIPTION_MAX_LENGTH,
          description: 'This text describes the event. The default is the text of the mail.',
        }),
      ),
      url: OneLine(
        URL_MAX_LENGTH,
        'This https URL belongs to the event, for example the URL of the meeting.',
      ),
      rule: OneLine(
        RULE_MAX_LENGTH,
        'The event repeats by this recurrence rule (RFC 5545 §3.3.10), such as FREQ=WEEKLY;BYDAY=MO;COUNT=10.',
      ),
    },
    {
      description:
        'The mail invites the recipients to an event, or changes or cancels the event (RFC 6047). The recipients in `to` are required attendees, and those in `cc` are optional attendees.',
    },
  ),
)
export type EventInput = NonNullable<Static<typeof EventInput>>

/** Describes the fields of a calendar event that the table own_events stores. */
type Announced = Pick<
  WrittenEvent,
  'summary' | 'start' | 'end' | 'description' | 'location' | 'url' | 'rule'
>

/** Holds the calendar invitation of a mail, and the fields of the invitation that the API response shows. */
export type Invitation = {
  attachment: SentAttachment
  shown: { uid: string; sequence: number }
  /** Holds the change of the calendar event that the service stores together with the mail. */
  change: OwnEventRevision
}

type Mail = {
  from: string
  subject: string
  text: string
  to: readonly Mailbox[]
  cc: readonly Mailbox[]
}

/**
 * Writes the calendar invitation of a mail. The service stores the change of the event when it accepts the mail.
 * @throws {ApiError} 400 for an invalid event, 404 for an unknown event.
 */
export async function invitationOf(
  { pool }: Services,
  projectId: string,
  input: EventInput,
  mail: Mail,
): Promise<Invitation> {
  const announced = input.cancel === true ? null : announcedBy(input, mail)
  const isInstance = input.recurrenceId !== undefined
  if (input.uid === undefined && (announced === null || isInstance)) {
    throw badRequest('event.uid must name the event that is cancelled, or whose instance changes')
  }
  const known = input.uid === undefined ? null : await findOwnEvent(pool, projectId, input.uid)
  if (input.uid !== undefined && known === null) throw notFound('Event not found')
  if ((known === null || isInstance) && (await isCalendarFull(pool, projectId)))
    throw calendarFull()
  const before = known === null ? null : (known.event as Announced)
  const series = isInstance || announced === null ? before! : announced
  const uid = input.uid ?? `${randomBytes(16).toString('hex')}@${domainOf(mail.from)}`
  const sequence = known === null ? 0 : known.sequence + 1
  const recurrenceId = isInstance ? instanceOf(input.recurrenceId!, series) : null
  const event: WrittenEvent = {
    ...(announced ?? cancelled(series, recurrenceId)),
    uid,
    sequence,
    stamp: new Date(),
    recurrenceId,
    organizer: { address: mail.from, name: null },
    attendees: [
      ...mail.to.map((one) => ({ ...one, role: 'required' as const })),
      ...mail.cc.map((one) => ({ ...one, role: 'optional' as const })),
    ],
  }
  const endsAt = announced === null ? null : new Date(atOf(announced.end))
  const content = input.cancel === true ? writeCancellation(event) : writeRequest(event)
  return {
    attachment: {
      filename: input.cancel === true ? 'cancel.ics' : 'invite.ics',
      contentType: calendarType(input.cancel === true ? 'CANCEL' : 'REQUEST'),
      contentId: null,
      content: Buffer.from(content),
    },
    shown: { uid, sequence },
    change: { uid, sequence, before, event: series, endsAt },
  }
}

/** Makes the 413 error for a project with too many coming calendar events whose messages are deleted. */
export function calendarFull(): ApiError {
  const message = `The calendar holds ${COMING_MAX} coming events without a message: cancel or decline some`
  return new ApiError(413, 'quota_exceeded', message)
}

/**
 * Returns the cancellation of a calendar event, which repeats the fields of the cancelled event. To cancel a single
 * instance of a series, it names the start of the instance.
 */
function cancelled(series: Announced, instance: WrittenTime | null): Announced {
  if (instance === null) return series
  return { ...series, start: instance, end: instance, rule: null }
}

/** Reads the fields that an event announces to its attendees. @throws {ApiError} 400 for an invalid field. */
function announcedBy(input: EventInput, { subject, text }: Mail): Announced {
  const zone = zoneOf(input.zone)
  const place = { zone, isZoned: input.zone !== undefined }
  const start = momentOf('start', input.start, place)
  const end = momentOf('end', input.end, place)
  if (start.local.includes('T') !== end.local.includes('T')) {
    throw badRequest('event.end must be a date exactly where event.start is one')
  }
  if (atOf(end) <= atOf(start)) throw badRequest('event.end must be after event.start')
  const { rule = null, url = null } = input
  if (rule !== null && !isRule(rule)) {
    throw badRequest('event.rule must be a recurrence rule, such as FREQ=WEEKLY;COUNT=10')
  }
  if (rule !== null && input.recurrenceId !== undefined) {
    throw badRequest('event.rule must be absent beside event.recurrenceId')
  }
  const link = url === null ? null : URL.parse(url)
  if (url !== null && link?.protocol !== 'https:') {
    throw badRequest('event.url must be an https URL')
  }
  return {
    summary: input.summary ?? subject,
    start,
    end,
    description: input.description ?? text.slice(0, DESCRIPTION_MAX_LENGTH).toWellFormed(),
    location: input.location ?? null,
    url: link?.href ?? null,
    rule,
  }
}

function zoneOf(given: string | undefined): string | null {
  if (given === undefined) return null
  const name = ianaName(given)
  if (name === null || (name !== 'UTC' && !isWritableZone(name))) {
    throw badRequest('event.zone must be an IANA time zone, such as Europe/Berlin')
  }
  return name === 'UTC' ? null : name
}

const DATE = /^\d{4}-\d{2}-\d{2}$/
const LOCAL = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2})?$/

/**
 * Reads a start time or an end time of a calendar event from the request. The function converts a time with a UTC
 * offset to the local time of `zone`. @throws {ApiError} 400 for an invalid time.
 */
function momentOf(
  field: string,
  given: string | undefined,
  { zone, isZoned }: { zone: string | null; isZoned: boolean },
): WrittenTime {
  if (given === undefined) throw badRequest(`event.${field} is required`)
  const fault = badRequest(
    `event.${field} must be a date, an ISO 8601 time with a zone, or one without beside event.zone`,
  )
  if (DATE.test(given)) {
    return { local: plain(`${given}T00:00:00`, fault).slice(0, 10), zone: null }
  }
  if (LOCAL.test(given)) {
    if (!isZoned) throw fault
    return { local: plain(given, fault), zone }
  }
  const at = parseIsoTime(given)
  if (at === null) throw fault
  return { local: inFourDigits(localOf(at.getTime(), zone), fault), zone }
}

function plain(local: string, fault: Error): string {
  let text: string
  try {
    text = Temporal.PlainDateTime.from(local, { overflow: 'reject' }).toString({
      smallestUnit: 'second',
    })
  } catch {
    throw fault
  }
  return inFourDigits(text, fault)
}

/**
 * Returns the given time if its year has four digits, because a calendar file cannot contain a longer year (RFC 5545
 * §3.3.4).
 */
function inFourDigits(local: string, fault: Error): string {
  if (/^[1-9]\d{3}-/.test(local)) return local
  throw fault
}

const atOf = ({ local, zone }: WrittenTime): number =>
  Temporal.PlainDateTime.from(local).toZonedDateTime(zone ?? 'UTC').epochMilliseconds

const DAY_MS = 24 * 60 * 60 * 1000

/**
 * Reads the RECURRENCE-ID of an event. It has the same type and the same time zone as the start of the series (RFC 5545
 * §3.8.4.4).
 * @throws {ApiError} 400 if the series has no instance with this start.
 */
function instanceOf(given: string, { start, rule }: Announced): WrittenTime {
  if (rule === null) throw badRequest('event.recurrenceId must be absent: the event does not recur')
  const isDate = !start.local.includes('T')
  const at = parseIsoTime(DATE.test(given) ? `${given}T00:00:00Z` : given)
  if (at === null) throw badRequest('event.recurrenceId must be an ISO 8601 time with a zone')
  const stepMs = isDate ? DAY_MS : 1000
  const atMs = Math.floor(at.getTime() / stepMs) * stepMs
  if (!mayStartAt({ start, rule }, atMs)) {
    throw badRequest(
      'event.recurrenceId must be the first planned start of an instance of the series',
    )
  }
  const local = localOf(atMs, isDate ? null : start.zone)
  return isDate ? { local: local.slice(0, 10), zone: null } : { local, zone: start.zone }
}
