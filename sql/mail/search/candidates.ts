import { LEAF_TEXT_BYTES } from '../../../shared/mail/search/postings.ts'
import type { SearchQuery } from '../../../shared/mail/search/searchQuery.ts'
import {
  mayMatch,
  type Places,
  segmentMatches,
  wantedTerms,
} from '../../../shared/mail/search/segmentMatches.ts'
import { createSlices } from '../../../shared/process/slices.ts'
import type { Queryable } from '../../db.ts'
import type { Order } from '../../pageStart.ts'
import {
  LEAVES_MAX,
  type Leaf,
  listLeaves,
  listSegments,
  readBeginnings,
  readLeaves,
  readWords,
  type Segment,
} from './segments.ts'

/**
 * Holds messages that may match a search. No message of a later batch comes before the time `boundMs` in the sort order
 * of the search. Therefore the search can return all found messages up to this time. In the last batch, `boundMs` is
 * infinite.
 */
export type CandidateBatch = { rows: string[]; boundMs: number }

/**
 * Describes the wanted messages of a search, and their order. The fields `sinceMs` and `untilMs` are rough limits of
 * time. Both are inclusive.
 */
export type Wanted = {
  projectId: string
  queries: readonly SearchQuery[]
  order: Order
  sinceMs: number
  untilMs: number
}

/**
 * Sets the maximum number of pending messages (not yet in a search segment) that one query reads. The query reads fewer
 * if their text reaches LEAF_TEXT_BYTES.
 */
const PENDING_AT_ONCE = 256
/**
 * Sets the maximum number of candidate messages in the first batch from a search segment. Each further batch has twice
 * as many.
 */
const FIRST_BATCH = 64
const BATCH_MAX = 1_024
/**
 * Sets the maximum number of leaves (groups of messages) that a later read of a search takes from the search segments:
 * four times as many as the largest segment may have. The first read takes at most as many as the largest segment.
 */
const READ_LEAVES_MAX = 4 * LEAVES_MAX

/** Returns the infinite time that comes last in the sort order of a search. */
const endOf = (order: Order): number => (order === 'newest' ? -Infinity : Infinity)

/**
 * Yields pending messages, which are in no search segment yet. The caller must check whether the words of these
 * messages fit the search.
 */
export async function* pendingCandidates(
  db: Queryable,
  { projectId, order, sinceMs, untilMs }: Wanted,
): AsyncGenerator<CandidateBatch> {
  const [behind, direction] = order === 'newest' ? ['<', 'desc'] : ['>', 'asc']
  let last = { at: timestamp(-endOf(order)), row: '0' }
  for (;;) {
    const { rows }: { rows: { row: string; at: Date; bytes: number }[] } = await db.query({
      name: `pending-candidates-${order}`,
      text: `select message_row as row, created_at as at, text_bytes as bytes from search_pending
             where project_id = $1 and created_at between $2::timestamptz and $3::timestamptz
               and (created_at, message_row) ${behind} ($4::timestamptz, $5::bigint)
             order by created_at ${direction}, message_row ${direction} limit ${PENDING_AT_ONCE}`,
      values: [projectId, timestamp(sinceMs), timestamp(untilMs), last.at, last.row],
    })
    const isLast = rows.length < PENDING_AT_ONCE
    let taken: string[] = []
    let bytes = 0
    for (const [n, { row, at, bytes: own }] of rows.entries()) {
      taken.push(row)
      bytes += own
      last = { at: at.toISOString(), row }
      if (bytes < LEAF_TEXT_BYTES && n < rows.length - 1) continue
      yield {
        rows: taken,
        boundMs: isLast && n === rows.length - 1 ? endOf(order) : at.getTime(),
      }
      taken = []
      bytes = 0
    }
    if (isLast) return
  }
}

/**
 * Yields the messages from the search segments that may match a search. The words of each yielded message match the
 * search.
 */
export async function* segmentCandidates(
  db: Queryable,
  wanted: Wanted,
): AsyncGenerator<CandidateBatch> {
  const { projectId, queries, order } = wanted
  const segments = inOrder(
    order,
    (await listSegments(db, projectId)).filter((segment) => isWithin(segment, wanted)),
  )
  // The first batch of candidates has no messages. Its `boundMs` tells where the messages of all search segments begin
  // in the sort order. Therefore the search can return at once a page of pending messages that come before this time.
  yield { rows: [], boundMs: boundOf(order, segments) }
  let batchMax = FIRST_BATCH
  let leavesMax = LEAVES_MAX
  for (let start = 0; start < segments.length; leavesMax = READ_LEAVES_MAX) {
    const group = firstLeaves(segments.slice(start), leavesMax)
    start += group.length
    const others = segments.slice(start)
    const found = new Map(await matchesIn(db, group, queries))
    if (found.size === 0) {
      yield { rows: [], boundMs: boundOf(order, others) }
      continue
    }
    const leaves = inOrder(order, await listLeaves(db, projectId, [...found.keys()]))
    let batch: number[] = []
    let count = 0
    for (const [n, { leaf, ...times }] of leaves.entries()) {
      if (isWithin(times, wanted)) {
        batch.push(leaf)
        count += found.get(leaf)!.length
      }
      if (count < batchMax && n < leaves.length - 1) continue
      const rows = await readLeaves(db, projectId, batch)
      yield {
        rows: batch.flatMap((one) =>
          found.get(one)!.flatMap((place) => rows.get(one)![place] ?? []),
        ),
        boundMs: boundOf(order, [...leaves.slice(n + 1), ...others]),
      }
      if (count >= batchMax) batchMax = Math.min(2 * batchMax, BATCH_MAX)
      batch = []
      count = 0
    }
  }
}

/**
 * Returns the messages that contain the searched words, as positions in the leaves (groups of messages) of the search
 * index. The function first checks the whole words of the query. It checks the prefixes only in segments in which the
 * whole words still allow a match.
 */
async function matchesIn(
  db: Queryable,
  segments: readonly Segment[],
  queries: readonly SearchQuery[],
): Promise<[leaf: number, places: number[]][]> {
  const wanted = wantedTerms(queries)
  const beginnings = wanted.filter(({ prefix }) => prefix)
  const words = await readWords(
    db,
    segments,
    wanted.filter(({ prefix }) => !prefix),
  )
  const found: [number, number[]][] = []
  const slice = createSlices()
  for (const segment of segments) {
    await slice()
    const own = words.get(segment.id) ?? new Map<string, Places>()
    if (!mayMatch(queries, own)) continue
    const begun = await readBeginnings(db, segment, beginnings)
    found.push(...segmentMatches(segment, queries, new Map([...own, ...begun])).byLeaf())
  }
  return found
}

/**
 * Returns the first search segments that together cover at most `max` leaves (groups of messages). The function returns
 * at least one search segment.
 */
function firstLeaves(segments: readonly Segment[], max: number): readonly Segment[] {
  let leaves = 0
  const end = segments.findIndex(({ firstLeaf, lastLeaf }, n) => {
    leaves += lastLeaf - firstLeaf + 1
    return n > 0 && leaves > max
  })
  return end === -1 ? segments : segments.slice(0, end)
}

const inOrder = <Item>(order: Order, oldestFirst: readonly Item[]): readonly Item[] =>
  order === 'newest' ? oldestFirst.toReversed() : oldestFirst

type Times = Pick<Leaf, 'since' | 'until'>

const isWithin = ({ since, until }: Times, { sinceMs, untilMs }: Wanted) =>
  until.getTime() >= sinceMs && since.getTime() <= untilMs

/**
 * Returns the time limit of the remaining messages of a search. If the search begins with the newest message, no
 * remaining message is newer than this time. If it begins with the oldest, none is older.
 */
const boundOf = (order: Order, remaining: readonly Times[]): number =>
  order === 'newest'
    ? remaining.reduce((most, { until }) => Math.max(most, until.getTime()), endOf(order))
    : remaining.reduce((least, { since }) => Math.min(least, since.getTime()), endOf(order))

const timestamp = (ms: number): string =>
  Number.isFinite(ms) ? new Date(ms).toISOString() : String(ms)
