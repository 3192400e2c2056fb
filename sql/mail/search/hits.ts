import { LEAF_MESSAGES, LEAF_TEXT_BYTES } from '../../../shared/mail/search/postings.ts'
import { type SearchQuery, searchText } from '../../../shared/mail/search/searchQuery.ts'
import type { Client, Queryable } from '../../db.ts'
import { pendingCandidates, segmentCandidates, type Wanted } from './candidates.ts'

/** Reports that a search took too long. */
export class SearchTimeoutError extends Error {}

/** Sets the maximum number of milliseconds of all SQL statements of one search together. */
const SEARCH_MAX_MS = 3_000

/**
 * Tells whether a project has no search segments, and few enough pending messages for one leaf (group of messages). In
 * such a small project, a search reads the words of each message.
 */
export async function isSmall(db: Queryable, projectId: string): Promise<boolean> {
  const { rows } = await db.query<{ small: boolean }>({
    name: 'is-small-search',
    text: `
      select not exists (select from search_segments where project_id = $1) and (
        select count(*) <= ${LEAF_MESSAGES} and coalesce(sum(text_bytes), 0) <= ${LEAF_TEXT_BYTES}
        from (select text_bytes from search_pending where project_id = $1 limit ${LEAF_MESSAGES + 1}) pending
      ) as small`,
    values: [projectId],
  })
  return rows[0]!.small
}

/** Describes a message that matches a search. The search orders the matching messages by the time `at`. */
export type Hit = { row: string; at: Date }

/**
 * Finds the first messages that match a search, in the order of the search.
 * @param db is a connection in a {@link snapshot}. Without the snapshot, a job could move pending messages to a segment
 * or replace segments during the search.
 * @param check gets the row numbers of candidate messages, and returns the first `limit` of these messages that match
 * the search.
 * @throws {SearchTimeoutError} if the search takes too long.
 */
export async function findHits(
  db: Client,
  wanted: Wanted & { limit: number },
  check: (rows: readonly string[]) => Promise<Hit[]>,
  maxMs = SEARCH_MAX_MS,
): Promise<Hit[]> {
  const { order, limit } = wanted
  const startMs = performance.now()
  const direction = order === 'newest' ? -1 : 1
  // The function `placeOf` turns a message's time into a number that grows in the sort order of the search.
  const placeOf = (hit: Hit) => direction * hit.at.getTime()
  const sources = [pendingCandidates(db, wanted), segmentCandidates(db, wanted)].map((batches) => ({
    batches,
    bound: -Infinity,
  }))
  const byPlace = (a: Hit, b: Hit) =>
    placeOf(a) - placeOf(b) || direction * (Number(a.row) - Number(b.row))
  let found: Hit[] = []
  for (;;) {
    const [source] = sources.toSorted((a, b) => a.bound - b.bound)
    const isFull = found.length === limit && placeOf(found.at(-1)!) < source!.bound
    if (isFull || source!.bound === Infinity) return found
    if (performance.now() - startMs > maxMs) throw new SearchTimeoutError()
    const next = await source!.batches.next()
    source!.bound = next.done === true ? Infinity : direction * next.value.boundMs
    if (next.done === true || next.value.rows.length === 0) continue
    // The search may find a message twice, because a message with changed words is both in a search segment and among
    // the pending messages.
    const hits = new Map([...found, ...(await check(next.value.rows))].map((hit) => [hit.row, hit]))
    found = [...hits.values()].sort(byPlace).slice(0, limit)
  }
}

/**
 * Writes one `tsquery` that matches a message only if all given queries match. Without any query, the `tsquery` is
 * empty.
 */
export const queriesText = (projectId: string, queries: readonly SearchQuery[]): string =>
  queries.map((query) => searchText(projectId, query)).join(' & ')
