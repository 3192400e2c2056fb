/** Tests which messages may change an event in the calendar of a project, and which answers to invitations count. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { INVITES_MAX, type ReadInvite } from '../../../../shared/mail/calendar/invite.ts'
import { readCalendar } from '../../../../shared/mail/calendar/readCalendar.ts'
import { transaction } from '../../../../sql/db.ts'
import { applyInvites } from '../../../../sql/mail/calendar/applyInvites.ts'
import type { InvitingMessage } from '../../../../sql/mail/calendar/knownEvents.ts'
import { recordInvites } from '../../../../sql/mail/calendar/messageInvites.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { newSent } from '../../../support/mail/mailRows.ts'
import { whileHeld } from '../../../support/till/tillRows.ts'
import '../../../support/long.ts'

const OWNER = 'owner@corp.example'
const GUEST = 'guest@corp.example'
const INBOX = 'agent@mail.test'

let database: TestDatabase
let pool: TestDatabase['pool']
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const time = (hour: number, day = 2) => {
  const local = `2031-03-0${day}T${String(hour).padStart(2, '0')}:00:00`
  return { at: `${local}.000Z`, local, zone: 'UTC' }
}
const invite = (changes: Partial<ReadInvite> = {}): ReadInvite => ({
  ...{ method: 'REQUEST', uid: 'event-1', sequence: 0, stamp: '2031-01-01T00:00:00.000Z' },
  ...{ recurrenceId: null, status: 'confirmed', summary: 'Talk', description: '', location: null },
  ...{ meetingLink: null, allDay: false, start: time(9), end: time(10), recurrence: null },
  ...{ organizer: { address: OWNER, name: null }, attendees: [], comment: null, source: null },
  ...changes,
})
const later = (changes: Partial<ReadInvite> = {}) => invite({ sequence: 1, ...changes })
const cancelled = (changes: Partial<ReadInvite> = {}) =>
  later({ method: 'CANCEL', status: 'cancelled', ...changes })
const guest = (state: 'accepted' | 'declined' | 'tentative' = 'accepted', address = GUEST) => [
  { address, name: null, state, role: 'required' as const },
]
const reply = (changes: Partial<ReadInvite> = {}) =>
  invite({
    method: 'REPLY',
    attendees: guest(),
    organizer: { address: INBOX, name: null },
    ...changes,
  })

/** Makes a project whose inbox receives and sends calendar invitations. */
async function newCalendar() {
  const { row, projectId } = await newSent(pool)
  const message = (changes: Partial<InvitingMessage> = {}): InvitingMessage => ({
    ...{ row, projectId, direction: 'received', from: [OWNER], inboxAddress: INBOX },
    authentication: { aligned: true, internal: false } as never,
    ...changes,
  })
  const take = async (one: ReadInvite, changes: Partial<InvitingMessage> = {}) => {
    const [applied] = await transaction(pool, (db) => applyInvites(db, message(changes), [one]))
    return applied!.effect
  }
  return {
    row,
    projectId,
    take,
    /**
     * Applies a received invitation.
     * @returns the invitation in the form in which its message shows it.
     */
    shown: (one: ReadInvite) => transaction(pool, (db) => applyInvites(db, message(), [one])),
    /** Applies a calendar invitation that the project itself has sent. */
    send: (one: ReadInvite) =>
      take(one, { direction: 'sent', from: [INBOX], authentication: null }),
    async events() {
      const { rows } = await pool.query(
        `select organizer, instance::text, status, answer, is_proven, is_own, invite ->> 'summary' as summary, sequence
         from calendar_events where project_id = $1 order by organizer, instance`,
        [projectId],
      )
      return rows
    },
    /** Stores answers of attendees to every event of the project, the latest answer first. */
    storeAnswers: (count: number) =>
      pool.query(
        `insert into calendar_answers (event_row, address, state, stamp)
         select row, 'former' || n || '@corp.example', 'accepted', timestamptz '2030-01-01' - n * interval '1 minute'
         from calendar_events, generate_series(0, $2 - 1) n where project_id = $1`,
        [projectId, count],
      ),
    async answers() {
      const { rows } = await pool.query(
        `select a.address, a.state, a.comment, a.instance::text from calendar_answers a join calendar_events e on e.row = a.event_row
         where e.project_id = $1 order by a.address, a.instance`,
        [projectId],
      )
      return rows
    },
    async instances() {
      const { rows } = await pool.query(
        'select local from calendar_instances where project_id = $1 order by starts_at',
        [projectId],
      )
      return rows.map(({ local }) => local)
    },
    answer: (state: string) =>
      pool.query('update calendar_events set answer = $2 where project_id = $1', [
        projectId,
        state,
      ]),
  }
}

const STRANGER = { from: ['eve@evil.example'] }
const UNPROVEN = { authentication: { aligned: false, internal: false } as never }

describe('only a newer calendar request from the authenticated organizer changes an event', () => {
  test('an organizer’s invitation creates a calendar event, and only a later version of the invitation changes it', async () => {
    const { take, events } = await newCalendar()
    expect(await take(invite())).toBe('new')
    expect(await take(invite())).toBe('same')
    expect(await take(later({ summary: 'Moved' }))).toBe('updated')
    expect(await take(invite({ summary: 'Old' }))).toBe('outdated')
    expect(await take(later({ summary: 'Later', stamp: '2031-01-02T00:00:00.000Z' }))).toBe(
      'updated',
    )
    expect(await events()).toMatchObject([
      { organizer: OWNER, status: 'confirmed', summary: 'Later', is_proven: true, is_own: false },
    ])
  })

  test('an organizer’s invitation counts only if the mail has exactly one sender, and this sender is authenticated', async () => {
    const { take } = await newCalendar()
    expect(await take(invite(), { from: ['Owner@CORP.example'] })).toBe('new')
    expect(await take(later(), { from: [OWNER, GUEST] })).toBe('proposal')
    expect(await take(later(), { from: [] })).toBe('proposal')
    expect(await take(later(), { authentication: null })).toBe('proposal')
    expect(await take(later(), UNPROVEN)).toBe('proposal')
    const internal = { authentication: { aligned: false, internal: true } as never }
    expect(await take(later(), internal)).toBe('updated')
  })

  test('an invitation with another method than REQUEST, PUBLISH or CANCEL counts only as a proposal, which changes no event', async () => {
    const { take } = await newCalendar()
    for (const method of ['COUNTER', 'REFRESH', 'ADD', 'DECLINECOUNTER'] as const)
      expect([method, await take(invite({ method }))]).toEqual([method, 'proposal'])
    expect(await take(invite({ method: 'PUBLISH' }))).toBe('new')
  })

  test('an organizer’s invitation replaces an event that a stranger announced, and later strangers change nothing', async () => {
    const { take, events } = await newCalendar()
    expect(await take(later({ summary: 'False' }), STRANGER)).toBe('new')
    expect(await take(invite({ summary: 'True' }))).toBe('updated')
    expect(await take(later({ sequence: 9, summary: 'False' }), STRANGER)).toBe('proposal')
    expect(await take(cancelled({ sequence: 9 }), STRANGER)).toBe('proposal')
    expect(await events()).toMatchObject([{ summary: 'True', is_proven: true }])
  })

  test('an invitation without an organizer counts as sent by an unauthenticated sender', async () => {
    const { take, events } = await newCalendar()
    expect(await take(invite({ organizer: null }))).toBe('new')
    expect(await events()).toMatchObject([{ organizer: '', is_proven: false }])
  })

  test('an organizer’s cancellation in one project changes no event of another project', async () => {
    const [one, other] = [await newCalendar(), await newCalendar()]
    await one.take(invite())
    expect(await other.take(cancelled())).toBe('cancelled')
    expect(await one.events()).toMatchObject([{ status: 'confirmed' }])
  })
})

describe('the project’s answer to an invitation stays valid until the time or the recurrence rule of the event changes', () => {
  test('the project must answer an invitation again only if the time or the recurrence rule of the event changes', async () => {
    const { take, answer, events, instances } = await newCalendar()
    await take(invite())
    await answer('accepted')
    await take(later({ summary: 'Renamed' }))
    expect(await events()).toMatchObject([{ answer: 'accepted', summary: 'Renamed' }])
    expect(await instances()).toEqual([time(9).local])
    for (const [n, change] of [
      { start: time(8) },
      { end: time(11) },
      { recurrence: { rule: 'FREQ=DAILY', next: [] } },
    ].entries()) {
      await answer('accepted')
      await take(invite({ sequence: 2 + 2 * n }))
      await answer('accepted')
      await take(invite({ sequence: 3 + 2 * n, ...change }))
      expect([change, (await events())[0].answer]).toEqual([change, 'needs-action'])
    }
    expect(await instances()).toEqual([])
  })

  test('the answer to a recurring event applies to an instance only if the instance still has its original time', async () => {
    const { take, answer, events } = await newCalendar()
    await take(invite({ recurrence: { rule: 'FREQ=DAILY', next: [] } }))
    await answer('tentative')
    await take(invite({ recurrenceId: time(9, 3).at, start: time(9, 3), end: time(10, 3) }))
    await take(invite({ recurrenceId: time(9, 4).at, start: time(11, 4), end: time(12, 4) }))
    await take(cancelled({ sequence: 0, recurrenceId: time(9, 5).at, start: time(11, 5) }))
    expect((await events()).map(({ answer: state }) => state)).toEqual([
      ...['tentative', 'tentative', 'needs-action', 'tentative'],
    ])
  })

  test('the project can answer for an event with all its instances, or for one instance', async () => {
    const { take, send, events, instances } = await newCalendar()
    const own = (changes: Partial<ReadInvite>) =>
      invite({ method: 'REPLY', attendees: guest('accepted', INBOX), ...changes })
    expect(await send(own({}))).toBe('outdated')
    await take(invite())
    await take(invite({ recurrenceId: time(9, 3).at, start: time(12, 3), end: time(13, 3) }))
    expect(await send(own({ recurrenceId: time(9, 3).at }))).toBe('answered')
    expect((await events()).map(({ answer: state }) => state)).toEqual(['needs-action', 'accepted'])
    expect(await instances()).toEqual([time(12, 3).local])
    expect(await send(own({ attendees: guest('tentative', INBOX) }))).toBe('answered')
    expect((await events()).map(({ answer: state }) => state)).toEqual(['tentative', 'tentative'])
    expect(await instances()).toEqual([time(9).local, time(12, 3).local])
    expect(await send(own({ attendees: [] }))).toBe('answered')
    expect((await events())[0].answer).toBe('needs-action')
    expect(await send(own({ uid: 'other' }))).toBe('outdated')
  })
})

describe('if the project’s own answers to an invitation arrive in the wrong order, the newest answer counts', () => {
  const own = (state: 'accepted' | 'declined' | 'tentative', changes: Partial<ReadInvite> = {}) =>
    invite({ method: 'REPLY', attendees: guest(state, INBOX), ...changes })
  const at = (second: number) => `2031-01-01T00:00:0${second}.000Z`

  test('a newer answer replaces an older answer, but an older answer never replaces a newer answer', async () => {
    const { take, send, events, instances } = await newCalendar()
    await take(invite())
    expect(await send(own('declined', { stamp: at(2) }))).toBe('answered')
    expect(await send(own('accepted', { stamp: at(1) }))).toBe('outdated')
    expect([(await events())[0].answer, await instances()]).toEqual(['declined', []])
    expect(await send(own('tentative', { stamp: at(2) }))).toBe('answered')
    expect(await send(own('accepted', { stamp: at(3) }))).toBe('answered')
    expect((await events())[0].answer).toBe('accepted')
  })

  test('an answer to the earlier time of a moved event is ignored, and an answer to the same time is stored', async () => {
    const { take, send, events } = await newCalendar()
    await take(invite())
    await take(later({ start: time(15), end: time(16) }))
    expect(await send(own('accepted'))).toBe('outdated')
    expect((await events())[0].answer).toBe('needs-action')
    expect(await send(own('accepted', { sequence: 1, start: time(15) }))).toBe('answered')
    await take(later({ sequence: 2, start: time(15), end: time(16), summary: 'Renamed' }))
    expect(await send(own('declined', { sequence: 1, start: time(15) }))).toBe('answered')
    expect((await events())[0].answer).toBe('declined')
  })

  test('an answer to a moved instance still counts after a change of the title, but not after another move', async () => {
    const { take, send, events } = await newCalendar()
    await take(invite())
    const instance = { recurrenceId: time(9, 3).at, start: time(12, 3), end: time(13, 3) }
    await take(later(instance))
    const answer = { ...instance, sequence: 1 }
    await take(later({ ...instance, sequence: 2, summary: 'Renamed' }))
    expect(await send(own('accepted', answer))).toBe('answered')
    await take(later({ ...instance, sequence: 3, start: time(9, 3), end: time(10, 3) }))
    expect(await send(own('declined', { ...answer, stamp: at(1) }))).toBe('outdated')
    expect((await events()).at(-1).answer).toBe('needs-action')
  })

  test('an answer to a series applies to a later changed instance, unless this instance has a newer answer', async () => {
    const { take, send, events } = await newCalendar()
    await take(invite())
    for (const day of [3, 4]) {
      const moved = { recurrenceId: time(9, day).at, start: time(12, day), end: time(13, day) }
      await take(invite({ ...moved, sequence: 2 }))
    }
    const fourth = { recurrenceId: time(9, 4).at, start: time(12, 4), sequence: 2 }
    expect(await send(own('declined', { ...fourth, stamp: at(5) }))).toBe('answered')
    expect(await send(own('accepted', { stamp: at(4) }))).toBe('answered')
    const states = (await events()).map(({ answer: state }) => state)
    expect(states).toEqual(['accepted', 'accepted', 'declined'])
  })
})

describe('a cancellation of a calendar event ends the event, even if the cancellation arrives first', () => {
  test('a cancellation ends the calendar event and its changed instances, and the calendar is empty afterwards', async () => {
    const { take, answer, events, instances } = await newCalendar()
    await take(invite())
    await take(later({ recurrenceId: time(9, 3).at, start: time(12, 3), end: time(13, 3) }))
    await answer('accepted')
    await take(later({ summary: 'x' }))
    expect(await take(cancelled({ sequence: 2 }))).toBe('cancelled')
    expect((await events()).map(({ status }) => status)).toEqual(['cancelled', 'cancelled'])
    expect(await instances()).toEqual([])
    expect(await take(later({ recurrenceId: time(9, 4).at }))).toBe('outdated')
  })

  test('if a cancellation arrives before its calendar event, the event is cancelled on arrival, unless a stranger sent the cancellation', async () => {
    const { take, events } = await newCalendar()
    expect(await take(cancelled(), STRANGER)).toBe('proposal')
    expect(await events()).toEqual([])
    expect(await take(cancelled())).toBe('cancelled')
    expect(await take(invite())).toBe('outdated')
  })
})

describe('a cancellation or an answer that leaves out the start of its calendar event applies to the known event', () => {
  const untimed = { start: null, end: null } as const

  test('a cancellation without a start time ends the calendar event or the instance that it names', async () => {
    const { take, answer, events, instances, shown } = await newCalendar()
    await take(invite({ recurrence: { rule: 'FREQ=DAILY', next: [] } }))
    await answer('accepted')
    const recurrenceId = time(9, 3).at
    expect(await take(cancelled({ ...untimed, recurrenceId }))).toBe('cancelled')
    expect(await shown(cancelled({ ...untimed, recurrenceId }))).toMatchObject([
      { start: time(9, 3), end: time(10, 3), effect: 'same' },
    ])
    expect(await take(cancelled(untimed))).toBe('cancelled')
    expect(await shown(cancelled(untimed))).toMatchObject([{ start: time(9), end: time(10) }])
    expect((await events()).map(({ status }) => status)).toEqual(['cancelled', 'cancelled'])
    expect(await instances()).toEqual([])
  })

  test('a cancelled instance without a start time gets the local time and the length of its recurring event', async () => {
    const { take, shown } = await newCalendar()
    const zone = 'Europe/Berlin'
    await take(
      invite({
        start: { at: '2031-03-03T09:00:00.000Z', local: '2031-03-03T10:00:00', zone },
        end: { at: '2031-03-03T09:45:00.000Z', local: '2031-03-03T10:45:00', zone },
      }),
    )
    const recurrenceId = '2031-04-07T08:00:00.000Z'
    expect(await shown(cancelled({ ...untimed, recurrenceId }))).toMatchObject([
      {
        start: { at: recurrenceId, local: '2031-04-07T10:00:00', zone },
        end: { at: '2031-04-07T08:45:00.000Z', local: '2031-04-07T10:45:00', zone },
      },
    ])
    await take(
      invite({
        uid: 'days',
        allDay: true,
        start: { at: '2031-03-03T00:00:00.000Z', local: '2031-03-03', zone: null },
        end: { at: '2031-03-05T00:00:00.000Z', local: '2031-03-05', zone: null },
      }),
    )
    const day = { uid: 'days', recurrenceId: '2031-04-07T00:00:00.000Z' }
    expect(await shown(cancelled({ ...untimed, ...day }))).toMatchObject([
      { allDay: true, start: { local: '2031-04-07' }, end: { local: '2031-04-09' } },
    ])
  })

  test('an answer to an invitation is accepted without a start time, unless it is for an earlier version of the event', async () => {
    const { send, take, answers } = await newCalendar()
    const own = { organizer: { address: INBOX, name: null }, attendees: guest() }
    await send(later({ ...own }))
    expect(await take(reply(untimed), { from: [GUEST] })).toBe('outdated')
    expect(await take(reply({ ...untimed, sequence: 1 }), { from: [GUEST] })).toBe('answered')
    expect(await answers()).toMatchObject([{ address: GUEST, state: 'accepted' }])
  })

  test('a cancellation or an answer without a start time is ignored if its calendar event is unknown', async () => {
    const { shown, events } = await newCalendar()
    expect(await shown(cancelled(untimed))).toEqual([])
    expect(await shown(reply(untimed))).toEqual([])
    expect(await events()).toEqual([])
  })
})

describe('if a recurring event changes, the change decides which of the event’s changed instances and answers are kept', () => {
  test('a change of a recurring event removes changed instances that strangers announced, and keeps changed instances of the authenticated organizer', async () => {
    const { take, events } = await newCalendar()
    await take(invite({ recurrenceId: time(9, 3).at, sequence: 5 }), STRANGER)
    await take(invite({ recurrenceId: time(9, 4).at, sequence: 5 }))
    await take(invite())
    expect((await events()).map(({ instance }) => instance.slice(0, 10))).toEqual([
      '-infinity',
      '2031-03-04',
    ])
    expect(await take(invite({ recurrenceId: time(9, 5).at }), STRANGER)).toBe('proposal')
  })

  test('a recurring event with 2,000 changed instances takes changes of these instances, and no further instance', async () => {
    const { projectId, take, events } = await newCalendar()
    await take(invite())
    await pool.query(
      `insert into calendar_events (project_id, uid_hash, organizer, instance, sequence, stamp, is_proven, is_own, status, invite)
       select project_id, uid_hash, organizer, timestamptz '2032-01-01Z' + n * interval '1 day', 0, stamp, true, false,
         status, invite
       from calendar_events, generate_series(0, 1998) n where project_id = $1`,
      [projectId],
    )
    const recurrenceId = time(9, 3).at
    expect(await take(invite({ recurrenceId }))).toBe('new')
    expect(await take(invite({ recurrenceId: time(9, 4).at }))).toBe('proposal')
    expect(await take(later({ recurrenceId }))).toBe('updated')
    expect(await events()).toHaveLength(2_001)
  })

  test('if a recurring event moves, its older instances and answers are dropped, but if only its title changes, they stay', async () => {
    const { send, take, events, answers } = await newCalendar()
    const own = { organizer: { address: INBOX, name: null }, attendees: guest() }
    await send(invite(own))
    await send(invite({ ...own, recurrenceId: time(9, 3).at, sequence: 0 }))
    await send(invite({ ...own, recurrenceId: time(9, 4).at, sequence: 2 }))
    expect(await take(reply(), { from: [GUEST] })).toBe('answered')
    await send(later({ ...own, summary: 'Renamed' }))
    expect([(await events()).length, (await answers()).length]).toEqual([3, 1])
    await send(invite({ ...own, sequence: 2, start: time(8) }))
    expect((await events()).map(({ instance }) => instance.slice(0, 10))).toEqual([
      '-infinity',
      '2031-03-04',
    ])
    expect(await answers()).toEqual([])
  })
})

describe('the answer of an attendee counts only if the attendee is authenticated and invited', () => {
  const OWN = { organizer: { address: INBOX, name: null }, attendees: guest() }
  const FROM = { from: [GUEST] }

  test('an attendee’s answer counts for an event of the project, and a later answer replaces the earlier one', async () => {
    const { send, take, answers, events } = await newCalendar()
    expect(await send(invite(OWN))).toBe('new')
    expect(await events()).toMatchObject([{ is_own: true, answer: 'accepted' }])
    expect(await take(reply({ comment: 'Yes' }), FROM)).toBe('answered')
    // Two answers to an invitation in the same second have the same DTSTAMP.
    expect(await take(reply({ attendees: guest('tentative') }), FROM)).toBe('answered')
    expect(await answers()).toMatchObject([{ state: 'tentative' }])
    const earlier = '2030-12-31T23:59:59.000Z'
    expect(await take(reply({ stamp: earlier }), FROM)).toBe('outdated')
    const stamp = '2031-01-02T00:00:00.000Z'
    expect(await take(reply({ attendees: guest('declined'), comment: 'No', stamp }), FROM)).toBe(
      'answered',
    )
    expect(await answers()).toEqual([
      { address: GUEST, state: 'declined', comment: 'No', instance: '-infinity' },
    ])
  })

  test('an update of an event keeps the answers of its attendees, and of the last 200 attendees who are no longer invited', async () => {
    const { send, take, answers, storeAnswers } = await newCalendar()
    await send(invite(OWN))
    const recurrenceId = time(9, 3).at
    for (const changes of [{}, { recurrenceId }]) await take(reply(changes), FROM)
    await storeAnswers(250)
    await send(later({ ...OWN, attendees: guest('accepted', 'Guest@CORP.example') }))
    const kept = (await answers()).map(({ address }) => address)
    const former = Array.from({ length: 200 }, (_, n) => `former${n}@corp.example`)
    expect(kept).toEqual([...former, GUEST, GUEST].toSorted())
    await send(later({ ...OWN, sequence: 2, attendees: [] }))
    expect(await answers()).toHaveLength(201)
  })

  test('an attendee’s answer changes an event only if the attendee is authenticated and invited to this event of the project', async () => {
    const { send, take, answers } = await newCalendar()
    expect(await take(reply(), FROM)).toBe('proposal')
    await send(invite(OWN))
    expect(await take(reply(), STRANGER)).toBe('proposal')
    expect(await take(reply(), { ...FROM, ...UNPROVEN })).toBe('proposal')
    expect(await take(reply({ attendees: [] }), FROM)).toBe('proposal')
    expect(await take(reply({ attendees: guest('accepted', 'eve@evil.example') }), STRANGER)).toBe(
      'proposal',
    )
    await take(invite({ uid: 'theirs', ...OWN }), { from: [INBOX] })
    expect(await take(reply({ uid: 'theirs' }), FROM)).toBe('proposal')
    expect(await answers()).toEqual([])
  })

  test('an answer to an earlier version of an event counts only if the event’s start time is still the same', async () => {
    const { send, take } = await newCalendar()
    await send(later({ ...OWN, start: time(9) }))
    expect(await take(reply({ start: time(8) }), FROM)).toBe('outdated')
    expect(await take(reply({ start: time(9) }), FROM)).toBe('answered')
    const stamp = '2031-01-03T00:00:00.000Z'
    expect(await take(reply({ sequence: 1, start: time(8), stamp }), FROM)).toBe('answered')
    expect(await take(reply({ recurrenceId: time(8).at, start: time(9) }), FROM)).toBe('outdated')
    expect(await take(reply({ recurrenceId: time(9).at, start: time(1) }), FROM)).toBe('answered')
  })
})

test('a recurring event is stored even if its calendar file contains U+0000 in the time zone', async () => {
  const { row, events } = await newCalendar()
  const zone = ['BEGIN:VTIMEZONE', 'TZID:Our\0office', 'COMMENT:a\0b', 'BEGIN:STANDARD']
  const offset = ['DTSTART:19700101T000000', 'TZOFFSETFROM:+0200', 'TZOFFSETTO:+0200']
  const series = ['DTSTART;TZID=Our\0office:20310303T110000', 'RRULE:FREQ=DAILY;COUNT=3']
  const file = [
    ...['BEGIN:VCALENDAR', ...zone, ...offset, 'END:STANDARD', 'END:VTIMEZONE'],
    ...['BEGIN:VEVENT', 'UID:zero', ...series, 'END:VEVENT', 'END:VCALENDAR'],
  ]
  const given = readCalendar(Buffer.from(file.join('\r\n')), Date.now())
  expect(await transaction(pool, (db) => recordInvites(db, row, given))).toMatchObject([
    { uid: 'zero', effect: 'new', start: { at: '2031-03-03T09:00:00.000Z' } },
  ])
  expect(await events()).toHaveLength(1)
})

test('a message records each of its calendar invitations once, and at most INVITES_MAX of them', async () => {
  const { row, events } = await newCalendar()
  const record = (...given: ReadInvite[]) =>
    transaction(pool, (db) => recordInvites(db, row, given))
  const stored = async () =>
    (await pool.query('select invites from messages where row = $1', [row])).rows[0].invites
  expect(await record()).toEqual([])
  expect(await record(invite(), invite({ summary: 'copy' }))).toHaveLength(1)
  expect(await record(invite())).toEqual([])
  const many = Array.from({ length: INVITES_MAX + 5 }, (_, n) => invite({ uid: `many-${n}` }))
  expect(await record(...many)).toHaveLength(INVITES_MAX - 1)
  expect(await record(invite({ uid: 'one more' }))).toEqual([])
  expect([(await stored()).length, (await events()).length]).toEqual([INVITES_MAX, INVITES_MAX])
  expect(await transaction(pool, (db) => recordInvites(db, '999999999', [invite()]))).toEqual([])
})

test('if two calendar files of one message are read at the same time, the message keeps the invitations of both', async () => {
  const { row } = await newCalendar()
  const hold = 'select from messages where row = $1 for update'
  await whileHeld(pool, hold, [row], () =>
    ['one', 'two'].map((uid) =>
      transaction(pool, (db) => recordInvites(db, row, [invite({ uid })])),
    ),
  )
  const { rows } = await pool.query(
    `select array(select i ->> 'uid' from jsonb_array_elements(invites) i order by 1) as uids
     from messages where row = $1`,
    [row],
  )
  expect(rows).toEqual([{ uids: ['one', 'two'] }])
})
