import {
  type LeafRange,
  Places,
  type WantedTerm,
  wantedKey,
} from '../../../shared/mail/search/segmentMatches.ts'
import { eachTermOf, type TermBlock } from '../../../shared/mail/search/termBlocks.ts'
import { createSlices } from '../../../shared/process/slices.ts'
import type { Queryable } from '../../db.ts'

/**
 * Sets the number of neighbouring search segments of one size that the service merges into one segment of the next
 * size.
 */
export const MERGED_SEGMENTS = 16
/**
 * Sets the maximum number of leaves (groups of messages) of the largest search segment. A segment with 256 leaves has
 * 61,440 messages.
 */
export const LEAVES_MAX = MERGED_SEGMENTS ** 2

/**
 * Describes a segment of the search index. A search segment holds the sorted words of neighbouring leaves (groups of
 * messages), and the times of their oldest and newest messages.
 */
export type Segment = LeafRange & { id: string; since: Date; until: Date }

/** Lists the search segments of a project, beginning with the segment of the oldest messages. */
export async function listSegments(db: Queryable, projectId: string): Promise<Segment[]> {
  const { rows } = await db.query<Segment>({
    name: 'list-search-segments',
    text: `select id, first_leaf as "firstLeaf", last_leaf as "lastLeaf", since, until
           from search_segments where project_id = $1 order by first_leaf`,
    values: [projectId],
  })
  return rows
}

/** Describes a leaf (a group of messages) of the search index, without its messages. */
export type Leaf = { leaf: number; since: Date; until: Date }

/** Lists those leaves (groups of messages) of the search index that have the given numbers, oldest first. */
export async function listLeaves(
  db: Queryable,
  projectId: string,
  leaves: readonly number[],
): Promise<Leaf[]> {
  const { rows } = await db.query<Leaf>({
    name: 'list-search-leaves',
    text: `select leaf, since, until from search_leaves
           where project_id = $1 and leaf = any ($2::int[]) order by leaf`,
    values: [projectId, leaves],
  })
  return rows
}

/**
 * Returns the row numbers of the messages in the given leaves (groups of messages) of the search index. The result
 * holds a list for each leaf, in the order of the messages' positions in the leaf.
 */
export async function readLeaves(
  db: Queryable,
  projectId: string,
  leaves: readonly number[],
): Promise<Map<number, string[]>> {
  const { rows } = await db.query<{ leaf: number; rows: string[] }>({
    name: 'read-search-leaves',
    text: `select leaf, message_rows as rows from search_leaves
           where project_id = $1 and leaf = any ($2::int[])`,
    values: [projectId, leaves],
  })
  return new Map(rows.map((row) => [row.leaf, row.rows]))
}

/**
 * Returns the messages that contain the given whole words, in a map by search segment id and then by the key of the
 * word. The map has no entry for a word that no message of the segment contains. Only one block can contain a given
 * word: the last block whose first term is equal to the word or comes before it.
 */
export async function readWords(
  db: Queryable,
  segments: readonly Segment[],
  words: readonly WantedTerm[],
): Promise<Map<string, Map<string, Places>>> {
  if (segments.length === 0 || words.length === 0) return new Map()
  const { rows } = await db.query<{ id: string; n: number; terms: Buffer }>({
    name: 'read-search-words',
    text: `
      select s.id, w.n::int, b.terms
      from unnest($1::bigint[]) s (id)
      cross join unnest($2::bytea[]) with ordinality w (term, n)
      cross join lateral (
        select terms from search_blocks
        where segment_id = s.id and first_term <= w.term order by first_term desc limit 1
      ) b`,
    values: [segments.map(({ id }) => id), words.map(bytesOf)],
  })
  const ranges = new Map(segments.map((segment) => [segment.id, segment]))
  const found = new Map<string, Map<string, Places>>()
  const slice = createSlices()
  for (const { id, n, terms } of rows) {
    await slice()
    const ofSegment = found.getOrInsertComputed(id, () => new Map())
    addPlaces(ofSegment, ranges.get(id)!, words[n - 1]!, terms)
  }
  return found
}

/**
 * Limits the number of search blocks that a query reads for one prefix to about 250 KB, because a sender can write
 * millions of words with the same prefix.
 */
const BEGINNING_BLOCKS = 128

/**
 * Returns the messages of a search segment that contain a word with a wanted prefix, in a map by the key of the prefix.
 * If too many words have a prefix, the function returns all messages of the segment for this prefix.
 */
export async function readBeginnings(
  db: Queryable,
  segment: Segment,
  beginnings: readonly WantedTerm[],
  blocksMax = BEGINNING_BLOCKS,
): Promise<Map<string, Places>> {
  const found = new Map<string, Places>()
  if (beginnings.length === 0) return found
  const { rows } = await db.query<{ n: number; terms: Buffer }>({
    name: 'read-search-beginnings',
    // Every word that begins with a prefix sorts before the prefix followed by the byte 0xff, because this byte never
    // occurs in UTF-8.
    text: `
      select w.n::int, b.terms
      from unnest($2::bytea[]) with ordinality w (term, n)
      cross join lateral (
        (select terms from search_blocks
         where segment_id = $1 and first_term <= w.term order by first_term desc limit 1)
        union all
        (select terms from search_blocks
         where segment_id = $1 and first_term > w.term and first_term < w.term || '\\xff'::bytea
         order by first_term limit $3)
      ) b`,
    values: [segment.id, beginnings.map(bytesOf), blocksMax],
  })
  const slice = createSlices()
  const blocks = beginnings.map(() => 0)
  for (const { n, terms } of rows) {
    await slice()
    blocks[n - 1]!++
    addPlaces(found, segment, beginnings[n - 1]!, terms)
  }
  for (const [n, beginning] of beginnings.entries()) {
    if (blocks[n]! >= blocksMax) found.set(wantedKey(beginning), Places.all(segment))
  }
  return found
}

/**
 * Reads one block of the search index for a wanted word or prefix. The function adds the messages that the block lists
 * for the wanted word to the result.
 */
function addPlaces(
  found: Map<string, Places>,
  range: LeafRange,
  wanted: WantedTerm,
  terms: Buffer,
): void {
  const { term, prefix } = wanted
  eachTermOf({ terms }, (there, postings) => {
    const isWanted = there === term || (prefix && there.startsWith(term))
    if (isWanted) {
      found.getOrInsertComputed(wantedKey(wanted), () => new Places(range)).add(postings)
    }
    return isWanted || there < term
  })
}

const bytesOf = ({ term }: WantedTerm): Buffer => Buffer.from(term, 'latin1')

/** Reads the blocks of a search segment in the order of their words, and reads several blocks in each query. */
export async function* segmentBlocks(db: Queryable, segmentId: string): AsyncGenerator<TermBlock> {
  for (let after: Buffer | null = null; ; ) {
    const { rows }: { rows: { first_term: Buffer; terms: Buffer }[] } = await db.query({
      name: 'segment-blocks',
      text: `select first_term, terms from search_blocks
             where segment_id = $1 and ($2::bytea is null or first_term > $2)
             order by first_term limit ${BLOCKS_AT_ONCE}`,
      values: [segmentId, after],
    })
    for (const { first_term, terms } of rows) {
      yield { firstTerm: first_term.toString('latin1'), terms }
    }
    const last = rows.at(-1)
    if (last === undefined || rows.length < BLOCKS_AT_ONCE) return
    after = last.first_term
  }
}

/**
 * Sets the number of search blocks that one query reads or writes. Together, 32 blocks have about 64 KB. A block with
 * many postings (entries for messages) has at most 8 KB.
 */
export const BLOCKS_AT_ONCE = 32

/**
 * Stores a new segment of the search index. The caller must already have stored the leaves (groups of messages) of the
 * segment.
 */
export async function insertSegment(
  db: Queryable,
  projectId: string,
  { firstLeaf, lastLeaf }: LeafRange,
): Promise<string> {
  const { rows } = await db.query<{ id: string }>({
    name: 'insert-search-segment',
    text: `insert into search_segments (project_id, first_leaf, last_leaf, since, until)
           select $1, $2, $3, min(since), max(until) from search_leaves
           where project_id = $1 and leaf between $2 and $3
           returning id`,
    values: [projectId, firstLeaf, lastLeaf],
  })
  return rows[0]!.id
}

/** Adds blocks of words to a search segment. */
export async function insertBlocks(
  db: Queryable,
  segmentId: string,
  blocks: readonly TermBlock[],
): Promise<void> {
  if (blocks.length === 0) return
  await db.query({
    name: 'insert-search-blocks',
    text: `insert into search_blocks (segment_id, first_term, terms)
           select $1, * from unnest($2::bytea[], $3::bytea[])`,
    values: [
      segmentId,
      blocks.map(({ firstTerm }) => Buffer.from(firstTerm, 'latin1')),
      blocks.map(({ terms }) => terms),
    ],
  })
}

/**
 * Adds a leaf (a group of messages) to the search index. @param rows lists the row numbers of the leaf's messages, in
 * the order of the messages' positions in the leaf.
 */
export async function insertLeaf(
  db: Queryable,
  projectId: string,
  { leaf, since, until }: Leaf,
  rows: readonly string[],
): Promise<void> {
  await db.query({
    name: 'insert-search-leaf',
    text: `insert into search_leaves (project_id, leaf, since, until, message_rows)
           values ($1, $2, $3, $4, $5::bigint[])`,
    values: [projectId, leaf, since, until, rows],
  })
}

/**
 * Returns the positions of deleted messages in the given leaves (groups of messages) of the search index, and tells
 * whether all their messages are deleted.
 */
export async function deletedPlaces(
  db: Queryable,
  projectId: string,
  { firstLeaf, lastLeaf }: LeafRange,
): Promise<{ deleted: Map<number, Set<number>>; isEmpty: boolean }> {
  const { rows } = await db.query<{ leaf: number; places: number[] | null; all: boolean | null }>({
    name: 'deleted-search-places',
    text: `select l.leaf, gone.places, cardinality(gone.places) = cardinality(l.message_rows) as "all"
           from search_leaves l
           cross join lateral (
             select array_agg(r.n::int - 1) as places
             from unnest(l.message_rows) with ordinality r (message_row, n)
             where not exists (select from messages m where m.row = r.message_row)
           ) gone
           where l.project_id = $1 and l.leaf between $2 and $3`,
    values: [projectId, firstLeaf, lastLeaf],
  })
  return {
    deleted: new Map(
      rows.flatMap(({ leaf, places }) =>
        places === null ? [] : [[leaf, new Set(places)] as const],
      ),
    ),
    isEmpty: rows.every(({ all }) => all === true),
  }
}
