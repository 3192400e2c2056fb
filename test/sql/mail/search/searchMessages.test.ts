/**
 * Tests that a search of a small or large inbox finds the same page with and without segments of the search index.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { parseSearch } from '../../../../shared/mail/search/searchQuery.ts'
import {
  binarySearchVector,
  searchKey,
  searchVector,
} from '../../../../shared/mail/search/searchTerms.ts'
import { buildSegments } from '../../../../sql/mail/search/buildSegments.ts'
import { findFirstReceived } from '../../../../sql/mail/search/findFirstReceived.ts'
import { type MessageSearch, searchMessages } from '../../../../sql/mail/search/searchMessages.ts'
import { indexMessages, listUnindexed } from '../../../../sql/mail/search/unindexed.ts'
import { binaryArray } from '../../../../sql/packedBytes.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { some } from '../../../support/database/extent.ts'
import { rawMail, receive } from '../../../support/mail/mailRows.ts'
import { newProject } from '../../../support/till/tillRows.ts'
import '../../../support/long.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

/**
 * Sets the number of messages. 4,500 messages fill eighteen leaves (groups of messages) of the search index, of which
 * sixteen become one segment.
 */
const COUNT = 4_500
const START = Date.UTC(2026, 0, 1)
/** Tells for each word which messages contain it. Message 0 is the newest message. */
const WORDS: Record<string, (n: number) => boolean> = {
  common: () => true,
  hundredth: (n) => n % 100 === 0,
  seldom: (n) => n === 10 || n === 4_200 || n === 4_400,
}
/**
 * Gives seven messages the same time, so that a leaf (group of messages) of the search index ends between two of them.
 */
const timeOf = (n: number) => new Date(START - Math.floor(n / 7) * 1_000)
const isMarked = (n: number) => n % 200 === 0 || n === 4_200

/** Builds the search index segments of a project. */
async function build(projectId: string): Promise<void> {
  while ((await buildSegments(pool, projectId)) !== null);
}

/**
 * Makes an inbox of `count` messages. Message `<0>` is the newest, and the oldest messages are in segments of the
 * search index.
 */
async function fill(count: number, built: 'none' | 'half' | 'all' = 'all'): Promise<string> {
  const projectId = await newProject(pool)
  await receive(pool, projectId, rawMail({ id: 'seed@example.com' }))
  const numbers = Array.from({ length: count }, (_, n) => count - 1 - n)
  await pool.query(`delete from messages where project_id = $1 and message_id like '<seed%'`, [
    projectId,
  ])
  await insert(projectId, numbers.slice(0, built === 'half' ? count / 2 : count))
  if (built !== 'none') await build(projectId)
  if (built === 'half') await insert(projectId, numbers.slice(count / 2))
  return projectId
}

async function insert(projectId: string, numbers: number[]) {
  const words = (n: number) => Object.keys(WORDS).filter((word) => WORDS[word]!(n))
  await pool.query(
    `insert into messages (project_id, thread_row, direction, message_id, message_id_hash, subject, text_body, labels,
                           created_at, search)
     select t.project_id, t.row, 'received', v.id, sha256(v.id::bytea), '', '', string_to_array(v.labels, ','),
            v.at, v.search::tsvector
     from threads t, unnest($2::text[], $3::text[], $4::timestamptz[], $5::text[]) v (id, labels, at, search)
     where t.project_id = $1`,
    [
      projectId,
      numbers.map((n) => `<${n}>`),
      numbers.map((n) => (isMarked(n) ? 'received,x' : 'received')),
      numbers.map(timeOf),
      numbers.map((n) =>
        words(n)
          .map((word) => `'${searchKey(projectId)}:${word}':1`)
          .join(' '),
      ),
    ],
  )
}

const nameOf = ({ messageId }: { messageId: string }) => Number(messageId.slice(1, -1))

test.each(some(['half', 'none', 'all'] as const))(
  'a page of search results has the newest matches if %s of the messages are in segments of the search index',
  async (built) => {
    const [projectId, neighbour] = [await fill(COUNT, built), await fill(300, built)]
    const rows = new Map<number, bigint>()
    const stored = await pool.query('select row, message_id from messages where project_id = $1', [
      projectId,
    ])
    for (const { row, message_id } of stored.rows) rows.set(Number(message_id.slice(1, -1)), row)
    const find = (word: string, changes: Partial<MessageSearch>) =>
      searchMessages(pool, {
        projectId,
        queries: [parseSearch(word)],
        labels: [],
        after: null,
        before: null,
        cursor: null,
        limit: 10,
        ...changes,
      })
    for (const word of Object.keys(WORDS)) {
      for (const labels of [[], ['x'], ['received', 'x']]) {
        for (const after of [null, 20, 350, 4_262, 4_399]) {
          for (const behind of [null, { before: 101 }, { cursor: 300 }, { cursor: 4_257 }]) {
            const beforeN = behind !== null && 'before' in behind ? behind.before! : null
            const cursorN = behind !== null && 'cursor' in behind ? behind.cursor! : null
            const expected = Array.from({ length: COUNT }, (_, n) => n).filter(
              (n) =>
                WORDS[word]!(n) &&
                (labels.length === 0 || isMarked(n)) &&
                (after === null || timeOf(n) >= timeOf(after)) &&
                (beforeN === null || timeOf(n) < timeOf(beforeN)) &&
                (cursorN === null || n > cursorN),
            )
            for (const limit of [2, 10]) {
              const { messages, more } = await find(word, {
                labels,
                after: after === null ? null : timeOf(after),
                before: beforeN === null ? null : timeOf(beforeN),
                cursor:
                  cursorN === null
                    ? null
                    : { atMs: timeOf(cursorN).getTime(), row: BigInt(rows.get(cursorN)!) },
                limit,
              })
              const asked = { word, labels, after, behind, limit }
              expect([asked, messages.map(nameOf), more]).toEqual([
                asked,
                expected.slice(0, limit),
                expected.length > limit,
              ])
            }
          }
        }
      }
    }
    // Another inbox has messages with the same words, and the search must not find these messages.
    const own = await find('seldom', { projectId: neighbour })
    expect([own.messages.map(nameOf), own.more]).toEqual([[10], false])
  },
)

test('each search result must match every search query', async () => {
  const projectId = await fill(300)
  const find = async (...queries: string[]) => {
    const search = { projectId, labels: [], after: null, before: null, cursor: null, limit: 10 }
    const found = await searchMessages(pool, { ...search, queries: queries.map(parseSearch) })
    return found.messages.map(nameOf)
  }
  expect(await find('seldom', 'common')).toEqual([10])
  expect(await find('seldom', 'hundredth')).toEqual([])
  expect(await find('seldom OR hundredth', 'hundredth')).toEqual([0, 100, 200])
  expect(await find('hundredth', 'seldom OR hundredth')).toEqual([0, 100, 200])
})

test('findFirstReceived returns the oldest received message that contains the given word', async () => {
  const projectId = await fill(300)
  const first = async (queries: string[], after = new Date(0), labels: string[] = []) => {
    const search = { projectId, labels, after, queries: queries.map(parseSearch) }
    const found = await findFirstReceived(pool, search)
    return found === null ? null : nameOf(found)
  }
  expect(await first(['hundredth'])).toBe(200)
  expect(await first(['hundredth'], timeOf(200))).toBe(100)
  expect(await first(['seldom', 'hundredth'])).toBeNull()
  expect(await first(['seldom'], new Date(0), ['x'])).toBeNull()
})

test.each(some(['half', 'none', 'all'] as const))(
  'findFirstReceived finds the oldest match if %s of the messages are in segments of the search index',
  async (built) => {
    const projectId = await fill(COUNT, built)
    const first = async (word: string, after: Date, labels: string[] = []) => {
      const search = { projectId, labels, after, queries: [parseSearch(word)] }
      const found = await findFirstReceived(pool, search)
      return found === null ? null : nameOf(found)
    }
    for (const word of Object.keys(WORDS)) {
      for (const labels of [[], ['x']]) {
        for (const after of [new Date(0), timeOf(4_000), timeOf(350), timeOf(20)]) {
          const expected = Array.from({ length: COUNT }, (_, n) => n)
            .filter((n) => WORDS[word]!(n) && (labels.length === 0 || isMarked(n)))
            .findLast((n) => timeOf(n) > after)
          const found = await first(word, after, labels)
          const time = (n: number | null | undefined) => (n == null ? null : timeOf(n).getTime())
          expect([word, labels, after, time(found)]).toEqual([word, labels, after, time(expected)])
        }
      }
    }
  },
)

test('messages with very long texts are found before they are in the search index', async () => {
  const projectId = await fill(300, 'none')
  await pool.query('update search_pending set text_bytes = 1000000 where project_id = $1', [
    projectId,
  ])
  const search = { projectId, labels: [], after: null, before: null, cursor: null, limit: 10 }
  const { messages } = await searchMessages(pool, {
    ...search,
    queries: [parseSearch('hundredth')],
  })
  expect(messages.map(nameOf)).toEqual([0, 100, 200])
})

test('messages without a search vector are listed in batches until each of them gets its own search vector', async () => {
  const projectId = await fill(3)
  await pool.query('update messages set search = null where project_id = $1', [projectId])
  const [oldest, ...others] = await listUnindexed(pool, 2)
  expect(others).toHaveLength(1)
  const vector = `'${searchKey(projectId)}:new':1`
  await indexMessages(pool, [{ row: oldest!.row, vector }])
  expect((await listUnindexed(pool, 10)).map(({ row }) => row)).not.toContain(oldest!.row)
  expect(await listUnindexed(pool, 10)).toHaveLength(2)
})

test('the binary form and the text form of a message’s search vector are equal in PostgreSQL', async () => {
  const from = ["o'neil@x.test", '"a\\\\b"@x.test']
  const crowd = Array.from({ length: 300 }, (_, n) => `a${n}@crowd.test`)
  for (const mail of [
    { subject: '', from: [], to: [], text: '' },
    { subject: 'Größe İstanbul 東京都 café', from, to: crowd, text: 'a b a 𝔘𝔫 \ud800 甲乙丙' },
    { subject: 'many', from: [], to: [], text: 'again '.repeat(400) },
    { subject: 'long', from: [], to: [], text: `${'ж'.repeat(60)} ${'x'.repeat(60)}` },
    { subject: 'full', from: [], to: [], text: words(17_000) },
  ]) {
    const { rows } = await pool.query(
      'select ($1::tsvector[])[1] = $2::tsvector as same, length($2::tsvector) as terms',
      [binaryArray(3614, [binarySearchVector('prj_1', mail)]), searchVector('prj_1', mail)],
    )
    expect(rows).toEqual([{ same: true, terms: expect.any(Number) }])
  }
})

const words = (count: number): string =>
  Array.from({ length: count }, (_, n) => n.toString(36)).join(' ')
