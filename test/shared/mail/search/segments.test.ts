import { expect, test } from 'bun:test'
import {
  eachPosting,
  keptPostings,
  LEAF_MESSAGES,
  leafPostings,
  leb128,
  readLeb128,
} from '../../../../shared/mail/search/postings.ts'
import { parseSearch } from '../../../../shared/mail/search/searchQuery.ts'
import {
  mayMatch,
  Places,
  segmentMatches,
  wantedKey,
} from '../../../../shared/mail/search/segmentMatches.ts'
import {
  BlockWriter,
  byteString,
  eachTermOf,
  type TermBlock,
} from '../../../../shared/mail/search/termBlocks.ts'
import { neighboursToMerge } from '../../../../sql/mail/search/buildSegments.ts'
import { createRandom } from '../../../chaos/random.ts'

const listed = (bytes: Uint8Array) => {
  const all: [number, number][] = []
  eachPosting(bytes, (leaf, place) => all.push([leaf, place]))
  return all
}

test('postings (message numbers of a search term) are read exactly as they were written, even if several index leaves are joined', () => {
  const random = createRandom(1, 'postings')
  const draw = (below: number) => random.int(0, below - 1)
  for (let round = 0; round < 200; round++) {
    const leaves = Array.from(
      { length: 1 + draw(5) },
      (_, n) => n * 1000 + 1 + draw(900) + draw(2) * 2 ** 30,
    ).sort((a, b) => a - b)
    const written = leaves.map((leaf) => {
      const share = draw(100)
      const places = Array.from({ length: LEAF_MESSAGES }, (_, place) => place).filter(
        () => draw(100) <= share,
      )
      return [leaf, places.length === 0 ? [0] : places] as const
    })
    const bytes = Buffer.concat(written.map(([leaf, places]) => leafPostings(leaf, places)))
    const all = written.flatMap(([leaf, places]) => places.map((place) => [leaf, place] as const))
    expect(listed(bytes)).toEqual(all as [number, number][])
    const isEven = (leaf: number, place: number) => (leaf + place) % 2 === 0
    expect(listed(keptPostings(bytes, isEven))).toEqual(
      all.filter(([leaf, place]) => isEven(leaf, place)) as [number, number][],
    )
  }
})

test('message numbers up to 2^31 in the search index are read exactly as written', () => {
  for (const value of [0, 1, 127, 128, 16_383, 16_384, 2 ** 30, 2 ** 31 - 1]) {
    const bytes = Uint8Array.from(leb128(value))
    expect(readLeb128(bytes, 0)).toEqual([value, bytes.length])
  }
})

test('search terms are read from the blocks of the search index in the order of their bytes', () => {
  const random = createRandom(2, 'terms')
  const letters = ['a', 'b', 'é', '東', '京', '𝔘', '\ue000', '@', '.', '0']
  const words = new Set(
    Array.from({ length: 3_000 }, () =>
      byteString(Array.from({ length: random.int(1, 40) }, () => random.pick(letters)).join('')),
    ),
  )
  const terms = [...words].sort((a, b) => (a < b ? -1 : 1))
  const writer = new BlockWriter()
  const blocks: TermBlock[] = []
  for (const [n, term] of terms.entries()) {
    writer.add(term, Buffer.alloc(n % 500 === 0 ? 5_000 : n % 20, n))
    if (n % 700 === 0) blocks.push(...writer.take(false))
  }
  blocks.push(...writer.take(true))
  const read: string[] = []
  for (const block of blocks) {
    const start = read.length
    eachTermOf(block, (term, postings) => {
      const n = read.push(term) - 1
      expect(postings.length).toBe(n % 500 === 0 ? 5_000 : n % 20)
      return true
    })
    expect(read[start]).toBe(block.firstTerm)
    // A block of search terms may exceed a quarter of a database page only if it contains a single term.
    if (block.terms.length > 1_950) expect(read.length - start).toBe(1)
  }
  expect(read).toEqual(terms)
  const bytes = read.map((term) => Buffer.from(term, 'latin1'))
  expect(bytes.toSorted(Buffer.compare)).toEqual(bytes)
})

test('a search in one segment of the search index finds the messages that match every clause of the search query', () => {
  const range = { firstLeaf: 4, lastLeaf: 6 }
  const placesOf = new Map(
    Object.entries({ a: [0, 1, 500], b: [1, 500], c: [2], 'd*': [0, 2] }).map(([term, all]) => {
      const places = new Places(range)
      for (const n of all) {
        places.add(leafPostings(4 + Math.floor(n / LEAF_MESSAGES), [n % LEAF_MESSAGES]))
      }
      return [term, places] as const
    }),
  )
  const found = (...typed: string[]) =>
    segmentMatches(range, typed.map(parseSearch), placesOf)
      .byLeaf()
      .flatMap(([leaf, places]) => places.map((place) => (leaf - 4) * LEAF_MESSAGES + place))
  expect(wantedKey({ term: 'd', prefix: true })).toBe('d*')
  expect(found('a')).toEqual([0, 1, 500])
  expect(found('a b')).toEqual([1, 500])
  expect(found('a', 'b')).toEqual([1, 500])
  expect(found('"b a"')).toEqual([1, 500])
  expect(found('a -b')).toEqual([0, 1, 500])
  expect(found('b OR c')).toEqual([1, 2, 500])
  expect(found('b OR c a')).toEqual([1, 500])
  expect(found('nobody')).toEqual([])
  expect(found('a nobody')).toEqual([])
  // If mayMatch returns true for a query with a prefix, the search reads the terms that begin with this prefix.
  const may = (typed: string) => mayMatch([parseSearch(typed)], placesOf)
  expect(['a b', 'nobody OR a', 'abc*', 'a -nobody', 'abc* a'].map(may)).not.toContain(false)
  expect(['nobody', 'abc* nobody', '"a nobody"', 'a nobody'].map(may)).not.toContain(true)
})

test('the sixteen oldest neighbouring segments of equal size in the search index are merged into one segment', () => {
  const segments: { firstLeaf: number; lastLeaf: number }[] = []
  const sizes = () => segments.map(({ firstLeaf, lastLeaf }) => lastLeaf - firstLeaf + 1)
  for (let leaf = 1; leaf <= 1_000; leaf++) {
    segments.push({ firstLeaf: leaf, lastLeaf: leaf })
    for (let merged = neighboursToMerge(segments); merged !== null; ) {
      const at = segments.indexOf(merged[0]!)
      segments.splice(at, merged.length, {
        firstLeaf: merged[0]!.firstLeaf,
        lastLeaf: merged.at(-1)!.lastLeaf,
      })
      merged = neighboursToMerge(segments)
    }
    expect(segments.every((one, n) => one.firstLeaf === (segments[n - 1]?.lastLeaf ?? 0) + 1)).toBe(
      true,
    )
  }
  // The 1,000 leaves (parts) of the search index become 3 segments of 256 leaves, 14 segments of 16 leaves, and 8
  // segments of one leaf.
  expect(sizes()).toEqual([
    ...Array<number>(3).fill(256),
    ...Array<number>(14).fill(16),
    ...Array<number>(8).fill(1),
  ])
})
