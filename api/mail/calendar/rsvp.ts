import { type Static, Type as t } from '@sinclair/typebox'
import { newMessageId } from '../../../shared/ids.ts'
import { addressKey, domainOf, parseAddress, recipientKeys } from '../../../shared/mail/address.ts'
import {
  type CalendarTime,
  DESCRIPTION_MAX_LENGTH,
  type Invite,
  type Person,
  UID_MAX_LENGTH,
} from '../../../shared/mail/calendar/invite.ts'
import { type WrittenTime, writeAnswer } from '../../../shared/mail/calendar/writeCalendar.ts'
import { calendarType } from '../../../shared/mail/compose/sentAttachment.ts'
import { replyReferences } from '../../../shared/mail/threading.ts'
import type { AppliedInvite } from '../../../sql/mail/calendar/applyInvites.ts'
import { findEventStates } from '../../../sql/mail/calendar/calendarEvents.ts'
import { isCalendarFull } from '../../../sql/mail/calendar/expireEvents.ts'
import type { SingleMessage } from '../../../sql/mail/messages/messages.ts'
import { badRequest, conflict } from '../../http/errors.ts'
import type { Caller } from '../../http/requestState.ts'
import type { Services } from '../../http/services.ts'
import { readStored } from '../messages/messageRoutes.ts'
import { SUBJECT_MAX_LENGTH } from '../outbound/sendInput.ts'
import { acceptOnce, type Once, type RepliedAnswer } from '../outbound/sending.ts'
import { calendarFull } from './eventInput.ts'
import { toInvite } from './inviteDocs.ts'

const ANSWERS = ['accepted', 'declined', 'tentative'] as const

export const RsvpBody = t.Object({
  answer: t.Union(
    ANSWERS.map((answer) => t.Literal(answer)),
    { error: `be one of ${ANSWERS.join(', ')}` },
  ),
  comment: t.Optional(
    t.String({
      maxLength: DESCRIPTION_MAX_LENGTH,
      description: 'The organizer reads this comment.',
    }),
  ),
  uid: t.Optional(
    t.String({
      minLength: 1,
      maxLength: UID_MAX_LENGTH,
      description: 'If the message invites to several events, name the event that you answer.',
    }),
  ),
})

const WORDS = { accepted: 'Accepted', declined: 'Declined', tentative: 'Tentative' } as const

/**
 * Answers an invitation by a mail to the organizer (RFC 5546 §3.2.3), in the thread of the invitation. The calendar
 * changes only when the service sends this mail, and not while it waits for an approval.
 * @throws {ApiError} 400 for an invalid answer, 404 for an unknown message, 409 if the event was changed or cancelled
 * after the invitation, and the errors of send.
 */
export async function answerInvite(
  services: Services,
  caller: Caller,
  { messageId: originalId, ...body }: Static<typeof RsvpBody> & { messageId: string },
  once: Once,
) {
  const { projectId } = caller
  const request = ['rsvp', originalId, body]
  return await acceptOnce(services, projectId, { ...once, request }, async () => {
    const original = await readStored(services, caller, originalId)
    const invite = await inviteToAnswer(services, projectId, original, body.uid)
    if (body.answer !== 'declined' && (await isCalendarFull(services.pool, projectId))) {
      throw calendarFull()
    }
    const organizer = invite.organizer === null ? null : parseAddress(invite.organizer.address)
    if (organizer === null) throw badRequest('The invitation names no organizer to answer to')
    const from = original.inboxAddress
    const { answer, comment = null } = body
    const subject = `${WORDS[answer]}: ${invite.summary}`
      .slice(0, SUBJECT_MAX_LENGTH)
      .toWellFormed()
      .replace(/[\r\n]+/g, ' ')
    const messageId = newMessageId(domainOf(from))
    const shown: RepliedAnswer = {
      messageId,
      ...(services.config.answers === 'full' ? { inboxId: from } : {}),
      from: [from],
      to: [organizer],
      cc: [],
      subject,
      labels: ['sent'],
    }
    const content = writeAnswer({
      ...invite,
      start: writtenTime(invite, invite.start),
      end: writtenTime(invite, invite.end),
      stamp: new Date(),
      recurrenceId: instanceOf(invite),
      organizer: { address: organizer, name: nameOf(invite.organizer) },
      attendee: attendeeOf(invite, from),
      answer,
      comment,
    })
    return {
      messageId,
      sendAt: null,
      threadRow: original.threadRow,
      from,
      to: [organizer],
      cc: [],
      bcc: [],
      subject,
      text: comment ?? `${from} has answered: ${WORDS[answer].toLowerCase()}.`,
      html: null,
      attachments: [
        {
          filename: 'answer.ics',
          contentType: calendarType('REPLY'),
          contentId: null,
          content: Buffer.from(content),
        },
      ],
      calendar: 0,
      unsubscribe: null,
      headers: null,
      names: null,
      inReplyTo: [original.headerMessageId],
      references: replyReferences({
        messageId: original.headerMessageId,
        inReplyTo: original.inReplyTo,
        references: original.references,
      }),
      answer: shown,
    }
  })
}

/**
 * Returns the invitation in a message that the inbox can answer. @throws {ApiError} 400 if the message has no such
 * invitation, 409 if the calendar event has changed after the invitation.
 */
async function inviteToAnswer(
  { pool }: Services,
  projectId: string,
  original: SingleMessage,
  uid: string | undefined,
): Promise<AppliedInvite> {
  const asked = (original.invites ?? []).filter(({ method }) => method === 'REQUEST')
  const uids = new Set(asked.map((invite) => invite.uid))
  if (asked.length === 0) throw withoutInvite(original)
  if (uid !== undefined && !uids.has(uid)) {
    throw badRequest('uid must be that of an invitation of the message')
  }
  if (uid === undefined && uids.size > 1) {
    throw badRequest('uid must name the event: the message invites to several')
  }
  const of = asked.filter((invite) => uid === undefined || invite.uid === uid)
  const invite = of.find(({ recurrenceId }) => recurrenceId === null) ?? of[0]!
  const [event] = await findEventStates(pool, projectId, [invite])
  const { state } = toInvite(invite, event ?? null)
  if (state === 'proposal') {
    throw conflict('The sender is not proven to be the organizer, so that the event is unchanged')
  }
  if (state === 'cancelled') throw conflict('The event is cancelled')
  if (state === 'outdated') {
    const newer = event?.messageId ?? null
    throw conflict(`The event was changed${newer === null ? '' : `: answer ${newer}`}`)
  }
  return invite
}

const isUnread = ({ attachments }: SingleMessage): boolean =>
  attachments.some(({ text }) => text?.state === 'pending')

const withoutInvite = (original: SingleMessage) =>
  isUnread(original)
    ? conflict('The attachments are still being read: wait for the event message.invite')
    : badRequest('The message must hold an invitation')

const nameOf = (person: Person | null): string | null => person?.name ?? null

/**
 * Returns the attendee of an event that has the address of this inbox. If the organizer invited a mailing list, the
 * inbox answers under its own address.
 */
function attendeeOf({ attendees }: Invite, inboxAddress: string): Person {
  const own = addressKey(inboxAddress)
  const named = attendees.find(({ address }) => recipientKeys(address).includes(own))
  const address = named === undefined ? null : parseAddress(named.address)
  return { address: address ?? inboxAddress, name: named?.name ?? null }
}

/**
 * Returns the time of a calendar event in the form that the answer to the invitation uses. A time in a zone without an
 * IANA name is written in UTC.
 */
const writtenTime = ({ allDay }: Invite, time: CalendarTime): WrittenTime =>
  allDay || time.zone !== null ? time : { local: time.at.slice(0, 19), zone: null }

/** Returns the RECURRENCE-ID of an invitation, in UTC. The RECURRENCE-ID of an event of whole days is a date. */
function instanceOf({ recurrenceId, allDay }: Invite): WrittenTime | null {
  if (recurrenceId === null) return null
  return { local: recurrenceId.slice(0, allDay ? 10 : 19), zone: null }
}
