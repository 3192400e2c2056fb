/**
 * Tests when the service builds, merges and checks the parts of the search index (leaves, and segments of several
 * leaves), and what these parts contain.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  eachPosting,
  LEAF_MESSAGES,
  LEAF_TEXT_BYTES,
} from '../../../../shared/mail/search/postings.ts'
import { searchKey } from '../../../../shared/mail/search/searchTerms.ts'
import { eachTermOf } from '../../../../shared/mail/search/termBlocks.ts'
import {
  buildSegments,
  neighboursToMerge,
  requeueUnbuilt,
} from '../../../../sql/mail/search/buildSegments.ts'
import { listSegments, readLeaves, segmentBlocks } from '../../../../sql/mail/search/segments.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { newInbox } from '../../../support/mail/searchInbox.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const START = Date.UTC(2026, 0, 1)
const at = (n: number) => new Date(START + n * 1_000)

let messages = 0
type Given = { words?: string[]; bytes?: number; time?: number }
/**
 * Stores messages in the given order. By default, each message is so large that it fills a leaf (a part of the search
 * index).
 */
async function store(projectId: string, given: readonly Given[]): Promise<string[]> {
  const { rows } = await pool.query<{ row: string }>(
    `insert into messages (project_id, thread_row, direction, message_id, message_id_hash, subject, text_body,
                           text_bytes, labels, created_at, search)
     select $1, t.row, 'received', v.id, sha256(v.id::bytea), '', '', v.bytes, '{received}', v.at, v.search::tsvector
     from threads t, unnest($2::text[], $3::timestamptz[], $4::text[], $5::int[]) v (id, at, search, bytes)
     where t.project_id = $1 returning row`,
    [
      projectId,
      given.map(() => `<${++messages}>`),
      given.map(({ time }, n) => at(time ?? n)),
      given.map(({ words = [] }) =>
        words.map((word) => `'${searchKey(projectId)}:${word}':1`).join(' '),
      ),
      given.map(({ bytes = LEAF_TEXT_BYTES }) => bytes),
    ],
  )
  return rows.map(({ row }) => row)
}
const remove = (rows: readonly string[]) =>
  pool.query('delete from messages where row = any ($1::bigint[])', [rows])

async function build(projectId: string) {
  const done: string[] = []
  for (let built = await buildSegments(pool, projectId); built !== null; ) {
    done.push(built)
    built = await buildSegments(pool, projectId)
  }
  return done
}

const pending = async (projectId: string) => {
  const { rows } = await pool.query<{ row: string }>(
    `select message_row as row from search_pending where project_id = $1 order by created_at`,
    [projectId],
  )
  return rows.map(({ row }) => row)
}
const leaves = async (projectId: string) => {
  const { rows } = await pool.query<{ leaf: number }>(
    'select leaf from search_leaves where project_id = $1 order by leaf',
    [projectId],
  )
  const numbers = rows.map(({ leaf }) => leaf)
  const read = await readLeaves(pool, projectId, numbers)
  return numbers.map((leaf) => [leaf, read.get(leaf)!] as const)
}
const ranges = async (projectId: string) =>
  (await listSegments(pool, projectId)).map(({ firstLeaf, lastLeaf }) => [firstLeaf, lastLeaf])

/**
 * Returns the words of all search index segments in stored order. Each word comes with the positions of its messages in
 * the leaves (parts of a segment).
 */
async function words(projectId: string): Promise<[word: string, places: string][]> {
  const found: [string, string][] = []
  for (const { id } of await listSegments(pool, projectId)) {
    for await (const block of segmentBlocks(pool, id)) {
      eachTermOf(block, (word, postings) => {
        const places: string[] = []
        eachPosting(postings, (leaf, place) => places.push(`${leaf}.${place}`))
        return found.push([word, places.join(' ')]) > 0
      })
    }
  }
  return found
}

const age = (projectId: string, interval: string) =>
  pool.query(
    'update search_segments set checked_at = clock_timestamp() - $2::interval where project_id = $1',
    [projectId, interval],
  )

describe('a leaf (part of the search index) is built as soon as enough messages are stored', () => {
  test(`a leaf (part of the search index) is built from ${LEAF_MESSAGES} short messages, and not from fewer`, async () => {
    const projectId = await newInbox(pool)
    await store(projectId, Array<Given>(LEAF_MESSAGES - 1).fill({ bytes: 1 }))
    expect(await build(projectId)).toEqual([])
    expect(await pending(projectId)).toHaveLength(LEAF_MESSAGES - 1)
    await store(projectId, [{ bytes: 1 }, { bytes: 1, time: LEAF_MESSAGES }])
    expect(await build(projectId)).toEqual(['leaf'])
    expect(await pending(projectId)).toHaveLength(1)
  })

  test('a leaf (part of the search index) is built from fewer messages only if their text is long enough', async () => {
    const projectId = await newInbox(pool)
    const [first] = await store(projectId, [{ bytes: LEAF_TEXT_BYTES - 1 }])
    expect(await build(projectId)).toEqual([])
    const [second, third] = await store(projectId, [
      { bytes: 1, time: 1 },
      { bytes: 1, time: 2 },
    ])
    expect(await build(projectId)).toEqual(['leaf'])
    expect(await leaves(projectId)).toEqual([[1, [first!, second!]]])
    expect(await pending(projectId)).toEqual([third!])
  })

  test('a leaf (group of messages) of the search index takes the oldest messages first, and of equally old messages the one that was stored first', async () => {
    const projectId = await newInbox(pool)
    const half = LEAF_TEXT_BYTES / 2
    const rows = await store(
      projectId,
      [3, 1, 1, 2].map((time) => ({ time, bytes: half })),
    )
    expect(await build(projectId)).toEqual(['leaf', 'leaf'])
    const [a, b, c, d] = rows as [string, string, string, string]
    expect(await leaves(projectId)).toEqual([
      [1, [b, c]],
      [2, [d, a]],
    ])
    const times = (await listSegments(pool, projectId)).map(({ since, until }) => [since, until])
    expect(times).toEqual([
      [at(1), at(1)],
      [at(2), at(3)],
    ])
  })

  test('a leaf (group of messages) of the search index contains each word once, without the project’s prefix, sorted by bytes', async () => {
    const projectId = await newInbox(pool)
    const third = Math.ceil(LEAF_TEXT_BYTES / 3)
    const given = [['b', 'é', 'x:y'], [], ['b', 'Z', 'a']]
    await store(
      projectId,
      given.map((all) => ({ words: all, bytes: third })),
    )
    await pool.query(
      'update messages set search = null where project_id = $1 and created_at = $2',
      [projectId, at(1)],
    )
    expect(await build(projectId)).toEqual(['leaf'])
    expect(await words(projectId)).toEqual([
      ['Z', '1.2'],
      ['a', '1.2'],
      ['b', '1.0 1.2'],
      ['x:y', '1.0'],
      [Buffer.from('é').toString('latin1'), '1.0'],
    ])
  })

  test('a leaf (group of messages) of the search index has no entry for a deleted message, and is not built if most messages were deleted', async () => {
    const projectId = await newInbox(pool)
    const third = Math.ceil(LEAF_TEXT_BYTES / 3)
    const few = await store(projectId, Array<Given>(3).fill({ bytes: third }))
    await remove(few.slice(1))
    expect(await build(projectId)).toEqual(['leaf'])
    expect([await leaves(projectId), await pending(projectId)]).toEqual([[], [few[0]!]])

    const [other, half] = [await newInbox(pool), LEAF_TEXT_BYTES / 2]
    const two = await store(other, Array<Given>(2).fill({ bytes: half, words: ['a'] }))
    await remove(two.slice(0, 1))
    expect(await build(other)).toEqual(['leaf'])
    expect([await leaves(other), await pending(other)]).toEqual([[[1, [two[1]!]]], []])
    expect(await words(other)).toEqual([['a', '1.0']])
  })

  test('a leaf (group of messages) of the search index skips a message that another transaction has locked, and messages of other projects', async () => {
    const [projectId, neighbour] = [await newInbox(pool), await newInbox(pool)]
    const [held, free] = await store(projectId, [{}, {}])
    await store(neighbour, [{ time: 0 }])
    const holder = await pool.connect()
    try {
      await holder.query('begin')
      await holder.query('select from search_pending where message_row = $1 for update', [held])
      expect(await build(projectId)).toEqual(['leaf'])
    } finally {
      await holder.query('rollback')
      holder.release()
    }
    expect(await leaves(projectId)).toEqual([[1, [free!]]])
    expect([await pending(projectId), (await pending(neighbour)).length]).toEqual([[held!], 1])
    expect(await build(projectId)).toEqual(['leaf'])
    expect((await leaves(projectId)).at(-1)).toEqual([2, [held!]])
  })
})

test('only one process at a time builds the search index of a project, and other projects need not wait', async () => {
  const [projectId, neighbour] = [await newInbox(pool), await newInbox(pool)]
  for (const id of [projectId, neighbour]) await store(id, [{}])
  const holder = await pool.connect()
  try {
    await holder.query('begin')
    await holder.query(`select pg_advisory_xact_lock(hashtextextended('search ' || $1, 0))`, [
      projectId,
    ])
    expect(await buildSegments(pool, projectId)).toBeNull()
    expect(await buildSegments(pool, neighbour)).toBe('leaf')
  } finally {
    await holder.query('rollback')
    holder.release()
  }
  expect(await buildSegments(pool, projectId)).toBe('leaf')
})

describe('sixteen neighbouring segments of the search index are merged into one', () => {
  const sized = (...sizes: number[]) => {
    let leaf = 0
    return sizes.map((size) => {
      leaf += size
      return { firstLeaf: leaf - size + 1, lastLeaf: leaf }
    })
  }
  const times = (count: number, size: number) => Array<number>(count).fill(size)

  test('neighbouring index segments are merged if sixteen have fewer than 16 leaves (groups of messages) each, or if sixteen have 16 to 255 leaves each', () => {
    for (const size of [1, 15, 16, 255]) {
      const all = sized(...times(17, size))
      expect(neighboursToMerge(all.slice(0, 15))).toBeNull()
      expect(neighboursToMerge(all)).toEqual(all.slice(0, 16))
    }
    expect(neighboursToMerge(sized(...times(20, 256)))).toBeNull()
    expect(neighboursToMerge([])).toBeNull()
  })

  test('small and large segments of the search index are counted separately, and small segments are merged first', () => {
    expect(neighboursToMerge(sized(...times(15, 16), ...times(15, 15)))).toBeNull()
    const all = sized(...times(3, 256), ...times(16, 16), ...times(16, 1))
    expect(neighboursToMerge(all)).toEqual(all.slice(19))
    expect(neighboursToMerge(all.slice(0, -1))).toEqual(all.slice(3, 19))
  })

  test('before another leaf (group of messages) is built, neighbouring segments of the search index become one segment with all their words', async () => {
    const projectId = await newInbox(pool)
    const long = (n: number) =>
      Array.from({ length: n === 3 ? 1_600 : 200 }, (_, m) => `w${n}x${m}`.padEnd(45, '-'))
    await store(
      projectId,
      Array.from({ length: 17 }, (_, n) => ({
        words: [...long(n), 'all', ...(n % 2 === 0 ? ['even'] : []), `last${n}`],
      })),
    )
    expect(await build(projectId)).toEqual([...Array<string>(16).fill('leaf'), 'merged', 'leaf'])
    expect(await ranges(projectId)).toEqual([
      [1, 16],
      [17, 17],
    ])
    const found = await words(projectId)
    const expected = Array.from({ length: 16 }, (_, n) => [...long(n), `last${n}`]).flat()
    const ofMerged = found.slice(0, expected.length + 2).map(([word]) => word)
    expect(ofMerged).toEqual([...expected, 'all', 'even'].toSorted())
    const placesOf = new Map(found.slice(0, ofMerged.length))
    const placesIn = (leaf: number) => `${leaf}.0`
    const numbers = Array.from({ length: 16 }, (_, n) => n + 1)
    for (const leaf of numbers)
      for (const word of [`last${leaf - 1}`, long(leaf - 1).at(-1)!])
        expect(placesOf.get(word)).toBe(placesIn(leaf))
    expect(placesOf.get('all')).toBe(numbers.map(placesIn).join(' '))
    const odd = numbers.filter((leaf) => leaf % 2 === 1)
    expect(placesOf.get('even')).toBe(odd.map(placesIn).join(' '))
  })

  test('when index segments are merged, the words of deleted messages are dropped and all other words are kept', async () => {
    const projectId = await newInbox(pool)
    const rows = await store(
      projectId,
      Array.from({ length: 16 }, (_, n) => ({ words: ['all', `own${n}`] })),
    )
    for (let n = 0; n < 16; n++) await buildSegments(pool, projectId)
    await remove([rows[0]!, rows[9]!])
    expect(await build(projectId)).toEqual(['merged'])
    const found = Object.fromEntries(await words(projectId))
    expect(found.all!.split(' ')).toHaveLength(14)
    expect([found.own0, found.own9, found.own8]).toEqual([undefined, undefined, '9.0'])
  })

  test('if all messages of an index segment are deleted, the segment and its leaves (groups of messages) are deleted, and later segments stay', async () => {
    const [projectId, neighbour] = [await newInbox(pool), await newInbox(pool)]
    const rows = await store(projectId, Array<Given>(17).fill({ words: ['a'] }))
    await store(neighbour, [{}])
    await build(neighbour)
    for (let n = 0; n < 16; n++) await buildSegments(pool, projectId)
    await remove(rows.slice(0, 16))
    expect(await build(projectId)).toEqual(['merged', 'leaf'])
    const left = await leaves(projectId)
    expect(left.map(([, ofLeaf]) => ofLeaf)).toEqual([[rows[16]!]])
    expect(await words(projectId)).toEqual([['a', `${left[0]![0]}.0`]])
    expect(await leaves(neighbour)).toHaveLength(1)
  })
})

describe('the weekly check of the search index removes the words of deleted messages', () => {
  test('a segment of the search index is checked seven days after its last check', async () => {
    const projectId = await newInbox(pool)
    await store(projectId, [{ words: ['a'] }])
    await build(projectId)
    const ids = async () => (await listSegments(pool, projectId)).map(({ id }) => id)
    const before = await ids()
    await age(projectId, '6 days 23 hours')
    expect(await build(projectId)).toEqual([])
    await age(projectId, '7 days 1 minute')
    expect(await build(projectId)).toEqual(['checked'])
    expect(await ids()).toEqual(before)
  })

  test('the weekly check of the search index takes the segment of a project that was not checked for the longest time', async () => {
    const [projectId, neighbour] = [await newInbox(pool), await newInbox(pool)]
    const rows = await store(projectId, [{ words: ['a'] }, { words: ['b'] }])
    await store(neighbour, [{}])
    for (const id of [projectId, neighbour]) await build(id)
    await remove(rows)
    await age(projectId, '8 days')
    await age(neighbour, '30 days')
    await pool.query(
      `update search_segments set checked_at = checked_at - interval '1 day'
       where project_id = $1 and first_leaf = 2`,
      [projectId],
    )
    expect(await buildSegments(pool, projectId)).toBe('checked')
    expect(await words(projectId)).toEqual([['a', '1.0']])
    expect(await build(projectId)).toEqual(['checked'])
    expect([await ranges(projectId), await leaves(projectId)]).toEqual([[], []])
    expect(await build(neighbour)).toEqual(['checked'])
  })

  test('the weekly check of an index segment removes only the words of deleted messages', async () => {
    const projectId = await newInbox(pool)
    const half = LEAF_TEXT_BYTES / 2
    const [first] = await store(projectId, [
      { words: ['a', 'both'], bytes: half },
      { words: ['b', 'both'], bytes: half },
    ])
    await build(projectId)
    await remove([first!])
    await age(projectId, '8 days')
    expect(await build(projectId)).toEqual(['checked'])
    expect(await words(projectId)).toEqual([
      ['b', '1.1'],
      ['both', '1.1'],
    ])
  })
})

test('if the job that builds the search index is lost, it is queued again if a leaf (group of messages) can be built or a segment must be checked', async () => {
  const [few, many, long, short, due, checked] = await Promise.all(
    Array.from({ length: 6 }, () => newInbox(pool)),
  )
  await store(few!, Array<Given>(LEAF_MESSAGES - 1).fill({ bytes: 1 }))
  await store(many!, Array<Given>(LEAF_MESSAGES).fill({ bytes: 1 }))
  await store(long!, [{}])
  await store(short!, [{ bytes: LEAF_TEXT_BYTES - 1 }])
  for (const id of [due!, checked!]) {
    await store(id, [{}])
    await build(id)
  }
  await age(due!, '8 days')
  await age(checked!, '6 days')
  await pool.query(
    `select graphile_worker.complete_jobs(array(select id from graphile_worker.jobs))`,
  )
  for (let round = 0; round < 2; round++) await requeueUnbuilt(pool)
  const { rows } = await pool.query<{ key: string }>(
    `select key from graphile_worker.jobs where key like 'index_search:%'`,
  )
  const queued = rows.map(({ key }) => key.slice('index_search:'.length))
  const here = [few, many, long, short, due, checked]
  expect(here.map((id) => queued.filter((one) => one === id).length)).toEqual([0, 1, 1, 0, 1, 0])
})
