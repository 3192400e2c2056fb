/**
 * Builds the segments of the search index from the words of a project's messages (docs/decisions/search-segments.md).
 */
import {
  keptPostings,
  LEAF_MESSAGES,
  LEAF_TEXT_BYTES,
  leafPostings,
} from '../../../shared/mail/search/postings.ts'
import type { LeafRange } from '../../../shared/mail/search/segmentMatches.ts'
import {
  BlockWriter,
  byteString,
  eachTermOf,
  type TermBlock,
} from '../../../shared/mail/search/termBlocks.ts'
import { createSlices } from '../../../shared/process/slices.ts'
import { type Client, type Pool, transaction } from '../../db.ts'
import { addJobsFrom } from '../../queue/jobs.ts'
import {
  BLOCKS_AT_ONCE,
  deletedPlaces,
  insertBlocks,
  insertLeaf,
  insertSegment,
  LEAVES_MAX,
  listSegments,
  MERGED_SEGMENTS,
  type Segment,
  segmentBlocks,
} from './segments.ts'

/** Sets the number of days after which the service checks a search segment again for words of deleted messages. */
const CHECK_DAYS = 7

/**
 * Names the finished step of index maintenance on a project's search segments. Null means that no step is necessary, or
 * that another process maintains these segments.
 */
export type Built = 'leaf' | 'merged' | 'checked' | null

/**
 * Runs the next step of index maintenance on a project's search segments. The step is one transaction, so a crash
 * leaves the segments unchanged.
 */
export const buildSegments = (pool: Pool, projectId: string): Promise<Built> =>
  transaction(pool, async (db) => {
    if (!(await isOurs(db, projectId))) return null
    const segments = await listSegments(db, projectId)
    const merged = neighboursToMerge(segments)
    if (merged !== null) {
      await rewrite(db, projectId, merged)
      return 'merged'
    }
    if (await buildLeaf(db, projectId, (segments.at(-1)?.lastLeaf ?? 0) + 1)) return 'leaf'
    const unchecked = await takeUnchecked(db, projectId)
    if (unchecked === null) return null
    const { deleted } = await deletedPlaces(db, projectId, unchecked)
    if (deleted.size > 0) await rewrite(db, projectId, [unchecked])
    return 'checked'
  })

/**
 * Tells whether this process has the right to change a project's search segments. Only one process at a time may change
 * the search segments of a project.
 */
async function isOurs(db: Client, projectId: string): Promise<boolean> {
  const { rows } = await db.query<{ taken: boolean }>(
    `select pg_try_advisory_xact_lock(hashtextextended('search ' || $1, 0)) as taken`,
    [projectId],
  )
  return rows[0]!.taken
}

/**
 * Builds a leaf (a group of messages) of the search index from the oldest pending messages, if enough messages are
 * pending.
 */
async function buildLeaf(db: Client, projectId: string, leaf: number): Promise<boolean> {
  const { rows: pending } = await db.query<{ row: string; at: Date; bytes: number }>({
    name: 'pending-of-leaf',
    // The function locks the rows of the pending messages before it reads their words. A transaction that changes the
    // words of a message waits for this lock, and then marks the message as pending again. If another transaction is
    // already changing a message, the function skips the message instead of waiting, because the two transactions could
    // deadlock. A later leaf (group of messages) takes this message.
    text: `select message_row as row, created_at as at, text_bytes as bytes from search_pending
           where project_id = $1 order by created_at, message_row limit ${LEAF_MESSAGES}
           for update skip locked`,
    values: [projectId],
  })
  const taken: typeof pending = []
  let bytes = 0
  for (const message of pending) {
    if (bytes >= LEAF_TEXT_BYTES) break
    taken.push(message)
    bytes += message.bytes
  }
  if (taken.length < LEAF_MESSAGES && bytes < LEAF_TEXT_BYTES) return false
  const { rows: messages } = await db.query<{ row: string; at: Date; terms: string | null }>({
    name: 'words-of-leaf',
    // The code can join the search words by line breaks, because no search word contains a line break.
    text: `select row, created_at as at, array_to_string(tsvector_to_array(search), E'\\n') as terms
           from messages where row = any ($1::bigint[]) order by created_at, row`,
    values: [taken.map(({ row }) => row)],
  })
  // If most of the taken messages are deleted, the function builds no leaf (group of messages) of the search index. The
  // remaining messages stay pending until more messages arrive.
  const waits = messages.length < taken.length / 2
  const living = new Set(messages.map(({ row }) => row))
  const ended = waits ? taken.filter(({ row }) => !living.has(row)) : taken
  await db.query({
    name: 'delete-pending',
    text: `delete from search_pending p using unnest($2::timestamptz[], $3::bigint[]) t (at, row)
           where p.project_id = $1 and p.created_at = t.at and p.message_row = t.row`,
    values: [projectId, ended.map(({ at }) => at), ended.map(({ row }) => row)],
  })
  if (waits) return true
  const times = { since: messages[0]!.at, until: messages.at(-1)!.at }
  await insertLeaf(
    db,
    projectId,
    { leaf, ...times },
    messages.map(({ row }) => row),
  )
  const segmentId = await insertSegment(db, projectId, { firstLeaf: leaf, lastLeaf: leaf })
  await insertBlocks(db, segmentId, await blocksOfLeaf(leaf, messages))
  return true
}

async function blocksOfLeaf(
  leaf: number,
  messages: readonly { terms: string | null }[],
): Promise<TermBlock[]> {
  const slice = createSlices()
  const placesOf = new Map<string, number[]>()
  for (const [place, { terms }] of messages.entries()) {
    await slice()
    if (terms === null || terms === '') continue
    for (const lexeme of byteString(terms).split('\n')) {
      // In the search vectors, each word begins with the project's prefix. The function removes it, because a search
      // segment belongs to only one project.
      const term = lexeme.slice(lexeme.indexOf(':') + 1)
      const places = placesOf.get(term)
      if (places === undefined) placesOf.set(term, [place])
      else places.push(place)
    }
  }
  const writer = new BlockWriter()
  for (const [term, places] of [...placesOf].sort(([one], [other]) => (one < other ? -1 : 1))) {
    await slice()
    writer.add(term, leafPostings(leaf, places))
  }
  return writer.take(true)
}

/**
 * Returns the sixteen oldest neighbouring search segments of the same size, which the service then merges into one
 * segment.
 * @returns null if there are no sixteen neighbouring search segments of the same size.
 */
export function neighboursToMerge<Range extends LeafRange>(
  segments: readonly Range[],
): Range[] | null {
  for (const [most, least] of [
    [MERGED_SEGMENTS - 1, 1],
    [LEAVES_MAX - 1, MERGED_SEGMENTS],
  ] as const) {
    const ofSize = segments.filter((segment) => {
      const leaves = segment.lastLeaf - segment.firstLeaf + 1
      return leaves >= least && leaves <= most
    })
    if (ofSize.length >= MERGED_SEGMENTS) return ofSize.slice(0, MERGED_SEGMENTS)
  }
  return null
}

/** Merges neighbouring search segments into one segment, without the words of deleted messages. */
async function rewrite(db: Client, projectId: string, segments: readonly Segment[]): Promise<void> {
  const range = { firstLeaf: segments[0]!.firstLeaf, lastLeaf: segments.at(-1)!.lastLeaf }
  const { deleted, isEmpty } = await deletedPlaces(db, projectId, range)
  if (!isEmpty) {
    const segmentId = await insertSegment(db, projectId, range)
    const writer = new BlockWriter()
    const isKept = (leaf: number, place: number) => deleted.get(leaf)?.has(place) !== true
    for await (const [term, postings] of mergedTerms(db, segments)) {
      const kept = deleted.size === 0 ? postings : keptPostings(postings, isKept)
      if (kept.length > 0) writer.add(term, kept)
      if (writer.full >= BLOCKS_AT_ONCE) await insertBlocks(db, segmentId, writer.take(false))
    }
    await insertBlocks(db, segmentId, writer.take(true))
  } else {
    await db.query('delete from search_leaves where project_id = $1 and leaf between $2 and $3', [
      projectId,
      range.firstLeaf,
      range.lastLeaf,
    ])
  }
  await db.query('delete from search_segments where id = any ($1::bigint[])', [
    segments.map(({ id }) => id),
  ])
}

type Head = { terms: [term: string, postings: Uint8Array][]; at: number }

/**
 * Yields the words of neighbouring search segments in order. Each word comes with its postings (the messages that
 * contain the word) from all segments, the oldest leaf first.
 */
async function* mergedTerms(
  db: Client,
  segments: readonly Segment[],
): AsyncGenerator<[term: string, postings: Uint8Array]> {
  const sources = segments.map(({ id }) => segmentBlocks(db, id))
  const heads: Head[] = segments.map(() => ({ terms: [], at: 0 }))
  /**
   * Reads the next block of a search segment when the current block is used up. If there is no further block, the
   * function keeps the last one, and the position is then after the last term.
   */
  const fill = async (n: number) => {
    const next = await sources[n]!.next()
    if (next.done === true) return
    const terms: Head['terms'] = []
    eachTermOf(next.value, (term, postings) => terms.push([term, postings]) > 0)
    heads[n] = { terms, at: 0 }
  }
  for (const n of sources.keys()) await fill(n)
  for (;;) {
    let least: string | null = null
    for (const { terms, at } of heads) {
      const term = terms[at]?.[0]
      if (term !== undefined && (least === null || term < least)) least = term
    }
    if (least === null) return
    const parts: Uint8Array[] = []
    for (const [n, head] of heads.entries()) {
      if (head.terms[head.at]?.[0] !== least) continue
      parts.push(head.terms[head.at]![1])
      head.at++
      if (head.at === head.terms.length) await fill(n)
    }
    yield [least, parts.length === 1 ? parts[0]! : Buffer.concat(parts)]
  }
}

/**
 * Returns the search segment whose check for deleted messages is the longest ago, if its next check is due. After the
 * call, this segment counts as checked.
 */
async function takeUnchecked(db: Client, projectId: string): Promise<Segment | null> {
  const { rows } = await db.query<Segment>({
    name: 'take-unchecked-segment',
    text: `
      with due as (
        select id from search_segments
        where project_id = $1 and checked_at < clock_timestamp() - interval '${CHECK_DAYS} days'
        order by checked_at limit 1
      )
      update search_segments s set checked_at = clock_timestamp() from due where s.id = due.id
      returning s.id, first_leaf as "firstLeaf", last_leaf as "lastLeaf", since, until`,
    values: [projectId],
  })
  return rows[0] ?? null
}

/** Sets the maximum number of projects for which one call queues index jobs. */
const UNBUILT_MAX = 1_000

/**
 * Queues an index job for each project that has a leaf (a group of messages) to build or a search segment to check.
 * Such a project can lack a job after an upgrade, or because its job was lost.
 */
export async function requeueUnbuilt(pool: Pool): Promise<void> {
  await pool.query(`
    with unbuilt as (
      select project_id as payload_id from search_pending
      group by project_id having count(*) >= ${LEAF_MESSAGES} or sum(text_bytes) >= ${LEAF_TEXT_BYTES}
      union
      select project_id from search_segments
      where checked_at < clock_timestamp() - interval '${CHECK_DAYS} days'
      limit ${UNBUILT_MAX}
    ) ${addJobsFrom('unbuilt', 'index_search', 'projectId')}`)
}
