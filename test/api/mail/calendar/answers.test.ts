/** Tests how the answers of guests reach the calendar of the organizer. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { calendarOf, untilCalendar } from '../../../support/mail/calendar/calendarPage.ts'
import { sendMail } from '../../../support/mail/outbound.ts'
import {
  type Agent,
  messagePath,
  startTestService,
  type TestService,
} from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService()
})
afterAll(() => service[Symbol.asyncDispose]())

const EVENT = {
  summary: 'Cargo review',
  start: '2030-03-04T10:00:00',
  end: '2030-03-04T10:30:00',
  zone: 'Europe/Berlin',
}
const SERIES = { ...EVENT, rule: 'FREQ=WEEKLY;COUNT=4' }
const SECOND = '2030-03-11T09:00:00Z'

/** Lists the received messages that contain an invitation with the given method, newest first. */
async function invitesOf(agent: Agent, wanted: string): Promise<any[]> {
  const { body } = await agent.get('/v0/messages?labels=received')
  const messages: any[] = await Promise.all(
    body.messages.map(async ({ messageId }: any) => (await agent.get(messagePath(messageId))).body),
  )
  return messages.filter(({ invites }) => invites?.[0]?.method === wanted)
}

/** Waits for an invitation or answer that meets a condition. @returns the message of the invitation. */
const untilInvite = (agent: Agent, method: string, fits: (invite: any) => boolean = () => true) =>
  waitFor(`${method} in ${agent.address}`, async () =>
    (await invitesOf(agent, method)).find(({ invites }) => fits(invites[0])),
  )

const answer = async (agent: Agent, messageId: string, given: string) => {
  const { status } = await agent.post(`${messagePath(messageId)}/rsvp`, { answer: given })
  expect(status).toBe(201)
}

/** Announces a series to a guest. @returns the UID of the series. */
async function announced(host: Agent, guest: Agent): Promise<string> {
  const { event } = await sendMail(host, { to: [guest.address], event: SERIES })
  await untilCalendar(host, 'the series', ({ length }) => length === 4)
  return event.uid
}

test('if a guest changes the answer within a second, the organizer sees the later answer', async () => {
  const [host, guest] = [await service.newAgent(), await service.newAgent()]
  await sendMail(host, { to: [guest.address], event: EVENT })
  const { messageId } = await untilInvite(guest, 'REQUEST')
  await untilCalendar(host, 'the event', ({ length }) => length === 1)
  // DTSTAMP has whole seconds, so both answers begin early in the same second.
  await Bun.sleep(1_020 - (Date.now() % 1_000))
  await answer(guest, messageId, 'accepted')
  await untilInvite(host, 'REPLY')
  await answer(guest, messageId, 'declined')
  const [last] = await waitFor('both answers', async () => {
    const replies = await invitesOf(host, 'REPLY')
    return replies.length === 2 ? replies : undefined
  })
  expect(last.invites[0].effect).toBe('answered')
  const [event] = await calendarOf(host)
  expect(event.attendees[0].state).toBe('declined')
})

test('the organizer sees the answer to a moved instance of a series, until the instance moves again', async () => {
  const [host, guest] = [await service.newAgent(), await service.newAgent()]
  const uid = await announced(host, guest)
  const moved = { ...EVENT, uid, recurrenceId: SECOND, start: '2030-03-12T10:00:00' }
  await sendMail(host, {
    to: [guest.address],
    event: { ...moved, end: '2030-03-12T10:30:00' },
  })
  const { messageId } = await untilInvite(guest, 'REQUEST', (one) => one.recurrenceId !== null)
  await answer(guest, messageId, 'declined')
  const { invites } = await untilInvite(host, 'REPLY')
  expect(invites[0].effect).toBe('answered')
  const stateOf = (events: any[], local: string) =>
    events.find(({ start }) => start.local === local)?.attendees[0].state
  const events = await calendarOf(host)
  expect(stateOf(events, '2030-03-12T10:00:00')).toBe('declined')
  expect(stateOf(events, '2030-03-18T10:00:00')).toBe('needs-action')
  await sendMail(host, {
    to: [guest.address],
    event: { ...moved, start: '2030-03-13T10:00:00', end: '2030-03-13T10:30:00' },
  })
  await untilCalendar(
    host,
    'the second move',
    (all) => stateOf(all, '2030-03-13T10:00:00') === 'needs-action',
  )
})

test('a guest’s answer to a series stays valid for an instance with a changed title, but not for an instance at a changed time', async () => {
  const [host, guest] = [await service.newAgent(), await service.newAgent()]
  const uid = await announced(host, guest)
  const { messageId } = await untilInvite(guest, 'REQUEST')
  await answer(guest, messageId, 'accepted')
  await untilCalendar(host, 'the answers', (events) =>
    events.every(({ attendees }) => attendees[0].state === 'accepted'),
  )
  const day = '2030-03-11'
  const renamed = { ...EVENT, uid, summary: 'Renamed', recurrenceId: SECOND }
  await sendMail(host, {
    to: [guest.address],
    event: { ...renamed, start: `${day}T10:00:00`, end: `${day}T10:30:00` },
  })
  const named = (events: any[], name: string) => events.find(({ summary }) => summary === name)
  const events = await untilCalendar(host, 'the new name', (all) => !!named(all, 'Renamed'))
  expect(named(events, 'Renamed').attendees[0].state).toBe('accepted')
  await sendMail(host, {
    to: [guest.address],
    event: { ...renamed, summary: 'Moved', start: `${day}T12:00:00`, end: `${day}T12:30:00` },
  })
  const later = await untilCalendar(host, 'the move', (all) => !!named(all, 'Moved'))
  expect(named(later, 'Moved').attendees[0].state).toBe('needs-action')
})

test('a guest who is invited to only one instance of a series can answer for this instance', async () => {
  const [host, guest, extra] = [
    ...[await service.newAgent(), await service.newAgent(), await service.newAgent()],
  ]
  const uid = await announced(host!, guest!)
  await sendMail(host!, {
    to: [guest!.address, extra!.address],
    event: {
      ...{ ...EVENT, uid, recurrenceId: SECOND },
      ...{ start: '2030-03-11T11:00:00', end: '2030-03-11T11:30:00' },
    },
  })
  const { messageId } = await untilInvite(extra!, 'REQUEST')
  await answer(extra!, messageId, 'accepted')
  const { invites } = await untilInvite(host!, 'REPLY')
  expect(invites[0].effect).toBe('answered')
  const changed = (await calendarOf(host!)).find(({ attendees }: any) => attendees.length === 2)
  expect(changed.attendees.map(({ state }: any) => state)).toEqual(['needs-action', 'accepted'])
})

test('the invitation of an attendee whose address has a question mark or a percent sign can be read', async () => {
  const host = await service.newAgent()
  const to = ['what?now@example.com', 'a%41b@example.com']
  await sendMail(host, { to, event: EVENT })
  const [event] = await untilCalendar(host, 'the event', ({ length }) => length === 1)
  expect(event.attendees.map(({ address }: any) => address)).toEqual(to)
})
