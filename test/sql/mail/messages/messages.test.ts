/** Tests how the messages of an inbox are listed in pages, and how they are labelled. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  LABELS_MAX,
  TooManyLabelsError,
  updateLabels,
} from '../../../../sql/mail/messages/messageLabels.ts'
import {
  findMessage,
  listMessages,
  type MessageFilter,
} from '../../../../sql/mail/messages/messages.ts'
import { updateThreadLabels } from '../../../../sql/mail/messages/threads.ts'
import { findFirstReceived } from '../../../../sql/mail/search/findFirstReceived.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { newSent, rawMail, receive } from '../../../support/mail/mailRows.ts'
import { blocked, newProject, whileHeld } from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const MINUTE = 60_000
const START = Date.now() - 60 * MINUTE
const at = (minute: number) => new Date(START + minute * MINUTE)

/**
 * Makes two inboxes with the same number of messages. The messages of the first inbox are one minute apart, beginning
 * with `m0`.
 */
async function inbox(count: number): Promise<string> {
  const [projectId, neighbour] = [await newProject(pool), await newProject(pool)]
  for (let n = 0; n < count; n++) {
    const changes = { receivedAt: at(n) }
    await receive(pool, projectId, rawMail({ id: `m${n}@example.com` }), changes)
    await receive(pool, neighbour, rawMail({ id: `n${n}@example.com` }), changes)
  }
  return projectId
}
const label = (projectId: string, n: number, add: string[], remove: string[] = []) =>
  updateLabels(pool, { projectId, messageId: `<m${n}@example.com>`, add, remove })
const namesOf = (messages: { messageId: string }[]) =>
  messages.map(({ messageId }) => messageId.slice(1, messageId.indexOf('@')))
const list = (projectId: string, changes: Partial<MessageFilter> = {}) =>
  listMessages(pool, {
    projectId,
    labels: [],
    after: null,
    before: null,
    cursor: null,
    limit: 10,
    ...changes,
  })
const names = async (...order: Parameters<typeof list>) => namesOf((await list(...order)).messages)
const cursorOf = async (projectId: string, n: number) => {
  const found = (await findMessage(pool, projectId, `<m${n}@example.com>`))!
  return { atMs: found.createdAt.getTime(), row: found.row }
}
const labelsOf = async (projectId: string, n: number) =>
  (await findMessage(pool, projectId, `<m${n}@example.com>`))?.labels
const LABELLED = [[], ['x'], ['x', 'received']]

describe('the messages of an inbox are listed in pages, within the requested time and labels', () => {
  test('a page of messages continues after its cursor, and tells whether more messages follow', async () => {
    const projectId = await inbox(3)
    for (let n = 0; n < 3; n++) await label(projectId, n, ['x'])
    for (const labels of LABELLED) {
      const first = await list(projectId, { labels, limit: 2 })
      expect([namesOf(first.messages), first.more]).toEqual([['m2', 'm1'], true])
      const cursor = await cursorOf(projectId, 1)
      const next = await list(projectId, { labels, cursor, limit: 1 })
      expect([namesOf(next.messages), next.more]).toEqual([['m0'], false])
    }
  })

  test('a page of messages starts at `after`, ends before `before`, and still continues after its cursor', async () => {
    const projectId = await inbox(4)
    for (let n = 0; n < 4; n++) await label(projectId, n, ['x'])
    for (const labels of LABELLED) {
      expect(await names(projectId, { labels, after: at(1) })).toEqual(['m3', 'm2', 'm1'])
      expect(await names(projectId, { labels, before: at(2) })).toEqual(['m1', 'm0'])
      const cursor = await cursorOf(projectId, 2)
      expect(await names(projectId, { labels, before: at(3), cursor })).toEqual(['m1', 'm0'])
      expect(await names(projectId, { labels, before: at(1), cursor })).toEqual(['m0'])
    }
  })

  test('a page that ends before the time of its cursor has no message with this time', async () => {
    const projectId = await inbox(3)
    for (let n = 0; n < 3; n++) await label(projectId, n, ['x'])
    await pool.query(
      'update messages set created_at = $2 where project_id = $1 and created_at >= $2',
      [projectId, at(1)],
    )
    const cursor = await cursorOf(projectId, 2)
    for (const labels of LABELLED) {
      expect(await names(projectId, { labels, cursor })).toEqual(['m1', 'm0'])
      expect(await names(projectId, { labels, cursor, before: at(1) })).toEqual(['m0'])
    }
  })

  test('a list of messages with a labels filter contains only messages with all these labels', async () => {
    const projectId = await inbox(3)
    await label(projectId, 0, ['x', 'y'])
    await label(projectId, 1, ['x'])
    await label(projectId, 2, ['y'])
    expect(await names(projectId, { labels: ['x'] })).toEqual(['m1', 'm0'])
    expect(await names(projectId, { labels: ['x', 'y'] })).toEqual(['m0'])
    expect(await names(projectId, { labels: ['x', 'z'] })).toEqual([])
  })

  test('a page of messages ends early if the limit on text bytes is reached, but contains at least one message', async () => {
    const projectId = await inbox(3)
    const size = (n: number, bytes: number) =>
      pool.query('update messages set text_bytes = $3 where project_id = $1 and message_id = $2', [
        projectId,
        `<m${n}@example.com>`,
        bytes,
      ])
    await size(2, 9 * 1024 * 1024)
    const { messages, more } = await list(projectId)
    expect([namesOf(messages), more]).toEqual([['m2'], true])
    await size(2, 7 * 1024 * 1024)
    await size(1, 2 * 1024 * 1024)
    expect(await names(projectId)).toEqual(['m2', 'm1'])
  })
})

test('a message can be found and labelled only by its own project', async () => {
  const [projectId, stranger] = [await inbox(1), await newProject(pool)]
  expect(await findMessage(pool, stranger, '<m0@example.com>')).toBeNull()
  expect(await label(stranger, 0, ['x'])).toBeNull()
  expect(await labelsOf(projectId, 0)).toEqual(['received', 'unread'])
})

test('a message or a thread accepts labels up to the maximum number', async () => {
  const projectId = await inbox(1)
  const { threadId } = (await findMessage(pool, projectId, '<m0@example.com>'))!
  const many = Array.from({ length: LABELS_MAX - 2 }, (_, n) => `l${n}`)
  const ofThread = (add: string[], remove: string[] = []) =>
    updateThreadLabels(pool, { projectId, threadId, add, remove })
  expect((await label(projectId, 0, many))?.labels).toHaveLength(LABELS_MAX)
  expect(await label(projectId, 0, ['x']).catch((error) => error)).toBeInstanceOf(
    TooManyLabelsError,
  )
  expect(await ofThread(['l0'])).toBe(true)
  expect(await ofThread(['x']).catch((error) => error)).toBeInstanceOf(TooManyLabelsError)
  expect(await labelsOf(projectId, 0)).toHaveLength(LABELS_MAX)
})

test('labels that concurrent requests add to a message are all kept', async () => {
  const projectId = await inbox(1)
  const { row, threadId } = (await findMessage(pool, projectId, '<m0@example.com>'))!
  const hold = 'select from messages where row = $1 for no key update'
  await whileHeld<unknown>(pool, hold, [row], () => [
    label(projectId, 0, ['a']),
    label(projectId, 0, ['b']),
    blocked(pool, 2).then(() =>
      updateThreadLabels(pool, { projectId, threadId, add: ['c'], remove: ['unread'] }),
    ),
  ])
  expect((await labelsOf(projectId, 0))?.toSorted()).toEqual(['a', 'b', 'c', 'received'])
})

test('findFirstReceived returns the oldest message that was received after the given time', async () => {
  const projectId = await inbox(3)
  const sent = await newSent(pool, { projectId })
  await pool.query('update messages set created_at = $2 where row = $1', [sent.row, at(1.5)])
  await label(projectId, 2, ['x'])
  const first = async (after: Date, labels: string[] = []) => {
    const found = await findFirstReceived(pool, { projectId, queries: [], labels, after })
    return found === null ? null : namesOf([found])[0]
  }
  expect(await first(at(-1))).toBe('m0')
  expect(await first(at(0))).toBe('m1')
  expect(await first(at(1))).toBe('m2')
  expect(await first(at(-1), ['x'])).toBe('m2')
  expect(await first(at(2))).toBeNull()
})

test('a change of labels keeps the message’s row on its database page, so that no index entry must be rewritten', async () => {
  const projectId = await newProject(pool)
  const pages = async () => {
    const { rows } = await pool.query(
      `select message_id, split_part(trim('(' from ctid::text), ',', 1) as page from messages
       where project_id = $1 order by message_id`,
      [projectId],
    )
    return rows
  }
  for (let n = 10; n < 40; n++) {
    await receive(pool, projectId, rawMail({ id: `m${n}@example.com`, text: 'text '.repeat(200) }))
  }
  const before = await pages()
  for (let n = 10; n < 40; n += 5) await label(projectId, n, ['seen'])
  expect(await pages()).toEqual(before)
})
