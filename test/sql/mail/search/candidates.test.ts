/**
 * Tests how a search reads the messages that may match in batches. Each batch has a time bound: in the search’s order,
 * no message of a later batch comes before this time.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { LEAF_TEXT_BYTES, leafPostings } from '../../../../shared/mail/search/postings.ts'
import { parseSearch } from '../../../../shared/mail/search/searchQuery.ts'
import { BlockWriter } from '../../../../shared/mail/search/termBlocks.ts'
import {
  pendingCandidates,
  segmentCandidates,
  type Wanted,
} from '../../../../sql/mail/search/candidates.ts'
import { insertBlocks, insertLeaf, insertSegment } from '../../../../sql/mail/search/segments.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const START = Date.UTC(2026, 0, 1)
const ms = (n: number) => START + n * 1_000
let projects = 0
const newId = () => `prj_candidates${++projects}`

const wanted = (projectId: string, change: Partial<Wanted> & { typed?: string } = {}): Wanted => ({
  projectId,
  queries: [parseSearch(change.typed ?? 'word')],
  order: 'newest',
  sinceMs: -Infinity,
  untilMs: Infinity,
  ...change,
})

type Reader = typeof pendingCandidates
/**
 * Returns for each batch the row numbers of its messages, and its time bound in seconds after START. In the search’s
 * order, no later message comes before this time.
 */
async function batchesOf(reader: Reader, ...given: Parameters<typeof wanted>) {
  const found: { rows: number[]; bound: number }[] = []
  for await (const { rows, boundMs } of reader(pool, wanted(...given)))
    found.push({ rows: rows.map(Number), bound: (boundMs - START) / 1_000 })
  return found
}

describe('a search reads the pending messages, which are in no segment of the search index, in batches', () => {
  /**
   * Stores pending messages, which are in no segment of the search index yet. Their rows have the numbers 1, 2, 3 and
   * so on.
   */
  const store = (projectId: string, given: readonly { time: number; bytes?: number }[]) =>
    pool.query(
      `insert into search_pending (project_id, created_at, message_row, text_bytes)
       select $1, at, row, bytes from unnest($2::timestamptz[], $3::int[]) with ordinality v (at, bytes, row)`,
      [
        projectId,
        given.map(({ time }) => new Date(ms(time))),
        given.map(({ bytes }) => bytes ?? 1),
      ],
    )
  const numbers = (from: number, to: number) =>
    Array.from({ length: Math.abs(to - from) + 1 }, (_, n) => (from < to ? from + n : from - n))

  test('messages outside of all index segments come in the search’s order; of equal times, the later stored message counts as newer', async () => {
    const projectId = newId()
    await store(projectId, [{ time: 2 }, { time: 1 }, { time: 2 }])
    await store(newId(), [{ time: 2 }])
    expect(await batchesOf(pendingCandidates, projectId)).toEqual([
      { rows: [3, 1, 2], bound: -Infinity },
    ])
    expect(await batchesOf(pendingCandidates, projectId, { order: 'oldest' })).toEqual([
      { rows: [2, 1, 3], bound: Infinity },
    ])
    expect(await batchesOf(pendingCandidates, newId())).toEqual([])
  })

  test('a search finds the messages of its time range that no index segment holds yet, including both ends of the range', async () => {
    const projectId = newId()
    await store(projectId, [{ time: 1 }, { time: 2 }, { time: 3 }, { time: 4 }])
    for (const order of ['newest', 'oldest'] as const) {
      const times = { sinceMs: ms(2), untilMs: ms(3), order }
      const [batch] = await batchesOf(pendingCandidates, projectId, times)
      expect(batch!.rows.toSorted()).toEqual([2, 3])
    }
  })

  test.each([
    ['newest', numbers(300, 45), numbers(44, 1), -Infinity],
    ['oldest', numbers(1, 256), numbers(257, 300), Infinity],
  ] as const)(
    'pending messages come in batches of 256, the %s first, and no message with an equal time is lost between two batches',
    async (order, first, second, end) => {
      const projectId = newId()
      await store(projectId, Array<{ time: number }>(300).fill({ time: 7 }))
      expect(await batchesOf(pendingCandidates, projectId, { order })).toEqual([
        { rows: [...first], bound: 7 },
        { rows: [...second], bound: end },
      ])
    },
  )

  test('if the last batch of messages outside of the search index is full, no later message comes before the time of its last message', async () => {
    const projectId = newId()
    await store(projectId, Array<{ time: number }>(256).fill({ time: 7 }))
    const batches = await batchesOf(pendingCandidates, projectId)
    expect(batches.map(({ rows, bound }) => [rows.length, bound])).toEqual([[256, 7]])
  })

  test('messages with long texts outside of the search index come in smaller batches, and no later message comes before the last message of a batch', async () => {
    const projectId = newId()
    const half = LEAF_TEXT_BYTES / 2
    await store(
      projectId,
      [half, half, half, half - 1, half].map((bytes, n) => ({ time: 9 - n, bytes })),
    )
    expect(await batchesOf(pendingCandidates, projectId)).toEqual([
      { rows: [1, 2], bound: 8 },
      { rows: [3, 4, 5], bound: -Infinity },
    ])
    const full = newId()
    await store(full, [
      { time: 2, bytes: LEAF_TEXT_BYTES },
      { time: 1, bytes: LEAF_TEXT_BYTES },
    ])
    expect((await batchesOf(pendingCandidates, full)).map(({ rows }) => rows)).toEqual([[1], [2]])
  })
})

describe('a search reads only those messages of index segments that may match', () => {
  type Leaf = { leaf: number; rows: number[]; since?: number; until?: number; words?: string[] }
  /**
   * Stores a segment of the search index. All messages of a leaf (group of messages) contain the given words, and their
   * time is the number of the leaf.
   */
  async function segment(
    projectId: string,
    leaves: readonly Leaf[],
    range = { firstLeaf: leaves[0]!.leaf, lastLeaf: leaves.at(-1)!.leaf },
  ) {
    const postings = new Map<string, Buffer[]>()
    for (const { leaf, rows, since = leaf, until = leaf, words = ['word'] } of leaves) {
      const times = { since: new Date(ms(since)), until: new Date(ms(until)) }
      await insertLeaf(pool, projectId, { leaf, ...times }, rows.map(String))
      for (const word of words)
        postings.getOrInsertComputed(word, () => []).push(leafPostings(leaf, [...rows.keys()]))
    }
    const id = await insertSegment(pool, projectId, range)
    const writer = new BlockWriter()
    for (const word of [...postings.keys()].toSorted())
      writer.add(word, Buffer.concat(postings.get(word)!))
    await insertBlocks(pool, id, writer.take(true))
  }
  const found = (...given: Parameters<typeof wanted>) => batchesOf(segmentCandidates, ...given)
  const rowsIn = async (...given: Parameters<typeof wanted>) =>
    (await found(...given)).flatMap(({ rows }) => rows)

  test('a search of index segments begins with an empty batch, which only states the time bound of all messages in these segments', async () => {
    const projectId = newId()
    await segment(projectId, [{ leaf: 1, rows: [11, 12], since: 3, until: 5 }])
    await segment(projectId, [{ leaf: 2, rows: [21], since: 2, until: 4 }])
    await segment(newId(), [{ leaf: 1, rows: [99] }])
    expect(await found(projectId)).toEqual([
      { rows: [], bound: 5 },
      { rows: [21, 11, 12], bound: -Infinity },
    ])
    expect(await found(projectId, { order: 'oldest' })).toEqual([
      { rows: [], bound: 2 },
      { rows: [11, 12, 21], bound: Infinity },
    ])
    expect(await found(newId())).toEqual([{ rows: [], bound: -Infinity }])
  })

  test('a search reads only leaves (groups of messages) of the search index whose time range overlaps the search’s time range', async () => {
    const projectId = newId()
    await segment(projectId, [
      { leaf: 1, rows: [11], since: 1, until: 2 },
      { leaf: 2, rows: [21], since: 3, until: 4 },
      { leaf: 3, rows: [31], since: 5, until: 6 },
    ])
    await segment(projectId, [{ leaf: 4, rows: [41], since: 7, until: 8 }])
    const between = (since: number, until: number) =>
      rowsIn(projectId, { sinceMs: ms(since), untilMs: ms(until), order: 'oldest' })
    expect(await between(2, 3)).toEqual([11, 21])
    expect(await between(2.001, 2.999)).toEqual([])
    expect(await between(4, 5)).toEqual([21, 31])
    expect(await between(6.001, 7)).toEqual([41])
    expect(await between(6, 6.999)).toEqual([31])
    expect(await between(8.001, 9)).toEqual([])
    expect(await found(projectId, { sinceMs: ms(9) })).toEqual([{ rows: [], bound: -Infinity }])
  })

  test('a search reads only messages whose index leaf (group of messages) contains its words, and skips a segment that lacks one of the words', async () => {
    const projectId = newId()
    await segment(projectId, [
      { leaf: 1, rows: [11], words: ['word', 'other'] },
      { leaf: 2, rows: [21], words: ['word'] },
    ])
    await segment(projectId, [{ leaf: 3, rows: [31], words: ['other'] }])
    await segment(projectId, [{ leaf: 4, rows: [41], words: ['wordy'] }])
    expect(await rowsIn(projectId, { typed: 'word other' })).toEqual([11])
    expect(await rowsIn(projectId, { typed: 'word OR other' })).toEqual([31, 21, 11])
    expect(await rowsIn(projectId, { typed: 'wor*' })).toEqual([41, 21, 11])
    expect(await rowsIn(projectId, { typed: 'wor* other' })).toEqual([11])
    expect(await rowsIn(projectId, { typed: 'nobody' })).toEqual([])
  })

  test('a search reads messages of index segments in batches of 64 and then 128, and the unread leaves limit how new a message of a later batch can be', async () => {
    const projectId = newId()
    const leaves = Array.from({ length: 8 }, (_, n) => ({
      leaf: n + 1,
      rows: Array.from({ length: 32 }, (_, place) => (n + 1) * 100 + place),
    }))
    await segment(projectId, leaves)
    const sizes = async (order: 'newest' | 'oldest') =>
      (await found(projectId, { order })).map(({ rows, bound }) => [rows.length, bound])
    expect(await sizes('newest')).toEqual([
      [0, 8],
      [64, 6],
      [128, 2],
      [64, -Infinity],
    ])
    expect(await sizes('oldest')).toEqual([
      [0, 1],
      [64, 3],
      [128, 7],
      [64, Infinity],
    ])
  })

  test('a search reads messages of index segments in batches that grow up to 1,024 messages', async () => {
    const projectId = newId()
    const leaves = Array.from({ length: 24 }, (_, n) => ({
      leaf: n + 1,
      rows: Array.from({ length: 128 }, (_, place) => place),
    }))
    await segment(projectId, leaves)
    const sizes = (await found(projectId)).map(({ rows }) => rows.length / 128)
    expect(sizes).toEqual([0, 1, 1, 2, 4, 8, 8])
  })

  test('messages in index leaves (groups of messages) outside of the search’s time range do not count for the size of a batch', async () => {
    const projectId = newId()
    await segment(projectId, [
      { leaf: 1, rows: [11] },
      { leaf: 2, rows: Array.from({ length: 64 }, (_, n) => 200 + n), since: 9, until: 9 },
      { leaf: 3, rows: [31] },
    ])
    expect(await found(projectId, { untilMs: ms(5) })).toEqual([
      { rows: [], bound: 9 },
      { rows: [31, 11], bound: -Infinity },
    ])
  })

  test('a search reads the first messages from 256 leaves (groups of messages) of the search index, and then from 1,024 leaves at a time', async () => {
    const projectId = newId()
    let leaf = 1
    for (const size of [255, 1, 1, 1_023, 1, 2_000]) {
      const range = { firstLeaf: leaf, lastLeaf: leaf + size - 1 }
      await segment(projectId, [{ leaf, rows: [leaf] }], range)
      leaf += size
    }
    expect(await found(projectId, { order: 'oldest' })).toEqual([
      { rows: [], bound: 1 },
      { rows: [1, 256], bound: 257 },
      { rows: [257, 258], bound: 1281 },
      { rows: [1281], bound: 1282 },
      { rows: [1282], bound: Infinity },
    ])
    const none = await found(projectId, { order: 'oldest', typed: 'nobody' })
    expect(none.map(({ bound }) => bound)).toEqual([1, 257, 1281, 1282, Infinity])
    expect(none.flatMap(({ rows }) => rows)).toEqual([])
  })
})
