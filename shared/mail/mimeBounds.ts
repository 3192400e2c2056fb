/** Parts of a message that are read; the original is kept whole. Mail programs make a few, reports a few dozen. */
const PARTS_MAX = 2_000
/** Delimiters that a message may declare; more than a forwarded chain ever does. */
const BOUNDARIES_MAX = 10_000

const BOUNDARY = /boundary[ \t]*=[ \t]*(?:"([^"\r\n]{1,200})"|([^\s";]{1,200}))/gi

/**
 * The message up to its first {@link PARTS_MAX} parts. A parser makes objects of every part: three megabytes of empty
 * ones took it 2.5 s and 800 MB, and ten times that fits into one message.
 */
export function withBoundedParts(raw: Uint8Array): Uint8Array {
  const bytes = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
  const text = bytes.toString('latin1')
  const boundaries = new Set<string>()
  for (const [, quoted, bare] of text.matchAll(BOUNDARY)) {
    boundaries.add(quoted ?? bare ?? '')
    if (boundaries.size > BOUNDARIES_MAX) break
  }
  if (boundaries.size === 0) return raw
  let parts = 0
  for (let at = text.indexOf('\n--'); at !== -1; at = text.indexOf('\n--', at + 3)) {
    const end = text.indexOf('\n', at + 3)
    const line = text.slice(at + 3, end === -1 ? undefined : end).trimEnd()
    if (!boundaries.has(line)) continue
    parts++
    if (parts > PARTS_MAX) return bytes.subarray(0, at + 1)
  }
  return raw
}
