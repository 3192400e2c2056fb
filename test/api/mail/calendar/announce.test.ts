/**
 * Tests calendar events that an agent announces by mail: guests, their answers, changes and cancellations.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { transaction } from '../../../../sql/db.ts'
import { endUnsent, lockUnsent } from '../../../../sql/mail/outbound/unsentMails.ts'
import { startMaintenance } from '../../../../workers/operations/maintenance.ts'
import { changingBefore } from '../../../support/database/beforeStatement.ts'
import { silentLog } from '../../../support/logs.ts'
import {
  calendarOf,
  untilCalendar,
  YEAR_2030,
} from '../../../support/mail/calendar/calendarPage.ts'
import { heldAgent, heldPath, requestOf } from '../../../support/mail/held.ts'
import { sendMail } from '../../../support/mail/outbound.ts'
import { callTool, connectMcp, textOf } from '../../../support/mcp.ts'
import {
  type Agent,
  messagePath,
  startTestService,
  type TestService,
} from '../../../support/service.ts'
import { blocked } from '../../../support/till/tillRows.ts'
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
  location: 'Room 2; first floor, left',
}
/** Waits until the first invitation in the newest message of an inbox meets the given condition. */
const untilInvite = (agent: Agent, wanted: string, fits: (invite: any) => boolean) =>
  waitFor(wanted, async () => {
    const { body } = await agent.get('/v0/messages?labels=received')
    for (const { messageId } of body.messages) {
      const { body: message } = await agent.get(messagePath(messageId))
      if (message.invites !== undefined && fits(message.invites[0])) return message
    }
    return undefined
  })

test('guests get and answer the invitation, and the organizer sees their answers', async () => {
  const [host, guest] = [await service.newAgent(), await service.newAgent()]
  const sent = await sendMail(host, { to: [guest.address], event: EVENT })
  expect(sent.event).toMatchObject({ sequence: 0 })
  const { uid } = sent.event
  const invited = await untilInvite(guest, 'the invitation', () => true)
  expect(invited.invites[0]).toMatchObject({
    method: 'REQUEST',
    uid,
    summary: 'Cargo review',
    start: { at: '2030-03-04T09:00:00.000Z', local: '2030-03-04T10:00:00', zone: 'Europe/Berlin' },
    location: 'Room 2; first floor, left',
    organizer: { address: host.address },
    attendees: [{ address: guest.address, state: 'needs-action', role: 'required' }],
    effect: 'new',
  })
  await guest.post(`${messagePath(invited.messageId)}/rsvp`, { answer: 'accepted' })
  const [event] = await untilCalendar(
    host,
    'the answer',
    ([one]) => one?.attendees[0].state === 'accepted',
  )
  expect(event).toMatchObject({ uid, own: true, answer: 'accepted' })
  await untilCalendar(guest, 'the event of the guest', ([one]) => one?.uid === uid)

  const moved = { ...EVENT, uid, start: '2030-03-05T10:00:00', end: '2030-03-05T11:00:00' }
  const change = await sendMail(host, { to: [guest.address], event: moved })
  expect(change.event).toEqual({ uid, sequence: 1 })
  await untilInvite(guest, 'the change', ({ sequence }) => sequence === 1)
  // The guest has not accepted the new time of the event, so the guest's calendar is empty.
  expect(await calendarOf(guest)).toEqual([])
  const [atHost] = await untilCalendar(
    host,
    'the new time',
    ([one]) => one?.start.local === '2030-03-05T10:00:00',
  )
  expect(atHost.attendees[0].state).toBe('needs-action')

  await sendMail(host, { to: [guest.address], event: { uid, cancel: true } })
  const cancelled = await untilInvite(
    guest,
    'the cancellation',
    ({ method }) => method === 'CANCEL',
  )
  expect(cancelled.invites[0]).toMatchObject({ effect: 'cancelled', summary: 'Cargo review' })
  await untilCalendar(host, 'an empty calendar', (events) => events.length === 0)
})

test('an agent announces a recurring event with its time zone, and cancels one instance of the series', async () => {
  const [host, guest] = [await service.newAgent(), await service.newAgent()]
  const weekly = {
    ...EVENT,
    start: '2030-03-18T10:00:00',
    end: '2030-03-18T10:30:00',
    rule: 'FREQ=WEEKLY;COUNT=4',
  }
  const sent = await sendMail(host, { to: [guest.address], event: weekly })
  const { uid } = sent.event
  const starts = (events: any[]) => events.map(({ start }) => start.at)
  const events = await untilCalendar(host, 'the series', ({ length }) => length === 4)
  // In the event's time zone, daylight saving time begins on 31 March 2030, so later instances are one hour earlier in
  // UTC.
  expect(starts(events)).toEqual([
    '2030-03-18T09:00:00.000Z',
    '2030-03-25T09:00:00.000Z',
    '2030-04-01T08:00:00.000Z',
    '2030-04-08T08:00:00.000Z',
  ])
  expect(events[3]).toMatchObject({ recurs: true, recurrenceId: '2030-04-08T08:00:00.000Z' })
  const first = await host.get(`${YEAR_2030}&limit=3`)
  const second = await host.get(`${YEAR_2030}&limit=3&pageToken=${first.body.nextPageToken}`)
  expect([...first.body.events, ...second.body.events]).toEqual(events)
  await sendMail(host, {
    to: [guest.address],
    event: { uid, cancel: true, recurrenceId: '2030-04-01T08:00:00Z' },
  })
  const left = await untilCalendar(host, 'three instances', ({ length }) => length === 3)
  expect(starts(left)).not.toContain('2030-04-01T08:00:00.000Z')
  const cancelled = await untilInvite(
    guest,
    'the cancellation',
    ({ method }) => method === 'CANCEL',
  )
  expect(cancelled.invites[0].recurrenceId).toBe('2030-04-01T08:00:00.000Z')
})

test('an agent announces an event that lasts whole days, and an event whose start and end have a UTC offset', async () => {
  const host = await service.newAgent()
  await sendMail(host, { event: { start: '2030-05-01', end: '2030-05-03' }, subject: 'Fair' })
  await sendMail(host, {
    event: { start: '2030-06-01T09:00:00+02:00', end: '2030-06-01T10:00:00+02:00' },
  })
  const [days, time] = await untilCalendar(host, 'both events', ({ length }) => length === 2)
  expect(days).toMatchObject({
    summary: 'Fair',
    allDay: true,
    start: { local: '2030-05-01', zone: null },
    end: { local: '2030-05-03', zone: null },
  })
  expect(time).toMatchObject({ allDay: false, start: { at: '2030-06-01T07:00:00.000Z' } })
})

test('a mail contains the invitation both as an alternative to the text and as a file, so that every mail program shows it', async () => {
  const [host, guest] = [await service.newAgent(), await service.newAgent()]
  const { messageId } = await sendMail(host, {
    to: [guest.address],
    event: EVENT,
    html: '<p>Come</p>',
  })
  await untilInvite(guest, 'the invitation', () => true)
  const raw = await fetch(`${service.url}${messagePath(messageId)}/raw`, {
    headers: { authorization: `Bearer ${host.key}` },
  })
  const source = await raw.text()
  expect(source).toMatch(/Content-Type: multipart\/alternative/)
  expect(source).toMatch(/Content-Type: text\/calendar; charset=utf-8; method=REQUEST/)
  expect(source).toMatch(/filename=invite\.ics/)
})

test('an event appears in the calendar as soon as the mail with the event is queued for sending, and not before', async () => {
  const agent = await heldAgent(service)
  const guest = await service.newAgent()
  const sent = await sendMail(agent, { to: [guest.address], event: EVENT })
  expect(sent.deliveryStatus).toBe('held')
  const request = await requestOf(service, agent, sent.messageId)
  // While the first mail with an invitation waits for approval, another agent sends a mail with an event, and the
  // worker adds this event to the calendar.
  const other = await service.newAgent()
  await sendMail(other, { event: EVENT })
  await untilCalendar(other, 'the event of another', ({ length }) => length === 1)
  expect(await calendarOf(agent)).toEqual([])
  const path = heldPath(agent, request.approvalId)
  const { status } = await service.platform.post(`${path}/approve`, { sha256: request.sha256 })
  expect(status).toBe(200)
  await untilCalendar(agent, 'the approved event', ({ length }) => length === 1)

  const waiting = await sendMail(agent, { to: [guest.address], event: EVENT })
  const rejected = await requestOf(service, agent, waiting.messageId)
  await service.platform.post(`${heldPath(agent, rejected.approvalId)}/reject`, { reason: 'No' })
  const soon = await sendMail(other, {
    event: EVENT,
    sendAt: new Date(Date.now() + 2_000).toISOString(),
  })
  expect(soon.deliveryStatus).toBe('scheduled')
  expect(await calendarOf(other)).toHaveLength(1)
  await untilCalendar(other, 'the scheduled event', ({ length }) => length === 2)
  expect(await calendarOf(agent)).toHaveLength(1)
})

async function decide(agent: Agent, messageId: string, decision: 'approve' | 'reject') {
  const { approvalId, sha256 } = await requestOf(service, agent, messageId)
  const body = decision === 'approve' ? { sha256 } : { reason: 'No' }
  return await service.platform.post(`${heldPath(agent, approvalId)}/${decision}`, body)
}

test.each(['rejects', 'withdraws', 'deletes'])(
  'if somebody %s the mail with a change of an event, the next mail about the event does not contain the change',
  async (deed) => {
    const agent = await heldAgent(service)
    const guest = await service.newAgent()
    const first = await sendMail(agent, { to: [guest.address], event: EVENT })
    await decide(agent, first.messageId, 'approve')
    await untilCalendar(agent, 'the approved event', ({ length }) => length === 1)
    const { uid } = first.event
    const event = { ...EVENT, uid, summary: 'Another summary' }
    const second = await sendMail(agent, { to: [guest.address], event })
    expect(second.event.sequence).toBe(1)
    if (deed === 'rejects') await decide(agent, second.messageId, 'reject')
    else if (deed === 'deletes') await agent.delete(messagePath(second.messageId))
    else await agent.post(`${messagePath(second.messageId)}/cancel`, {})
    const third = await sendMail(agent, { to: [guest.address], event: { uid, cancel: true } })
    expect(third.event.sequence).toBe(1)
    await decide(agent, third.messageId, 'approve')
    const cancelled = await untilInvite(guest, 'the end', ({ method }) => method === 'CANCEL')
    expect(cancelled.invites[0]).toMatchObject({ uid, summary: 'Cargo review' })
  },
)

/**
 * Announces an event, changes its summary twice, and returns its uid and both changes, which wait for the owner's
 * approval.
 */
async function changeTwice(agent: Agent, guest: Agent) {
  const first = await sendMail(agent, { to: [guest.address], event: EVENT })
  await decide(agent, first.messageId, 'approve')
  await untilCalendar(agent, 'the approved event', ({ length }) => length === 1)
  const { uid } = first.event
  const changes = []
  for (const summary of ['Second', 'Third']) {
    changes.push(await sendMail(agent, { to: [guest.address], event: { ...EVENT, uid, summary } }))
  }
  return { uid, changes: changes.map(({ messageId }): string => messageId) }
}

async function expectFirstSummary(agent: Agent, guest: Agent, uid: string) {
  const last = await sendMail(agent, { to: [guest.address], event: { uid, cancel: true } })
  await decide(agent, last.messageId, 'approve')
  const cancelled = await untilInvite(guest, 'the end', ({ method }) => method === 'CANCEL')
  expect(cancelled.invites[0]).toMatchObject({ uid, summary: EVENT.summary })
}

test('if the owner rejects two changes of an event one after the other, the next mail about the event contains neither of the two changes', async () => {
  const agent = await heldAgent(service)
  const guest = await service.newAgent()
  const { uid, changes } = await changeTwice(agent, guest)
  for (const messageId of changes) await decide(agent, messageId, 'reject')
  await expectFirstSummary(agent, guest, uid)
})

test('if two changes of an event are rejected at the same time, the next mail about the event contains neither of the two changes', async () => {
  const agent = await heldAgent(service)
  const guest = await service.newAgent()
  const { uid, changes } = await changeTwice(agent, guest)
  const [older, newer] = changes as [string, string]
  const { pool } = service.database
  await waitFor('the announcements of both changes', async () => {
    const { rows } = await pool.query(
      `select from approvals where project_id = $1 and state = 'waiting' and announced_at is null`,
      [agent.project.id],
    )
    return rows.length === 0
  })
  let rejected: Promise<unknown> = Promise.resolve()
  await transaction(pool, async (db) => {
    const { messageRow } = (await lockUnsent(db, agent.project.id, newer))!
    await endUnsent(db, messageRow, { status: 'rejected', error: 'rejected' })
    rejected = decide(agent, older, 'reject')
    await blocked(pool, 1)
  })
  await rejected
  await expectFirstSummary(agent, guest, uid)
})

test('a mail with an event that is to be sent tomorrow does not delay the invitations that are due now', async () => {
  await using idle = await startTestService({ smtp: false, workers: false })
  const host = await idle.newAgent()
  const tomorrow = new Date(Date.now() + 24 * 3_600_000).toISOString()
  await sendMail(host, { event: EVENT })
  await sendMail(host, { event: EVENT, sendAt: tomorrow })
  const { rows } = await idle.database.pool.query(
    `select run_at <= clock_timestamp() as due from graphile_worker.jobs where key = 'read_attachments:' || $1`,
    [host.project.id],
  )
  expect(rows).toEqual([{ due: true }])
})

test('a repeated call with the same Idempotency-Key announces only one event', async () => {
  const host = await service.newAgent()
  const mail = { to: ['ada@example.com'], subject: 'S', text: 'T', event: EVENT }
  const key = { 'idempotency-key': 'once' }
  const first = await host.post('/v0/messages/send', mail, key)
  const again = await host.post('/v0/messages/send', mail, key)
  expect(again.body).toEqual(first.body)
  await untilCalendar(host, 'the event', ({ length }) => length > 0)
  expect(await calendarOf(host)).toHaveLength(1)
})

test('an invalid event is refused with the name of its field', async () => {
  const host = await service.newAgent()
  const { uid } = (await sendMail(host, { event: EVENT })).event
  const wrong: [object, string][] = [
    [{ start: EVENT.start, end: EVENT.end }, 'event.start must be a date, an ISO 8601 time'],
    [{ ...EVENT, zone: 'Mars/Olympus' }, 'event.zone must be an IANA time zone'],
    [{ ...EVENT, end: EVENT.start }, 'event.end must be after event.start'],
    [{ ...EVENT, end: '2030-03-05' }, 'event.end must be a date exactly where'],
    [{ ...EVENT, start: '2030-02-30', end: '2030-03-05' }, 'event.start must be a date'],
    [{ ...EVENT, rule: 'FREQ=SECONDLY' }, 'event.rule must be a recurrence rule'],
    [{ ...EVENT, rule: 'FREQ=DAILY\r\nATTACH:file:///etc' }, 'event.rule must be one line'],
    [{ ...EVENT, summary: 'A\nB' }, 'event.summary must be one line'],
    [{ ...EVENT, url: 'http://example.com' }, 'event.url must be an https URL'],
    [{ ...EVENT, recurrenceId: '2030-03-04T09:00:00Z' }, 'event.uid must name the event'],
    [{ ...EVENT, uid, recurrenceId: '2030-03-04T09:00:00Z' }, 'the event does not recur'],
    [{ cancel: true }, 'event.uid must name the event'],
    [{ uid: 'unknown@example.com', cancel: true }, 'Event not found'],
    [{ summary: 'No time' }, 'event.start is required'],
  ]
  for (const [event, message] of wrong) {
    const mail = { to: ['ada@example.com'], subject: 'S', text: 'T', event }
    const { status, body } = await host.post('/v0/messages/send', mail)
    expect([status >= 400 && status < 500, body.message]).toEqual([
      true,
      expect.stringContaining(message),
    ])
  }
})

test('if a mail with an event is refused because of another field, the event stays unchanged', async () => {
  const host = await service.newAgent()
  const { uid } = (await sendMail(host, { event: EVENT })).event
  const mail = { to: ['ada@example.com'], subject: 'S', text: 'T', event: { ...EVENT, uid } }
  const wrong = { filename: 'a', contentType: 'no type', content: '' }
  for (const more of [{ attachments: [wrong] }, { unsubscribe: {} }, { headers: { From: 'x' } }]) {
    expect((await host.post('/v0/messages/send', { ...mail, ...more })).status).toBe(400)
  }
  expect((await sendMail(host, mail)).event).toEqual({ uid, sequence: 1 })
})

test('if a mail with an event is refused because of its recipients or a limit, the event is neither changed nor created', async () => {
  const host = await service.newAgent()
  const { pool } = service.database
  const series = { ...EVENT, rule: 'FREQ=WEEKLY;COUNT=5' }
  const { uid } = (await sendMail(host, { event: series })).event
  const ownEvents = async () =>
    (
      await pool.query('select sequence, event from own_events where project_id = $1', [
        host.project.id,
      ])
    ).rows
  const before = await ownEvents()
  const mail = { to: ['ada@example.com'], subject: 'S', text: 'T' }
  const refusedAs = async (status: number) => {
    for (const event of [{ ...EVENT, uid }, { uid, cancel: true }, EVENT]) {
      expect((await host.post('/v0/messages/send', { ...mail, event })).status).toBe(status)
      expect(await ownEvents()).toEqual(before)
    }
  }
  const wrongInstance = { ...EVENT, uid, recurrenceId: 'never' }
  expect((await host.post('/v0/messages/send', { ...mail, event: wrongInstance })).status).toBe(400)
  expect(await ownEvents()).toEqual(before)
  await pool.query('update send_quotas set used = allowed where project_id = $1', [host.project.id])
  await refusedAs(429)
  await host.post('/v0/email-rules', { type: 'BLOCK', scope: 'SEND', value: 'ada@example.com' })
  await refusedAs(422)
})

test('if one event is changed in parallel, only the accepted changes raise its sequence number', async () => {
  const host = await service.newAgent()
  const { pool } = service.database
  const { uid } = (await sendMail(host, { event: EVENT })).event
  const left = 4
  await pool.query('update send_quotas set used = allowed - $2 where project_id = $1', [
    ...[host.project.id, left],
  ])
  const changes = Array.from({ length: 12 }, (_, n) => ({ ...EVENT, uid, summary: `Summary ${n}` }))
  const answers = await Promise.all(
    changes.map((event) =>
      host.post('/v0/messages/send', { to: ['ada@example.com'], subject: 'S', text: 'T', event }),
    ),
  )
  expect(answers.map(({ status }) => status).sort()).toEqual([
    ...Array.from({ length: left }, () => 201),
    ...Array.from({ length: 12 - left }, () => 429),
  ])
  const accepted = answers.filter(({ status }) => status === 201).map(({ body }) => body.event)
  expect(accepted.map(({ sequence }) => sequence).sort()).toEqual([1, 2, 3, 4])
  const { rows } = await pool.query(
    `select sequence, event ->> 'summary' as summary from own_events where project_id = $1`,
    [host.project.id],
  )
  const last = answers.findIndex(({ body }) => body.event?.sequence === left)
  expect(rows).toEqual([{ sequence: left, summary: `Summary ${last}` }])
})

test('if another process changes an event before each of twenty tries to change it, the request to change it is refused as a conflict', async () => {
  const host = await service.newAgent()
  const { pool } = service.database
  const { uid } = (await sendMail(host, { event: EVENT })).event
  let changes = 0
  const change = async () => {
    changes++
    await pool.query('update own_events set sequence = sequence + 1 where project_id = $1', [
      host.project.id,
    ])
  }
  const mail = { to: ['ada@example.com'], subject: 'S', text: 'T', event: { ...EVENT, uid } }
  const refused = await changingBefore(
    'lock-own-events',
    change,
    () => host.post('/v0/messages/send', mail),
    'each',
  )
  expect([refused.status, refused.body.message]).toEqual([
    409,
    'The event changes too often: try again',
  ])
  expect(changes).toBe(20)
})

test('an event that was over a year ago leaves the calendar after its message is deleted, and a coming event stays', async () => {
  const host = await service.newAgent()
  const { pool, url } = service.database
  const past = { ...EVENT, start: '2020-03-04T10:00:00', end: '2020-03-04T10:30:00' }
  const kept = [await sendMail(host, { event: past }), await sendMail(host, { event: EVENT })]
  const gone = await sendMail(host, { event: past })
  const uids = async () => {
    const { rows } = await pool.query(
      `select invite ->> 'uid' as uid from calendar_events where project_id = $1 order by row`,
      [host.project.id],
    )
    return rows.map(({ uid }) => uid)
  }
  await waitFor('three events', async () => (await uids()).length === 3)
  for (const { messageId } of [kept[1]!, gone]) await host.delete(messagePath(messageId))
  const maintenance = startMaintenance(url, service.config.retention, silentLog)
  try {
    await waitFor('the old event to go', async () => !(await uids()).includes(gone.event.uid))
    expect(await uids()).toEqual(kept.map(({ event }) => event.uid))
  } finally {
    await maintenance.stop()
  }
})

test('a project with 50,000 coming events whose messages do not exist can change, cancel and decline events, but not announce or accept new ones', async () => {
  const [host, other] = [await service.newAgent(), await service.newAgent()]
  await sendMail(other, { to: [host.address], event: EVENT })
  const { messageId } = await untilInvite(
    host,
    'the invitation',
    ({ method }) => method === 'REQUEST',
  )
  const { uid } = (await sendMail(host, { event: EVENT })).event
  await service.database.pool.query(
    `insert into calendar_events (project_id, uid_hash, organizer, sequence, stamp, is_proven, is_own, status, answer, invite)
     select $1, sha256(n::text::bytea), '', 0, now(), false, true, 'confirmed', 'accepted', '{}'
     from generate_series(1, 50000) n`,
    [host.project.id],
  )
  const mail = { to: ['ada@example.com'], subject: 'S', text: 'T' }
  const refused = await host.post('/v0/messages/send', { ...mail, event: EVENT })
  expect([refused.status, refused.body.error]).toEqual([413, 'quota_exceeded'])
  const answerWith = (answer: string) => host.post(`${messagePath(messageId)}/rsvp`, { answer })
  const unaccepted = await answerWith('accepted')
  expect([unaccepted.status, unaccepted.body.error]).toEqual([413, 'quota_exceeded'])
  expect((await answerWith('declined')).status).toBe(201)
  await sendMail(host, { event: { ...EVENT, uid } })
  await sendMail(host, { event: { uid, cancel: true } })
  await service.database.pool.query('delete from calendar_events where project_id = $1', [
    host.project.id,
  ])
})

test('line breaks in an event’s text add no line to the calendar file', async () => {
  const [host, guest] = [await service.newAgent(), await service.newAgent()]
  const evil = 'x"\\,;:\r\nATTENDEE:mailto:victim@example.com'
  await sendMail(host, {
    to: [`"Bob; \\"X\\"" <${guest.address}>`],
    text: evil,
    event: { ...EVENT, summary: evil.replace('\r\n', ' ') },
  })
  const message = await untilInvite(guest, 'the invitation', () => true)
  expect(message.invites[0].attendees).toHaveLength(1)
  expect(message.invites[0].description).toBe(evil.replace('\r\n', '\n'))
})

test('MCP tools announce events, list the events of the calendar, and answer invitations', async () => {
  const [host, guest] = [await service.newAgent(), await service.newAgent()]
  await using atHost = await connectMcp(service.url, host.key)
  await using atGuest = await connectMcp(service.url, guest.key)
  const sent = await callTool(atHost, 'mail.send', {
    to: [guest.address],
    subject: 'Review',
    text: 'Come',
    event: EVENT,
  })
  const { messageId } = await untilInvite(guest, 'the invitation', () => true)
  await callTool(atGuest, 'mail.rsvp', { messageId, answer: 'tentative', comment: 'Perhaps' })
  await untilCalendar(guest, 'the event', ({ length }) => length === 1)
  const span = { from: '2030-03-01T00:00:00Z', to: '2030-03-31T00:00:00Z' }
  const listed = await callTool(atGuest, 'calendar.list', span)
  expect(listed).toMatchObject({
    count: 1,
    untrusted: true,
    events: [{ uid: sent.event.uid, answer: 'tentative' }],
  })
})

test('for MCP hosts without structured results, the text of calendar.list says how to get the next page', async () => {
  const [host, guest] = [await service.newAgent(), await service.newAgent()]
  await using mcp = await connectMcp(service.url, host.key)
  for (const summary of ['One', 'Two']) {
    const mail = { to: [guest.address], text: 'Come', event: { ...EVENT, summary } }
    await sendMail(host, mail)
  }
  await untilCalendar(host, 'both events', ({ length }) => length === 2)
  const span = { from: '2030-03-01T00:00:00Z', to: '2030-03-31T00:00:00Z', limit: 1 }
  const page: any = await mcp.callTool({ name: 'calendar.list', arguments: span })
  const { nextPageToken } = page.structuredContent
  expect(textOf(page)).toContain(`1 events. More: pass pageToken "${nextPageToken}".`)
})
