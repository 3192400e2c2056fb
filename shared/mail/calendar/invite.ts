/** One event of a calendar file (RFC 5545, RFC 5546), as the API shows it. */

/** iTIP methods (RFC 5546 §1.4). */
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

/** PARTSTAT of an event (RFC 5545 §3.2.12). */
export const ATTENDEE_STATES = [
  'needs-action',
  'accepted',
  'declined',
  'tentative',
  'delegated',
] as const
export type AttendeeState = (typeof ATTENDEE_STATES)[number]

/** ROLE (RFC 5545 §3.2.16). */
export const ROLES = ['required', 'optional', 'chair', 'information'] as const
export type Role = (typeof ROLES)[number]

export const STATUSES = ['confirmed', 'tentative', 'cancelled'] as const
export type Status = (typeof STATUSES)[number]

/** A time of an event. */
export type CalendarTime = {
  /** ISO 8601 in UTC. Of a day: its midnight in UTC. A time without a zone counts as UTC. */
  at: string
  /** As the event's people see it: `2026-03-02T10:00:00`, or `2026-03-02` of a day. */
  local: string
  /** The IANA name; null: the event names no zone that is known. */
  zone: string | null
}

export type Person = { address: string; name: string | null }
export type Attendee = Person & { state: AttendeeState; role: Role }

/** One event of a calendar file. */
export type Invite = {
  method: Method
  uid: string
  sequence: number
  /** DTSTAMP, in ISO 8601. */
  stamp: string
  /** The instance of a series that it is about, by its first start (RECURRENCE-ID), in ISO 8601; null: all of them. */
  recurrenceId: string | null
  status: Status
  summary: string
  description: string
  location: string | null
  meetingLink: string | null
  allDay: boolean
  start: CalendarTime
  end: CalendarTime
  /** Null: it does not recur. `next`: starts of the next instances. */
  recurrence: { rule: string; next: string[] } | null
  organizer: Person | null
  attendees: Attendee[]
  /** COMMENT, for example of an answer. */
  comment: string | null
}

/** An event with its source, from which its later instances are made; null: it does not recur. */
export type ReadInvite = Invite & { source: string | null }

export const CALENDAR_MAX_CHARS = 1_000_000
export const INVITES_MAX = 20
export const ATTENDEES_MAX = 200
export const UID_MAX_LENGTH = 1_000
export const SUMMARY_MAX_LENGTH = 1_000
export const DESCRIPTION_MAX_LENGTH = 10_000
export const LOCATION_MAX_LENGTH = 1_000
/** Instances that an invite names. */
export const NEXT_MAX = 10
