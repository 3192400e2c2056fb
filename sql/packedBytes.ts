/** Byte strings in one parameter. `substring(bytes from start for length)` returns each. */
export type PackedBytes = { bytes: Buffer; starts: number[]; lengths: number[] }

/** Packs byte strings. An array of `bytea` would travel in hexadecimal: twice the bytes, and each is encoded and decoded. */
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
