/** Describes one event of a calendar file (RFC 5545, RFC 5546) in the form of the API. */

/** Lists the iTIP methods (RFC 5546 §1.4). */
export const METHODS = [
  'PUBLISH',
  'REQUEST',
  'REPLY',
  'ADD',
  'CANCEL',
  'REFRESH',
  'COUNTER',
  'DECLINECOUNTER',
] as const
export type Method = (typeof METHODS)[number]

/** Lists the values of PARTSTAT for an event (RFC 5545 §3.2.12). */
export const ATTENDEE_STATES = [
  'needs-action',
  'accepted',
  'declined',
  'tentative',
  'delegated',
] as const
export type AttendeeState = (typeof ATTENDEE_STATES)[number]

/** Lists the values of ROLE (an attendee's role) in RFC 5545 §3.2.16. */
export const ROLES = ['required', 'optional', 'chair', 'information'] as const
export type Role = (typeof ROLES)[number]

export const STATUSES = ['confirmed', 'tentative', 'cancelled'] as const
export type Status = (typeof STATUSES)[number]

/** Describes the start or the end of a calendar event. */
export type CalendarTime = {
  /**
   * Holds the UTC time of the calendar event in ISO 8601. For an event of whole days, `at` is midnight in UTC. A time
   * without a time zone counts as UTC.
   */
  at: string
  /** Holds the local time of the event: `2026-03-02T10:00:00`, or `2026-03-02` for a whole day. */
  local: string
  /** Holds the IANA name of the time zone. Null means that the calendar event names no known time zone. */
  zone: string | null
}

export type Person = { address: string; name: string | null }
export type Attendee = Person & { state: AttendeeState; role: Role }

/** Describes one event of a calendar file. */
export type Invite = {
  method: Method
  uid: string
  sequence: number
  /** Holds the DTSTAMP of the calendar event, in ISO 8601. */
  stamp: string
  /**
   * Names one instance of a series by its original start (RECURRENCE-ID) in ISO 8601. Null means that the invite
   * concerns all instances of the series.
   */
  recurrenceId: string | null
  status: Status
  summary: string
  description: string
  location: string | null
  meetingLink: string | null
  allDay: boolean
  start: CalendarTime
  end: CalendarTime
  /**
   * Holds the recurrence rule of a calendar event. Null means that the event does not recur. The field `next` holds the
   * start times of the next instances.
   */
  recurrence: { rule: string; next: string[] } | null
  organizer: Person | null
  attendees: Attendee[]
  /** Holds the COMMENT of the calendar event, for example in an attendee's reply. */
  comment: string | null
}

/**
 * Holds an event with its iCalendar text (`source`), from which the service computes later instances. A null `source`
 * means that the event does not recur.
 */
export type PlacedInvite = Invite & { source: string | null }

/**
 * Describes an invite with the data that its calendar file contains. A reply or a cancellation may leave out the times
 * of its event.
 */
export type ReadInvite = Omit<PlacedInvite, 'start' | 'end'> & {
  start: CalendarTime | null
  end: CalendarTime | null
}

export const CALENDAR_MAX_CHARS = 1_000_000
export const INVITES_MAX = 20
export const ATTENDEES_MAX = 200
export const UID_MAX_LENGTH = 1_000
export const SUMMARY_MAX_LENGTH = 1_000
export const DESCRIPTION_MAX_LENGTH = 10_000
export const LOCATION_MAX_LENGTH = 1_000
/** Sets the maximum number of future instances that the API lists for a recurring event. */
export const NEXT_MAX = 10
