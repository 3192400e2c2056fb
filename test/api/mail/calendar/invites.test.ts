/**
 * Tests invitations that arrive by mail. The tests check the data that an agent reads about an invitation, and which
 * mails change the agent's calendar.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { calendarFile, type EventLines } from '../../../support/mail/calendar/invitations.ts'
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

let mails = 0

/**
 * Delivers an invitation by mail, and waits until the service has parsed it. @returns the message that contains the
 * invitation.
 */
async function invite(
  agent: Agent,
  event: EventLines,
  sender: { from?: string; envelopeFrom?: string; file?: string } = {},
): Promise<any> {
  const { from = 'ada@example.com', file = calendarFile(event) } = sender
  const envelopeFrom = sender.envelopeFrom ?? from
  const messageId = `<invite-${++mails}@example.com>`
  await service.deliver({
    envelope: { from: envelopeFrom, to: agent.address },
    from,
    to: agent.address,
    subject: 'Invitation',
    text: 'Please come.',
    messageId,
    icalEvent: { method: event.method ?? 'REQUEST', content: file, filename: 'invite.ics' },
  })
  return await waitFor('the invites to be read', async () => {
    const { status, body } = await agent.get(messagePath(messageId))
    if (status !== 200) return undefined
    return body.attachments.every((one: any) => one.text.state !== 'pending') ? body : undefined
  })
}

const reread = async (agent: Agent, message: any) =>
  (await agent.get(messagePath(message.messageId))).body.invites[0]

const rsvp = (agent: Agent, message: any, body: object, headers = {}) =>
  agent.post(`${messagePath(message.messageId)}/rsvp`, body, headers)

const YEAR_2030 = '/v0/calendar?from=2030-03-01&to=2030-04-30'
const calendar = async (agent: Agent, path = YEAR_2030) => (await agent.get(path)).body.events

/** Accepts an invitation and waits until the event is in the calendar. */
async function accept(agent: Agent, message: any) {
  const { status, body } = await rsvp(agent, message, { answer: 'accepted' })
  expect([status, body.deliveryStatus]).toEqual([201, undefined])
  return await waitFor('the event in the calendar', async () => {
    const events = await calendar(agent)
    return events.length > 0 ? events : undefined
  })
}

test('an invitation with a recurrence rule shows times, people, place, link and the next instances', async () => {
  const agent = await service.newAgent()
  const message = await invite(agent, {
    start: 'DTSTART;TZID=W. Europe Standard Time:20300304T100000',
    end: 'DTEND;TZID=W. Europe Standard Time:20300304T103000',
    attendees: [agent.address, 'bob@example.com'],
    lines: [
      'SUMMARY:Cargo\\, weekly',
      'RRULE:FREQ=WEEKLY;COUNT=12',
      'EXDATE;TZID=W. Europe Standard Time:20300311T100000',
      'LOCATION:Room 2',
      'DESCRIPTION:Join at https://zoom.us/j/123 please.',
    ],
  })
  expect(message.invites).toHaveLength(1)
  const [read] = message.invites
  expect(read).toMatchObject({
    method: 'REQUEST',
    uid: 'event-1@example.com',
    sequence: 0,
    recurrenceId: null,
    status: 'confirmed',
    summary: 'Cargo, weekly',
    location: 'Room 2',
    meetingLink: 'https://zoom.us/j/123',
    allDay: false,
    start: { at: '2030-03-04T09:00:00.000Z', local: '2030-03-04T10:00:00', zone: 'Europe/Berlin' },
    organizer: { address: 'ada@example.com', name: 'Ada' },
    effect: 'new',
    state: 'current',
    answer: 'needs-action',
  })
  expect(read.attendees[1]).toEqual({
    address: 'bob@example.com',
    name: null,
    state: 'needs-action',
    role: 'required',
  })
  expect(read.recurrence.rule).toBe('FREQ=WEEKLY;COUNT=12')
  // Daylight saving time begins on 31 March 2030, but the meeting stays at ten o'clock local time, so its time in UTC
  // changes.
  expect(read.recurrence.next.slice(0, 4)).toEqual([
    '2030-03-04T09:00:00.000Z',
    '2030-03-18T09:00:00.000Z',
    '2030-03-25T09:00:00.000Z',
    '2030-04-01T08:00:00.000Z',
  ])
  expect(read.recurrence.next).toHaveLength(10)
  expect(await calendar(agent)).toEqual([])
})

test('an event with a DURATION lasts its exact hours and its whole local days, also when daylight saving time begins or ends', async () => {
  const agent = await service.newAgent()
  const ends = []
  for (const [start, duration] of [
    ['20300330T220000', 'PT8H'],
    ['20301026T220000', 'PT8H'],
    ['20300330T220000', 'P1D'],
    ['20300330T220000', 'P1DT1H'],
  ]) {
    const message = await invite(agent, {
      uid: `${start}-${duration}@example.com`,
      start: `DTSTART;TZID=Europe/Berlin:${start}`,
      end: `DURATION:${duration}`,
    })
    ends.push(message.invites[0].end)
  }
  expect(ends).toEqual([
    { at: '2030-03-31T05:00:00.000Z', local: '2030-03-31T07:00:00', zone: 'Europe/Berlin' },
    { at: '2030-10-27T04:00:00.000Z', local: '2030-10-27T05:00:00', zone: 'Europe/Berlin' },
    { at: '2030-03-31T20:00:00.000Z', local: '2030-03-31T22:00:00', zone: 'Europe/Berlin' },
    { at: '2030-03-31T21:00:00.000Z', local: '2030-03-31T23:00:00', zone: 'Europe/Berlin' },
  ])
})

test('the service adds an accepted event to the calendar, and the answer reaches the organizer', async () => {
  const agent = await service.newAgent()
  const organizer = await service.newAgent()
  const message = await invite(agent, {
    uid: 'accepted@example.com',
    organizer: organizer.address,
    attendees: [agent.address],
  })
  const [event] = await accept(agent, message)
  expect(event).toMatchObject({
    uid: 'accepted@example.com',
    summary: 'Cargo review',
    answer: 'accepted',
    own: false,
    messageId: message.messageId,
    start: { at: '2030-03-04T09:00:00.000Z' },
    end: { at: '2030-03-04T09:30:00.000Z' },
  })
  expect(await reread(agent, message)).toMatchObject({ state: 'current', answer: 'accepted' })
  const answer = await waitFor('the answer at the organizer', async () => {
    const { body } = await organizer.get('/v0/messages')
    if (body.count === 0) return undefined
    const { body: whole } = await organizer.get(messagePath(body.messages[0].messageId))
    return whole.invites === undefined ? undefined : whole
  })
  expect(answer.subject).toBe('Accepted: Cargo review')
  expect(answer.invites[0]).toMatchObject({
    method: 'REPLY',
    uid: 'accepted@example.com',
    attendees: [{ address: agent.address, state: 'accepted' }],
    // The organizer's inbox has not announced this event, so the answer counts only as a proposal (effect `proposal`).
    effect: 'proposal',
  })
  await rsvp(agent, message, { answer: 'declined', comment: 'Alas' })
  await waitFor('the event to leave', async () => (await calendar(agent)).length === 0)
})

/**
 * Defines a time zone that is defined only in the calendar file. The local time of this time zone is two hours ahead of
 * UTC.
 */
const OUR_OFFICE = [
  'BEGIN:VTIMEZONE',
  'TZID:Our office',
  'BEGIN:STANDARD',
  'DTSTART:19700101T000000',
  'TZOFFSETFROM:+0200',
  'TZOFFSETTO:+0200',
  'END:STANDARD',
  'END:VTIMEZONE',
  'BEGIN:VEVENT',
].join('\r\n')

test('if a calendar file defines the event’s time zone itself, the answer to the invitation names the event’s exact time', async () => {
  const agent = await service.newAgent()
  const organizer = await service.newAgent()
  const event = {
    uid: 'office@example.com',
    organizer: organizer.address,
    start: 'DTSTART;TZID=Our office:20300304T110000',
    end: 'DTEND;TZID=Our office:20300304T113000',
  }
  const file = calendarFile(event).replace('BEGIN:VEVENT', OUR_OFFICE)
  const message = await invite(agent, event, { file })
  expect(message.invites[0].start).toMatchObject({ at: '2030-03-04T09:00:00.000Z', zone: null })
  expect((await rsvp(agent, message, { answer: 'accepted' })).status).toBe(201)
  const answer = await waitFor('the answer at the organizer', async () => {
    const { body } = await organizer.get('/v0/messages')
    if (body.count === 0) return undefined
    const { body: whole } = await organizer.get(messagePath(body.messages[0].messageId))
    return whole.invites === undefined ? undefined : whole
  })
  expect(answer.invites[0]).toMatchObject({
    start: { at: '2030-03-04T09:00:00.000Z' },
    end: { at: '2030-03-04T09:30:00.000Z' },
  })
})

test('a message with an event outside of the years 1 to 9999 can be read, but shows no invitation', async () => {
  const agent = await service.newAgent()
  const file = calendarFile({ method: 'COUNTER', lines: ['RECURRENCE-ID:00000101T000000Z'] })
  const message = await invite(agent, { method: 'COUNTER' }, { file })
  expect(message.invites).toBeUndefined()
})

test('the service applies updates and cancellations of an event in the order of SEQUENCE, not in the order of arrival', async () => {
  const agent = await service.newAgent()
  const uid = 'order@example.com'
  const first = await invite(agent, { uid })
  await accept(agent, first)
  const third = await invite(agent, { uid, sequence: 2, lines: ['SUMMARY:Third'] })
  expect(third.invites[0].effect).toBe('updated')
  const second = await invite(agent, { uid, sequence: 1, lines: ['SUMMARY:Second'] })
  expect(second.invites[0]).toMatchObject({ effect: 'outdated', state: 'outdated' })
  // The update does not change the time of the event, so the agent's answer stays valid.
  expect((await calendar(agent))[0]).toMatchObject({ summary: 'Third', answer: 'accepted' })
  expect(await reread(agent, first)).toMatchObject({ state: 'outdated' })
  const late = await rsvp(agent, first, { answer: 'declined' })
  expect([late.status, late.body.message]).toEqual([
    409,
    `The event was changed: answer ${third.messageId}`,
  ])
  const moved = await invite(agent, {
    uid,
    sequence: 3,
    start: 'DTSTART:20300305T090000Z',
    end: 'DTEND:20300305T093000Z',
  })
  expect(await reread(agent, moved)).toMatchObject({ effect: 'updated', answer: 'needs-action' })
  expect(await calendar(agent)).toEqual([])
  const cancelled = await invite(agent, { uid, sequence: 4, method: 'CANCEL' })
  expect(cancelled.invites[0]).toMatchObject({ effect: 'cancelled', state: 'cancelled' })
  expect((await rsvp(agent, moved, { answer: 'accepted' })).status).toBe(409)
})

test('if a cancellation arrives before its invitation, the event still becomes cancelled', async () => {
  const agent = await service.newAgent()
  const uid = 'early@example.com'
  await invite(agent, { uid, sequence: 1, method: 'CANCEL' })
  const late = await invite(agent, { uid, sequence: 0 })
  expect(late.invites[0].effect).toBe('outdated')
  expect((await rsvp(agent, late, { answer: 'accepted' })).status).toBe(409)
})

test('if somebody other than the organizer sends an update or a cancellation, it is shown only as a proposal and changes nothing', async () => {
  const agent = await service.newAgent()
  const uid = 'forged@example.com'
  const real = await invite(agent, { uid })
  await accept(agent, real)
  const forgeries = [
    // This mail is forged: its sender is not authenticated and uses the organizer's address.
    { from: 'ada@example.com', envelopeFrom: 'mallory@evil.test' },
    // The sender of this mail is authenticated but is not the organizer, so the mail must not change the event.
    { from: 'mallory@evil.test' },
  ]
  for (const sender of forgeries) {
    for (const method of ['REQUEST', 'CANCEL', 'ADD', 'COUNTER']) {
      const forged = await invite(
        agent,
        { uid, sequence: 9, method, lines: ['SUMMARY:Pay me'], start: 'DTSTART:20300306T090000Z' },
        sender,
      )
      expect([method, forged.invites[0].effect]).toEqual([method, 'proposal'])
      expect((await rsvp(agent, forged, { answer: 'accepted' })).status).toBeOneOf([400, 409])
    }
  }
  expect(await calendar(agent)).toMatchObject([{ summary: 'Cargo review', answer: 'accepted' }])
  // An event of another organizer with the same UID is a separate event.
  const other = await invite(agent, { uid, organizer: 'mallory@evil.test' }, forgeries[1])
  expect(other.invites[0].effect).toBe('new')
  expect(await reread(agent, real)).toMatchObject({ state: 'current', answer: 'accepted' })
})

test('if a stranger sent an invitation with the same UID first, the real organizer’s later invitation replaces it', async () => {
  const agent = await service.newAgent()
  const uid = 'first@example.com'
  const forged = await invite(
    agent,
    { uid, sequence: 1_000, stamp: '20990101T000000Z', lines: ['SUMMARY:Pay me'] },
    { envelopeFrom: 'mallory@evil.test' },
  )
  expect(forged.invites[0].effect).toBe('new')
  const real = await invite(agent, { uid })
  expect(real.invites[0]).toMatchObject({ effect: 'updated', state: 'current' })
})

test('a change moves or cancels one instance of a recurring event and leaves the other instances unchanged', async () => {
  const agent = await service.newAgent()
  const uid = 'series@example.com'
  const series = await invite(agent, { uid, lines: ['RRULE:FREQ=WEEKLY;COUNT=4'] })
  await accept(agent, series)
  const starts = async () => (await calendar(agent)).map(({ start }: any) => start.at)
  expect(
    await waitFor('the series', async () => {
      const found = await starts()
      return found.length === 4 ? found : undefined
    }),
  ).toEqual([
    '2030-03-04T09:00:00.000Z',
    '2030-03-11T09:00:00.000Z',
    '2030-03-18T09:00:00.000Z',
    '2030-03-25T09:00:00.000Z',
  ])
  await invite(agent, {
    uid,
    sequence: 1,
    method: 'CANCEL',
    lines: ['RECURRENCE-ID:20300311T090000Z'],
    start: 'DTSTART:20300311T090000Z',
  })
  const moved = await invite(agent, {
    uid,
    sequence: 1,
    lines: ['RECURRENCE-ID:20300318T090000Z'],
    start: 'DTSTART:20300319T150000Z',
    end: 'DTEND:20300319T160000Z',
  })
  expect(moved.invites[0]).toMatchObject({ recurrenceId: '2030-03-18T09:00:00.000Z' })
  // The agent's answer referred to the old time of the moved instance, so the calendar does not yet list the instance
  // at its new time.
  expect(await starts()).toEqual(['2030-03-04T09:00:00.000Z', '2030-03-25T09:00:00.000Z'])
  await rsvp(agent, moved, { answer: 'tentative' })
  await waitFor('the moved instance', async () =>
    (await starts()).includes('2030-03-19T15:00:00.000Z'),
  )
})

test('only the organizer can change an instance of a recurring event, even if the service has not received the event itself yet', async () => {
  const agent = await service.newAgent()
  const uid = 'guarded@example.com'
  const forged = {
    uid,
    sequence: 9,
    lines: ['SUMMARY:Pay me', 'RECURRENCE-ID:20300311T090000Z'],
    start: 'DTSTART:20300311T090000Z',
    end: 'DTEND:20300311T093000Z',
  }
  const stranger = { envelopeFrom: 'mallory@evil.test' }
  await invite(agent, forged, stranger)
  const series = await invite(agent, { uid, lines: ['RRULE:FREQ=WEEKLY;COUNT=2'] })
  await accept(agent, series)
  const late = await invite(agent, { ...forged, sequence: 10 }, stranger)
  expect(late.invites[0].effect).toBe('proposal')
  const events = await waitFor('both instances', async () => {
    const found = await calendar(agent)
    return found.length === 2 ? found : undefined
  })
  expect(events.map(({ summary }: any) => summary)).toEqual(['Cargo review', 'Cargo review'])
})

test('if the service knows that a series was cancelled, an instance of the series that arrives later is also cancelled', async () => {
  const agent = await service.newAgent()
  const uid = 'over@example.com'
  const moved = {
    uid,
    sequence: 1,
    lines: ['RECURRENCE-ID:20300311T090000Z'],
    start: 'DTSTART:20300311T090000Z',
    end: 'DTEND:20300311T093000Z',
  }
  const series = await invite(agent, { uid, lines: ['RRULE:FREQ=WEEKLY;COUNT=2'] })
  await accept(agent, series)
  await invite(agent, { uid, sequence: 2, method: 'CANCEL' })
  const late = await invite(agent, moved)
  expect(late.invites[0].effect).toBe('outdated')
  expect(await calendar(agent)).toEqual([])

  // The cancellation of a series that the service does not know also cancels an instance of the series that arrived
  // earlier.
  const alone = { ...moved, uid: 'alone@example.com' }
  const instance = await invite(agent, alone)
  await accept(agent, instance)
  await invite(agent, { uid: alone.uid, sequence: 2, method: 'CANCEL' })
  expect(await calendar(agent)).toEqual([])
})

test('if the organizer invites again to a cancelled series, the calendar shows all its instances, also those that were changed before', async () => {
  const agent = await service.newAgent()
  const uid = 'again@example.com'
  const lines = ['RRULE:FREQ=WEEKLY;COUNT=2']
  await accept(agent, await invite(agent, { uid, lines }))
  await invite(agent, {
    uid,
    sequence: 1,
    lines: ['RECURRENCE-ID:20300311T090000Z'],
    start: 'DTSTART:20300311T150000Z',
    end: 'DTEND:20300311T153000Z',
  })
  await invite(agent, { uid, sequence: 2, method: 'CANCEL', lines })
  expect(await calendar(agent)).toEqual([])
  await invite(agent, { uid, sequence: 3, lines })
  const events = await waitFor('both instances', async () => {
    const found = await calendar(agent)
    return found.length === 2 ? found : undefined
  })
  expect(events.map(({ start }: any) => start.at)).toEqual([
    '2030-03-04T09:00:00.000Z',
    '2030-03-11T09:00:00.000Z',
  ])
})

test('the event message.invite contains the calendar invitation of the message, and a client can wait for a message with an invitation', async () => {
  const agent = await service.newAgent()
  const after = new Date().toISOString()
  const message = await invite(agent, { uid: 'told@example.com' })
  const waited = await agent.get(`/v0/messages/wait?has=invite&timeout=5&after=${after}`)
  expect(waited.body.messageId).toBe(message.messageId)
  const { rows } = await service.database.pool.query(
    `select data from events where project_id = $1 and type = 'message.invite'`,
    [agent.project.id],
  )
  expect(rows).toHaveLength(1)
  expect(rows[0].data.invites).toEqual([
    { uid: 'told@example.com', recurrenceId: null, method: 'REQUEST', effect: 'new' },
  ])
})

test('after invalid calendar files and endless recurrence rules, the service can still read other invitations', async () => {
  const agent = await service.newAgent()
  const broken = await invite(
    agent,
    {},
    { file: 'BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nno colon\r\n' },
  )
  expect(broken.invites).toBeUndefined()
  expect(broken.attachments[0].text).toMatchObject({ state: 'failed', reason: 'malformed' })
  const never = await invite(agent, {
    uid: 'never@example.com',
    lines: ['RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30'],
  })
  const busy = await invite(agent, {
    uid: 'busy@example.com',
    start: 'DTSTART:19700101T000000Z',
    end: 'DTEND:19700101T000001Z',
    lines: ['RRULE:FREQ=SECONDLY'],
  })
  for (const message of [never, busy]) {
    const { state, reason } = message.attachments[0].text
    expect([state === 'ready' || reason === 'too_slow', message.messageId]).toEqual([
      true,
      message.messageId,
    ])
  }
  const good = await invite(agent, { uid: 'good@example.com' })
  expect(good.invites[0].effect).toBe('new')
})

test('an answer is accepted only for a message with an invitation, and an invalid answer gets an error that names the field', async () => {
  const agent = await service.newAgent()
  const plain = await invite(agent, { method: 'PUBLISH', uid: 'published@example.com' })
  expect((await rsvp(agent, plain, { answer: 'accepted' })).body.message).toBe(
    'The message must hold an invitation',
  )
  expect((await rsvp(agent, plain, { answer: 'maybe' })).body.message).toContain(
    'answer must be one of accepted, declined, tentative',
  )
  const unorganized = await invite(agent, { uid: 'nobody@example.com', organizer: '' })
  expect((await rsvp(agent, unorganized, { answer: 'accepted' })).body.message).toBe(
    'The invitation names no organizer to answer to',
  )
  expect(
    (await rsvp(agent, { messageId: '<none@example.com>' }, { answer: 'accepted' })).status,
  ).toBe(404)
  const two = calendarFile({ uid: 'one@example.com' }).replace(
    'END:VCALENDAR',
    `${/BEGIN:VEVENT.*END:VEVENT/s.exec(calendarFile({ uid: 'two@example.com' }))![0]}\r\nEND:VCALENDAR`,
  )
  const both = await invite(agent, {}, { file: two })
  expect((await rsvp(agent, both, { answer: 'accepted' })).body.message).toBe(
    'uid must name the event: the message invites to several',
  )
  const other = await rsvp(agent, both, { answer: 'accepted', uid: 'three@example.com' })
  expect([other.status, other.body.message]).toEqual([
    400,
    'uid must be that of an invitation of the message',
  ])
  expect((await rsvp(agent, both, { answer: 'accepted', uid: 'two@example.com' })).status).toBe(201)
  const lines = ['STATUS:CANCELLED']
  const dropped = await invite(agent, { uid: 'dropped@example.com', lines })
  const late = await rsvp(agent, dropped, { answer: 'accepted' })
  expect([late.status, late.body.message]).toEqual([409, 'The event is cancelled'])
  const wrong = [
    '/v0/calendar?to=2020-03-01',
    '/v0/calendar?from=2030-03-01&to=2030-03-01',
    '/v0/calendar?from=2030-03-01&to=2032-03-01',
    '/v0/calendar?from=soon&to=2030-03-01',
  ]
  for (const path of wrong) expect([path, (await agent.get(path)).status]).toEqual([path, 400])
})
