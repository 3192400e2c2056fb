/**
 * Tests the order of the messages that a search finds, and which projects are so small that a search needs no index.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  LEAF_MESSAGES,
  LEAF_TEXT_BYTES,
  leafPostings,
} from '../../../../shared/mail/search/postings.ts'
import { parseSearch } from '../../../../shared/mail/search/searchQuery.ts'
import { BlockWriter } from '../../../../shared/mail/search/termBlocks.ts'
import { snapshot } from '../../../../sql/db.ts'
import { findHits, isSmall } from '../../../../sql/mail/search/hits.ts'
import { insertBlocks, insertLeaf, insertSegment } from '../../../../sql/mail/search/segments.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'

const AT = new Date(Date.UTC(2026, 0, 1))

let database: TestDatabase
let pool: TestDatabase['pool']
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

let projects = 0
const newId = () => `prj_hits${++projects}`

/** Stores pending messages with the given row numbers and sizes. */
const addPending = (projectId: string, rows: readonly number[], bytes = 1) =>
  pool.query(
    `insert into search_pending (project_id, created_at, message_row, text_bytes)
     select $1, $2, row, $4 from unnest($3::int[]) row`,
    [projectId, AT, rows, bytes],
  )

/** Stores a segment of the search index whose messages all contain `word`. */
async function addSegment(projectId: string, rows: readonly number[]): Promise<void> {
  await insertLeaf(pool, projectId, { leaf: 1, since: AT, until: AT }, rows.map(String))
  const id = await insertSegment(pool, projectId, { firstLeaf: 1, lastLeaf: 1 })
  const writer = new BlockWriter()
  writer.add('word', leafPostings(1, [...rows.keys()]))
  await insertBlocks(pool, id, writer.take(true))
}

/**
 * Finds the rows of the first hits (matching messages) of a search for `word`, which matches every message of the test.
 */
async function hitsOf(projectId: string, order: 'newest' | 'oldest', limit: number) {
  const times = { sinceMs: -Infinity, untilMs: Infinity }
  const wanted = { projectId, queries: [parseSearch('word')], order, limit, ...times }
  const found = await snapshot(pool, (db) =>
    findHits(db, wanted, async (rows) => rows.map((row) => ({ row, at: AT }))),
  )
  return found.map(({ row }) => Number(row))
}

test.each([
  ['newest', [9, 5, 2]],
  ['oldest', [2, 5, 9]],
] as const)(
  'in a search for the %s, messages with equal times are sorted by their database rows, whether indexed or not',
  async (order, rows) => {
    for (const pending of [[5], [2, 9]]) {
      const projectId = newId()
      await addPending(projectId, pending)
      await addSegment(
        projectId,
        rows.filter((row) => !pending.includes(row)).toSorted((one, other) => one - other),
      )
      for (const limit of [1, 2, 3])
        expect(await hitsOf(projectId, order, limit)).toEqual(rows.slice(0, limit))
    }
  },
)

test('a message that is both in an index segment and still waiting for the index is found once', async () => {
  const projectId = newId()
  await addPending(projectId, [5, 6])
  await addSegment(projectId, [5, 7])
  expect(await hitsOf(projectId, 'newest', 9)).toEqual([7, 6, 5])
})

test('the search index of a project counts as small while it has no segment and the waiting messages fit into one leaf (group of messages)', async () => {
  const rows = (count: number) => Array.from({ length: count }, (_, n) => n + 1)
  const [empty, full, many, long, longer, built] = [0, 0, 0, 0, 0, 0].map(newId) as string[]
  await addPending(full!, rows(LEAF_MESSAGES))
  await addPending(many!, rows(LEAF_MESSAGES + 1))
  await addPending(long!, [1, 2], LEAF_TEXT_BYTES / 2)
  await addPending(longer!, [1, 2], LEAF_TEXT_BYTES / 2 + 1)
  await addSegment(built!, [1])
  const small = [empty, full, many, long, longer, built].map((id) => isSmall(pool, id!))
  expect(await Promise.all(small)).toEqual([true, true, false, true, false, false])
})
