/**
 * Holds several byte strings in one SQL parameter. The SQL expression `substring(bytes from start for length)` extracts
 * one byte string.
 */
export type PackedBytes = { bytes: Buffer; starts: number[]; lengths: number[] }

/**
 * Packs byte strings into one SQL parameter. An array of `bytea` would be slower, because the client sends it in
 * hexadecimal with twice as many bytes and converts each element separately.
 */
export function packBytes(parts: readonly Uint8Array[]): PackedBytes {
  const lengths = parts.map((part) => part.length)
  let start = 1
  const starts = lengths.map((length) => {
    start += length
    return start - length
  })
  const [first] = parts
  const bytes =
    parts.length === 1 && first !== undefined
      ? Buffer.from(first.buffer, first.byteOffset, first.byteLength)
      : Buffer.concat(parts)
  return { bytes, starts, lengths }
}

/**
 * Writes an SQL parameter in the binary form of an array of one dimension (array_recv). Each array element is in the
 * binary form of its own PostgreSQL type.
 */
export function binaryArray(typeOid: number, elements: readonly Uint8Array[]): Buffer {
  const head = Buffer.allocUnsafe(20)
  for (const [n, value] of [1, 0, typeOid, elements.length, 1].entries()) {
    head.writeInt32BE(value, 4 * n)
  }
  const parts = elements.flatMap((element) => {
    const length = Buffer.allocUnsafe(4)
    length.writeInt32BE(element.length)
    return [length, element]
  })
  return Buffer.concat([head, ...parts])
}
