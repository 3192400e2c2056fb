/** Tests how the service stores the changes of a project's own events together with their mails. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  findOwnEvent,
  type OwnEventRevision,
  undoOwnEvent,
} from '../../../../sql/mail/calendar/ownEvents.ts'
import { acceptIntents } from '../../../../sql/mail/outbound/acceptIntents.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { newIntent } from '../../../support/mail/mailRows.ts'
import { newProject } from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const FIRST = { summary: 'First' }
const START: OwnEventRevision = {
  uid: 'uid',
  sequence: 0,
  before: null,
  event: FIRST,
  endsAt: null,
}
const CHANGE: OwnEventRevision = {
  ...{ uid: 'uid', sequence: 1 },
  ...{ before: FIRST, event: { summary: 'Second' }, endsAt: null },
}

/** Accepts mails that change calendar events, and returns for each mail the kind of its result. */
const accept = async (
  projectId: string,
  changes: OwnEventRevision[],
  limit: number | null = 100,
): Promise<string[]> =>
  (
    await acceptIntents(
      pool,
      changes.map((ownEvent) => newIntent(projectId, { ownEvent })),
      limit,
    )
  ).map(({ kind }) => kind)

test('a change of a calendar event is accepted only if it begins with the present state of the event', async () => {
  const [projectId, other] = [await newProject(pool), await newProject(pool)]
  expect(await accept(projectId, [CHANGE])).toEqual(['event changed'])
  expect(await accept(projectId, [START, { ...START, uid: 'another' }])).toEqual([
    ...['accepted', 'accepted'],
  ])
  expect(await accept(other, [START])).toEqual(['accepted'])
  for (const wrong of [
    START,
    { ...CHANGE, sequence: 2 },
    { ...CHANGE, before: { summary: 'Other' } },
  ]) {
    expect(await accept(projectId, [wrong])).toEqual(['event changed'])
  }
  expect(await findOwnEvent(pool, projectId, 'uid')).toEqual({ sequence: 0, event: FIRST })
  expect(await accept(projectId, [CHANGE])).toEqual(['accepted'])
  const { event } = CHANGE
  expect(await findOwnEvent(pool, projectId, 'uid')).toEqual({ sequence: 1, event })
  expect(await findOwnEvent(pool, projectId, 'another')).toEqual({ sequence: 0, event: FIRST })
  expect(await findOwnEvent(pool, other, 'uid')).toEqual({ sequence: 0, event: FIRST })
  expect(await findOwnEvent(pool, projectId, 'unknown')).toBeNull()
})

test('of two equal changes of a calendar event, only one is accepted, in one batch and in parallel batches', async () => {
  const projectId = await newProject(pool)
  await accept(projectId, [START])
  expect(await accept(projectId, [CHANGE, CHANGE])).toEqual(['accepted', 'event changed'])
  const next = { ...CHANGE, sequence: 2, before: CHANGE.event }
  const both = await Promise.all([accept(projectId, [next]), accept(projectId, [next])])
  expect(both.flat().sort()).toEqual(['accepted', 'event changed'])
  expect((await findOwnEvent(pool, projectId, 'uid'))!.sequence).toBe(2)
})

test('a mail over the limit of its project changes no calendar event', async () => {
  const projectId = await newProject(pool)
  expect(await accept(projectId, [START], 1)).toEqual(['accepted'])
  expect(await accept(projectId, [CHANGE, { ...START, uid: 'another' }], 1)).toEqual([
    ...['over quota', 'over quota'],
  ])
  expect(await findOwnEvent(pool, projectId, 'uid')).toEqual({ sequence: 0, event: FIRST })
  expect(await findOwnEvent(pool, projectId, 'another')).toBeNull()
})

test('the end of an unsent mail takes the mail’s change of a calendar event back, unless a later change exists', async () => {
  const projectId = await newProject(pool)
  const later = { ...CHANGE, sequence: 2, before: CHANGE.event, event: { summary: 'Third' } }
  const stored = () => findOwnEvent(pool, projectId, 'uid')
  await accept(projectId, [START])
  await accept(projectId, [CHANGE])
  expect(await undoOwnEvent(pool, projectId, CHANGE)).toBe(true)
  expect(await stored()).toEqual({ sequence: 0, event: FIRST })
  await accept(projectId, [CHANGE])
  await accept(projectId, [later])
  expect(await undoOwnEvent(pool, projectId, CHANGE)).toBe(false)
  expect(await undoOwnEvent(pool, projectId, START)).toBe(false)
  expect(await stored()).toEqual({ sequence: 2, event: later.event })
  expect(await undoOwnEvent(pool, projectId, { ...later, before: null })).toBe(true)
  expect(await stored()).toBeNull()
})
