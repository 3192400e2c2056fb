/** Tests which instances a page of the calendar has, and which event an invitation finds. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import type { QueryConfig } from 'pg'
import type { Invite } from '../../../../shared/mail/calendar/invite.ts'
import {
  type CalendarPage,
  findEventStates,
  listCalendar,
} from '../../../../sql/mail/calendar/calendarEvents.ts'
import { uidHash } from '../../../../sql/mail/calendar/uidHash.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import {
  type EventColumns,
  hourAt,
  newEvent,
  newInstance,
  spanOf,
} from '../../../support/mail/calendar/calendarRows.ts'
import { newSent } from '../../../support/mail/mailRows.ts'
import { newProject } from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

describe('the calendar of a project lists its event instances in pages, each in its newest version', () => {
  const page = (
    projectId: string,
    [from, to]: readonly [from: number, to: number],
    changes: Partial<CalendarPage> = {},
  ) =>
    listCalendar(pool, {
      projectId,
      from: hourAt(from),
      to: hourAt(to),
      after: null,
      limit: 100,
      ...changes,
    })
  const localsIn = async (...given: Parameters<typeof page>) =>
    (await page(...given)).map(({ local }) => local)
  const inviting = (...addresses: string[]) => ({
    ...spanOf('2031-03-02T09:00:00', '2031-03-02T10:00:00'),
    attendees: addresses.map((address) => ({ address, name: null, state: 'needs-action' })),
  })
  /** Stores an accepted event of a project with one instance. */
  const event = async (
    projectId: string,
    hours: readonly [start: number, end: number],
    changes: EventColumns = {},
  ) => {
    const row = await newEvent(pool, projectId, changes)
    await newInstance(pool, projectId, row, hours)
    return row
  }

  test.each<[span: readonly [number, number], hours: readonly [number, number], isListed: boolean]>(
    [
      [[8, 9], [9, 12], false],
      [[8, 10], [9, 12], true],
      [[10, 11], [9, 12], true],
      [[11, 13], [9, 12], true],
      [[12, 13], [9, 12], false],
      [[9, 9], [9, 12], true],
      [[12, 12], [9, 12], false],
      [[8, 8], [9, 12], false],
    ],
  )(
    'an event with the hours %j in a calendar of the hours %j is listed: %j',
    async (span, hours, isListed) => {
      const projectId = await newProject(pool)
      await event(projectId, span)
      expect((await localsIn(projectId, hours)).length).toBe(isListed ? 1 : 0)
    },
  )

  test('the calendar of a project has no events of another project', async () => {
    const [one, other] = [await newProject(pool), await newProject(pool)]
    await event(one, [9, 10])
    expect(await localsIn(other, [0, 23])).toEqual([])
  })

  test('a page of the calendar begins after the last instance of the page before, even if instances have the same time', async () => {
    const projectId = await newProject(pool)
    const rows = [
      await event(projectId, [9, 10]),
      await event(projectId, [9, 10]),
      await event(projectId, [8, 10]),
    ]
    const first = await page(projectId, [0, 23], { limit: 2 })
    const { startsAt, eventRow } = first.at(-1)!
    const second = await page(projectId, [0, 23], { after: { startsAt, eventRow } })
    expect([first, second].map((list) => list.map((one) => one.eventRow))).toEqual([
      [rows[2]!, rows[0]!],
      [rows[1]!],
    ])
  })

  test('a changed instance replaces only the instance of the same recurring event, organizer, project and time', async () => {
    const [projectId, other] = [await newProject(pool), await newProject(pool)]
    const uid_hash = randomBytes(32)
    const series = await newEvent(pool, projectId, { uid_hash })
    for (const hour of [9, 10, 11, 12]) await newInstance(pool, projectId, series, [hour, hour + 1])
    const changed = { uid_hash, instance: hourAt(9).toISOString() }
    await event(projectId, [15, 16], changed)
    await newEvent(pool, projectId, {
      uid_hash,
      instance: hourAt(10).toISOString(),
      status: 'cancelled',
    })
    await newEvent(pool, projectId, {
      uid_hash,
      organizer: 'eve@evil.example',
      instance: hourAt(11).toISOString(),
    })
    await newEvent(pool, projectId, { instance: hourAt(11).toISOString() })
    await newEvent(pool, other, { uid_hash, instance: hourAt(12).toISOString() })
    expect(await localsIn(projectId, [0, 23])).toEqual(['hour 11', 'hour 12', 'hour 15'])
  })

  test('an attendee’s answer for one instance has priority over the attendee’s answer for the whole recurring event', async () => {
    const projectId = await newProject(pool)
    const row = await newEvent(pool, projectId, { is_own: true, invite: inviting('A@b.example') })
    for (const hour of [9, 10]) await newInstance(pool, projectId, row, [hour, hour + 1])
    for (const [instance, state] of [
      ['-infinity', 'accepted'],
      [hourAt(10).toISOString(), 'declined'],
      [hourAt(11).toISOString(), 'tentative'],
    ])
      await pool.query(
        `insert into calendar_answers (event_row, instance, address, state, stamp) values ($1, $2, 'a@b.example', $3, now())`,
        [row, instance, state],
      )
    const items = await page(projectId, [0, 23])
    expect(items.map(({ answers }) => answers.map(({ state }) => state))).toEqual([
      ['accepted'],
      ['declined'],
    ])
  })

  test('a page of the calendar shows only the answers of the invited attendees, each for its own event', async () => {
    const projectId = await newProject(pool)
    const answer = (row: string, address: string, state: string) =>
      pool.query(
        `insert into calendar_answers (event_row, address, state, stamp) values ($1, $2, $3, now())`,
        [row, address, state],
      )
    const invites = [inviting('a@b.example', 'c@bücher.example'), inviting('a@b.example')]
    for (const [n, invite] of invites.entries()) {
      const row = await event(projectId, [9 + n, 10 + n], { is_own: true, invite })
      await answer(row, 'a@b.example', n === 0 ? 'accepted' : 'declined')
      await answer(row, 'c@xn--bcher-kva.example', 'tentative')
    }
    const items = await page(projectId, [0, 23])
    expect(items.map(({ answers }) => answers)).toEqual([
      [
        { address: 'a@b.example', state: 'accepted' },
        { address: 'c@xn--bcher-kva.example', state: 'tentative' },
      ],
      [{ address: 'a@b.example', state: 'declined' }],
    ])
  })

  test('a page of a series with long texts and answers reads less than 100,000 bytes from the database', async () => {
    const projectId = await newProject(pool)
    const addresses = Array.from({ length: 10 }, (_, n) => `guest${n}@b.example`)
    const description = '漢'.repeat(10_000)
    const row = await newEvent(pool, projectId, {
      is_own: true,
      invite: { ...inviting(...addresses), description },
    })
    for (let hour = 0; hour < 20; hour++) await newInstance(pool, projectId, row, [hour, hour + 1])
    await pool.query(
      `insert into calendar_answers (event_row, instance, address, state, stamp, comment)
       select $1, i.at, a.address, 'declined', now(), repeat('漢', 10000)
       from (select '-infinity'::timestamptz union select starts_at from calendar_instances where event_row = $1) i (at),
         unnest($2::text[] || array(select 'removed' || n || '@b.example' from generate_series(1, 20) n)) a (address)`,
      [row, addresses],
    )
    let bytes = 0
    const measured = {
      async query(given: QueryConfig) {
        const result = await pool.query(given)
        bytes += Buffer.byteLength(JSON.stringify(result.rows))
        return result
      },
    }
    const items = await listCalendar(measured as never, {
      ...{ projectId, after: null, limit: 100 },
      ...{ from: hourAt(0), to: hourAt(23) },
    })
    expect(bytes).toBeLessThan(100_000)
    expect(items).toHaveLength(20)
    for (const { invite, answers } of items) {
      expect(invite.description).toBe(description)
      expect(answers).toEqual(addresses.map((address) => ({ address, state: 'declined' })))
    }
  })
})

describe('an invitation is matched to the calendar event with the same UID and organizer', () => {
  const invite = (changes: object = {}) =>
    ({
      uid: 'event-1',
      organizer: { address: 'Owner@Corp.example', name: null },
      recurrenceId: null,
      ...changes,
    }) as Invite

  test('an invitation finds the event with the same UID, organizer and instance in its own project', async () => {
    const { row: message_row, projectId, messageId } = await newSent(pool)
    const uid_hash = uidHash('event-1')
    await newEvent(pool, projectId, { uid_hash, message_row })
    await newEvent(pool, projectId, { uid_hash, organizer: '', answer: 'tentative' })
    await newEvent(pool, projectId, {
      uid_hash,
      instance: hourAt(9).toISOString(),
      answer: 'declined',
    })
    await newEvent(pool, await newProject(pool), { uid_hash: uidHash('event-2') })
    const found = await findEventStates(pool, projectId, [
      invite({ uid: 'event-2' }),
      invite(),
      invite({ organizer: null }),
      invite({ recurrenceId: hourAt(9).toISOString() }),
      invite({ recurrenceId: hourAt(10).toISOString() }),
      invite({ organizer: { address: 'eve@evil.example', name: null } }),
    ])
    expect(found.map((one) => one && [one.answer, one.messageId])).toEqual([
      null,
      ['accepted', messageId],
      ['tentative', null],
      ['declined', null],
      null,
      null,
    ])
    expect(await findEventStates(pool, projectId, [])).toEqual([])
  })
})
