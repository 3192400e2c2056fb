import type { CalendarTime, Person, ReadInvite } from './invite.ts'

/** Writes the events of a calendar file as readable text. */
export const calendarText = (invites: readonly Omit<ReadInvite, 'source'>[]): string =>
  invites.map(textOf).join('\n\n')

function textOf(invite: Omit<ReadInvite, 'source'>): string {
  const { method, status, summary, start, end, recurrence, location, meetingLink } = invite
  const lines = [
    `Event: ${summary === '' ? '(without a title)' : summary}`,
    `Method: ${method}${status === 'confirmed' ? '' : `, ${status}`}`,
    ...(start === null ? [] : [`From: ${timeText(start)}`]),
    ...(end === null ? [] : [`Until: ${timeText(end)}`]),
    ...(recurrence === null ? [] : [`Recurs: ${recurrence.rule}`]),
    ...(location === null ? [] : [`Place: ${location}`]),
    ...(meetingLink === null ? [] : [`Link: ${meetingLink}`]),
    ...(invite.organizer === null ? [] : [`Organizer: ${personText(invite.organizer)}`]),
    ...invite.attendees.map((one) => `Attendee: ${personText(one)}, ${one.state}`),
    ...(invite.comment === null ? [] : [`Comment: ${invite.comment}`]),
  ]
  return `${lines.map(oneLine).join('\n')}${invite.description === '' ? '' : `\n\n${invite.description}`}`
}

/** Joins the lines of a text into one line. Otherwise a value of a calendar event could forge another line. */
const oneLine = (text: string): string => text.replace(/\s+/g, ' ')

const timeText = ({ local, zone }: CalendarTime): string =>
  zone === null ? local : `${local} ${zone}`

const personText = ({ address, name }: Person): string =>
  name === null ? address : `${name} <${address}>`
