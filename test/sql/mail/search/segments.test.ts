/** Compares searches over segments of the search index with PostgreSQL's own search in the words of each message. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { parseField, parseSearch } from '../../../../shared/mail/search/searchQuery.ts'
import { searchVector } from '../../../../shared/mail/search/searchTerms.ts'
import { wantedKey } from '../../../../shared/mail/search/segmentMatches.ts'
import { snapshot } from '../../../../sql/db.ts'
import { buildSegments } from '../../../../sql/mail/search/buildSegments.ts'
import { findFirstReceived } from '../../../../sql/mail/search/findFirstReceived.ts'
import { findHits, queriesText, SearchTimeoutError } from '../../../../sql/mail/search/hits.ts'
import { searchMessages } from '../../../../sql/mail/search/searchMessages.ts'
import { listSegments, readBeginnings } from '../../../../sql/mail/search/segments.ts'
import { createRandom } from '../../../chaos/random.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { newInbox } from '../../../support/mail/searchInbox.ts'
import '../../../support/long.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const START = Date.UTC(2026, 0, 1)
const WORDS = [
  ...['order', 'orders', 'ordinary', 'café', 'Straße', '東京都', '京都', 'नमस्ते', '4711', 'x'],
  ...Array.from({ length: 60 }, (_, n) => `seldom${n * n}`),
]
const SENDERS = ['ada@example.com', 'bob@shop.example.com', '"o\'neil"@example.org']
const QUERIES = [
  ...['order', 'ord*', '"order orders"', 'order -orders', 'café OR 京都', '東*', '京', 'strasse'],
  ...['order 4711 x', '"4711 order"', 'seldom1*', 'seldom0', 'seldom3481', 'nobody', 'नमस्ते -x'],
].map(parseSearch)
const FIELDS = [parseField('from', 'ada@example.com'), parseField('subject', 'order')]

const random = createRandom(7, 'search')
const someWords = (count: number) =>
  Array.from({ length: count }, () => random.pick(random.chance(0.6) ? WORDS.slice(0, 10) : WORDS))
const vectorOf = (projectId: string, text = someWords(6).join(' ')) =>
  searchVector(projectId, {
    subject: someWords(2).join(' '),
    from: [random.pick(SENDERS)],
    to: [],
    text,
  })

let messages = 0
/** Stores messages, each with a time about a minute after that of the previous message. */
async function store(projectId: string, vectors: readonly string[], textBytes = 100) {
  const numbers = vectors.map(() => ++messages)
  const { rows } = await pool.query<{ row: string }>(
    `insert into messages (project_id, thread_row, direction, message_id, message_id_hash, subject, text_body,
                           text_bytes, labels, created_at, search)
     select $1, t.row, 'received', v.id, sha256(v.id::bytea), '', '', $5, '{received}', v.at, v.search::tsvector
     from threads t, unnest($2::text[], $3::timestamptz[], $4::text[]) v (id, at, search) where t.project_id = $1
     returning row`,
    [
      projectId,
      numbers.map((n) => `<${n}>`),
      numbers.map((n) => new Date(START + (n + random.int(0, 5)) * 60_000)),
      vectors,
      textBytes,
    ],
  )
  return rows.map(({ row }) => row)
}

async function build(projectId: string) {
  const done: string[] = []
  for (;;) {
    const built = await buildSegments(pool, projectId)
    if (built === null) return done
    done.push(built)
  }
}

const count = async (table: string, projectId: string) => {
  const { rows } = await pool.query(
    `select count(*)::int as n from ${table} where project_id = $1`,
    [projectId],
  )
  return rows[0].n as number
}

/** Expects that every query finds the same messages as a search of PostgreSQL over the stored words of each message. */
async function expectAllFound(projectId: string) {
  for (const queries of [...QUERIES, ...FIELDS].map((query) => [query])) {
    const { rows } = await pool.query<{ id: string }>(
      `select message_id as id from messages where project_id = $1 and search @@ $2::tsquery
       order by created_at desc, row desc`,
      [projectId, queriesText(projectId, queries)],
    )
    const search = { projectId, queries, labels: [], after: null, before: null, cursor: null }
    for (const limit of [1, 25, 5_000]) {
      const page = await searchMessages(pool, { ...search, limit })
      const found = page.messages.map(({ messageId }) => messageId)
      expect([queries, limit, found, page.more]).toEqual([
        queries,
        limit,
        rows.slice(0, limit).map(({ id }) => id),
        rows.length > limit,
      ])
    }
    const first = await findFirstReceived(pool, { ...search, after: new Date(0) })
    const oldest = await pool.query<{ id: string }>(
      `select message_id as id from messages where project_id = $1 and search @@ $2::tsquery
       order by created_at, row limit 1`,
      [projectId, queriesText(projectId, queries)],
    )
    expect(first?.messageId).toBe(oldest.rows[0]?.id)
  }
}

const many = (projectId: string, length: number) =>
  Array.from({ length }, () => vectorOf(projectId))

test('random mails are found by random words while the mails are stored, changed and deleted', async () => {
  const projectId = await newInbox(pool)
  const rows = await store(projectId, many(projectId, 700))
  await expectAllFound(projectId)
  expect(await build(projectId)).toEqual(['leaf', 'leaf'])
  expect(await count('search_pending', projectId)).toBe(220)
  await expectAllFound(projectId)

  for (const row of rows.filter((_, n) => n % 9 === 0)) {
    await pool.query('update messages set search = $2::tsvector where row = $1', [
      row,
      vectorOf(projectId),
    ])
  }
  await expectAllFound(projectId)
  await pool.query('delete from messages where row = any ($1::bigint[])', [
    rows.filter((_, n) => n % 4 === 0),
  ])
  await expectAllFound(projectId)

  await store(projectId, many(projectId, 3_500))
  const built = await build(projectId)
  expect([built.at(-1), new Set(built).has('merged')]).toEqual(['leaf', true])
  await expectAllFound(projectId)
})

test('the weekly check of the search index removes the words of a deleted message from its search segment, and deletes an empty segment', async () => {
  const projectId = await newInbox(pool)
  const secret = vectorOf(projectId, 'zebrafish')
  const rows = await store(projectId, [secret, ...many(projectId, 239)])
  await build(projectId)
  const holds = async () => {
    const { rows } = await pool.query(
      `select exists (select from search_blocks b join search_segments s on s.id = b.segment_id
                      where s.project_id = $1 and position('zebrafish'::bytea in b.terms) > 0) as found`,
      [projectId],
    )
    return rows[0].found as boolean
  }
  const aWeekLater = () =>
    pool.query(
      `update search_segments set checked_at = checked_at - interval '8 days' where project_id = $1`,
      [projectId],
    )
  expect(await holds()).toBe(true)
  await pool.query('delete from messages where row = $1', [rows[0]])
  expect(await build(projectId)).toEqual([])
  await aWeekLater()
  expect(await build(projectId)).toEqual(['checked'])
  expect(await holds()).toBe(false)
  await expectAllFound(projectId)

  await pool.query('delete from messages where project_id = $1', [projectId])
  await aWeekLater()
  expect(await build(projectId)).toEqual(['checked'])
  expect([
    await count('search_segments', projectId),
    await count('search_leaves', projectId),
  ]).toEqual([0, 0])
  // All leaves (groups of messages) were deleted. New leaves of the search index may get the numbers of deleted leaves,
  // and a search must still find all messages.
  await store(projectId, many(projectId, 240))
  expect(await build(projectId)).toEqual(['leaf'])
  await expectAllFound(projectId)
})

test('a few long messages fill a leaf (group of messages) of the search index, because a search must read every word of messages outside of a leaf', async () => {
  const projectId = await newInbox(pool)
  await store(projectId, many(projectId, 5), 500_000)
  expect(await build(projectId)).toEqual(['leaf'])
  await expectAllFound(projectId)
})

test('deleted messages are not stored in a leaf (part of the search index)', async () => {
  const projectId = await newInbox(pool)
  const rows = await store(projectId, many(projectId, 240))
  await pool.query('delete from messages where row = any ($1::bigint[])', [rows.slice(20)])
  await build(projectId)
  expect([
    await count('search_leaves', projectId),
    await count('search_pending', projectId),
  ]).toEqual([0, 20])
  await expectAllFound(projectId)
})

test('a search for a prefix of very many words finds every message, although it reads a limited number of words', async () => {
  const projectId = await newInbox(pool)
  const texts = Array.from({ length: 240 }, (_, n) =>
    Array.from({ length: 60 }, (_, m) => `many${`${n}x${m}x`.repeat(6)}`).join(' '),
  )
  texts[17] += ' known'
  await store(
    projectId,
    texts.map((text) => vectorOf(projectId, text)),
  )
  await build(projectId)
  const [segment] = await listSegments(pool, projectId)
  const wanted = { term: 'many', prefix: true }
  const placesIn = async (blocksMax?: number) => {
    const found = await readBeginnings(pool, segment!, [wanted], blocksMax)
    return found.get(wantedKey(wanted))!.byLeaf()
  }
  const all = [[1, Array.from({ length: 240 }, (_, place) => place)]]
  expect([await placesIn(), await placesIn(100_000)] as unknown).toEqual([all, all])
  // A search for a prefix skips the blocks of the segment whose words all begin differently, so it reads only a few
  // blocks.
  expect(await readBeginnings(pool, segment!, [{ term: 'manz', prefix: true }])).toEqual(new Map())
  const count = async (typed: string) => {
    const search = { projectId, labels: [], after: null, before: null, cursor: null, limit: 5_000 }
    const found = await searchMessages(pool, { ...search, queries: [parseSearch(typed)] })
    return found.messages.length
  }
  expect([await count('many*'), await count('many* known'), await count('many17x5*')]).toEqual([
    240, 1, 1,
  ])
})

test('if a search cannot read all words with a prefix, it must check every message of the index segment, because each of them may match', async () => {
  const projectId = await newInbox(pool)
  await store(projectId, [
    vectorOf(projectId, 'alone'),
    ...Array.from({ length: 239 }, () => vectorOf(projectId, 'x')),
  ])
  await build(projectId)
  const [segment] = await listSegments(pool, projectId)
  const wanted = { term: 'alo', prefix: true }
  const count = async (blocksMax?: number) => {
    const found = await readBeginnings(pool, segment!, [wanted], blocksMax)
    return found.get(wantedKey(wanted))!.byLeaf()[0]![1].length
  }
  expect([await count(), await count(1)]).toEqual([1, 240])
})

test('a search that takes too long throws SearchTimeoutError', async () => {
  const projectId = await newInbox(pool)
  await store(projectId, many(projectId, 300))
  const wanted = { projectId, queries: [parseSearch('order')], order: 'newest', limit: 20 } as const
  const times = { sinceMs: -Infinity, untilMs: Infinity }
  const found = snapshot(pool, (db) => findHits(db, { ...wanted, ...times }, async () => [], -1))
  await expect(found).rejects.toThrow(SearchTimeoutError)
})

test('a search finds every message stored before it, even while the search index is built and words change', async () => {
  const projectId = await newInbox(pool)
  const known = vectorOf(projectId, 'known')
  let [stored, isOver] = [0, false]
  const write = async () => {
    for (let n = 0; n < 60; n++) {
      const rows = await store(projectId, Array<string>(90).fill(vectorOf(projectId, 'other')))
      // The update adds the searched word to five messages, while the index builder may write them into a leaf (group
      // of messages) of the search index.
      await pool.query('update messages set search = $2::tsvector where row = any ($1::bigint[])', [
        rows.slice(0, 5),
        known,
      ])
      stored += 5
    }
    isOver = true
  }
  const builder = async () => {
    while (!isOver) await buildSegments(pool, projectId)
  }
  const searcher = async () => {
    const search = { projectId, queries: [parseSearch('known')], labels: [], limit: 5_000 }
    while (!isOver) {
      const least = stored
      const { messages } = await searchMessages(pool, {
        ...search,
        ...{ after: null, before: null, cursor: null },
      })
      expect(messages.length).toBeGreaterThanOrEqual(least)
    }
  }
  await Promise.all([write(), builder(), builder(), searcher()])
  await build(projectId)
  await expectAllFound(projectId)
})
