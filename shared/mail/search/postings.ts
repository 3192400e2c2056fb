/**
 * Reads and writes the postings of a term, which are the messages that hold the term. The search index groups a
 * project's messages in leaves of at most LEAF_MESSAGES messages. Each leaf has a number that is unique in the project.
 * Each message has a place (an index) in its leaf.
 *
 * For each leaf (group of messages), the postings hold the leaf's number (LEB128), the number of listed messages, and
 * one byte for each listed message with its place (index) in the leaf. If the number of listed messages is 0, a bitmap
 * of the messages follows. No byte depends on earlier leaves, so the service can join neighbouring search segments by
 * appending their postings.
 */

/** Sets the maximum number of messages in one leaf (a group of messages) of a search segment. */
export const LEAF_MESSAGES = 240
/**
 * Sets the number of bytes of text at which a leaf (a group of messages in the search index) is full, even with few
 * messages. Each search must read all words of the messages that wait for a full leaf. Without this limit, many long
 * messages would wait.
 */
export const LEAF_TEXT_BYTES = 2 * 1024 * 1024
/** Sets the size in bytes of a bitmap with one bit for each message of a leaf (a group of messages). */
const BITMAP_BYTES = LEAF_MESSAGES / 8

/**
 * Tells whether the search index keeps the entry of one message in the postings of a term (the list of messages with
 * this term).
 */
export type IsKept = (leaf: number, place: number) => boolean

/**
 * Writes the postings of a term for one leaf (a group of messages in the search index). @param places lists the indexes
 * of the messages within the leaf, ascending and not empty.
 */
export function leafPostings(leaf: number, places: readonly number[]): Buffer {
  const head = leb128(leaf)
  if (places.length < BITMAP_BYTES) return Buffer.from([...head, places.length, ...places])
  const bytes = Buffer.alloc(head.length + 1 + BITMAP_BYTES)
  bytes.set(head)
  for (const place of places) bytes[head.length + 1 + (place >> 3)]! |= 1 << (place & 7)
  return bytes
}

/**
 * Calls `visit` for each message in the postings of a term, with the message's leaf (group of messages) and its index
 * in the leaf.
 */
export function eachPosting(bytes: Uint8Array, visit: (leaf: number, place: number) => void): void {
  eachLeaf(bytes, (leaf, start, count) => {
    for (let n = start; n < start + (count || BITMAP_BYTES); n++) {
      if (count !== 0) visit(leaf, bytes[n]!)
      else {
        for (let bit = 0; bit < 8; bit++) {
          if (bytes[n]! & (1 << bit)) visit(leaf, (n - start) * 8 + bit)
        }
      }
    }
  })
}

/**
 * Sets one bit for each message in the postings of a term. Each leaf (group of messages) takes BITMAP_BYTES of `bits`,
 * and the bits of the first leaf begin at 0.
 */
export function setBits(bits: Uint8Array, firstLeaf: number, bytes: Uint8Array): void {
  eachLeaf(bytes, (leaf, start, count) => {
    const at = (leaf - firstLeaf) * BITMAP_BYTES
    for (let n = 0; n < (count || BITMAP_BYTES); n++) {
      const byte = bytes[start + n]!
      if (count === 0) bits[at + n]! |= byte
      else bits[at + (byte >> 3)]! |= 1 << (byte & 7)
    }
  })
}

/**
 * Calls `visit` for each leaf (group of messages) in the postings of a term, with the offset and the number of the
 * bytes that list the leaf's messages. If this number is 0, a bitmap of the messages begins at the offset.
 */
function eachLeaf(
  bytes: Uint8Array,
  visit: (leaf: number, start: number, count: number) => void,
): void {
  for (let at = 0; at < bytes.length; ) {
    const [leaf, countAt] = readLeb128(bytes, at)
    const count = bytes[countAt]!
    visit(leaf, countAt + 1, count)
    at = countAt + 1 + (count || BITMAP_BYTES)
  }
}

/**
 * Returns the postings of a term (the list of messages with this term) without the messages for which `isKept` returns
 * false.
 */
export function keptPostings(bytes: Uint8Array, isKept: IsKept): Buffer {
  const byLeaf = new Map<number, number[]>()
  eachPosting(bytes, (leaf, place) => {
    if (!isKept(leaf, place)) return
    const places = byLeaf.get(leaf)
    if (places === undefined) byLeaf.set(leaf, [place])
    else places.push(place)
  })
  return Buffer.concat([...byLeaf].map(([leaf, places]) => leafPostings(leaf, places)))
}

/**
 * Writes a number below 2^31 in groups of seven bits, the lowest group first. The high bit of a byte is 1 if another
 * group follows.
 */
export function leb128(value: number): number[] {
  const bytes: number[] = []
  let rest = value
  for (; rest > 0x7f; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80)
  bytes.push(rest)
  return bytes
}

/** Reads a number that {@link leb128} wrote. @returns the number, and the index of the byte after the number. */
export function readLeb128(bytes: Uint8Array, start: number): [value: number, end: number] {
  let value = 0
  let at = start
  for (let shift = 0; ; shift += 7) {
    const byte = bytes[at++]!
    value |= (byte & 0x7f) << shift
    if (byte < 0x80) return [value, at]
  }
}
