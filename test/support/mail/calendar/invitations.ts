/** Makes calendar invitations in the form that other programs use. */

/** Describes the calendar event that the test writes to a calendar file. */
export type EventLines = {
  method?: string
  uid?: string
  sequence?: number
  /** Holds the value of the property DTSTAMP in the calendar file. */
  stamp?: string
  organizer?: string
  attendees?: readonly string[]
  /** Holds additional lines of the calendar event in the file, besides the usual lines. */
  lines?: readonly string[]
  start?: string
  end?: string
}

/** Writes a calendar file that contains one event. */
export function calendarFile({
  method = 'REQUEST',
  uid = 'event-1@example.com',
  sequence = 0,
  stamp = '20260101T000000Z',
  organizer = 'ada@example.com',
  attendees = [],
  lines = [],
  start = 'DTSTART:20300304T090000Z',
  end = 'DTEND:20300304T093000Z',
}: EventLines = {}): string {
  return [
    'BEGIN:VCALENDAR',
    'PRODID:-//Example//Example//EN',
    'VERSION:2.0',
    `METHOD:${method}`,
    'BEGIN:VEVENT',
    `UID:${uid}`,
    `DTSTAMP:${stamp}`,
    `SEQUENCE:${sequence}`,
    start,
    end,
    ...(lines.some((line) => line.startsWith('SUMMARY')) ? [] : ['SUMMARY:Cargo review']),
    ...(organizer === '' ? [] : [`ORGANIZER;CN=Ada:mailto:${organizer}`]),
    ...attendees.map((one) => `ATTENDEE;PARTSTAT=NEEDS-ACTION;RSVP=TRUE:mailto:${one}`),
    ...lines,
    'END:VEVENT',
    'END:VCALENDAR',
    '',
  ].join('\r\n')
}
