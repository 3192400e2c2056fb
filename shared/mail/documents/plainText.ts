import { analyse } from 'chardet'
import { type DocumentText, TextWriter } from './document.ts'

/** Sets how many bytes of a file the file reader uses to guess the charset. */
const GUESSED_BYTES = 64 * 1024
/** Sets the largest number of bytes of one character in any charset. */
const BYTES_PER_CHAR = 4

/** Reads a plain text file in any charset. */
export function readPlainText(bytes: Uint8Array): DocumentText {
  const out = new TextWriter()
  out.write(decodeText(bytes))
  return out.done()
}

/**
 * Decodes text. A byte order mark decides about the charset. Without such a mark, the text is UTF-8 if its bytes are
 * valid UTF-8, and otherwise has the most likely charset.
 */
export function decodeText(bytes: Uint8Array, maxChars = 2_000_000): string {
  const part = bytes.subarray(0, maxChars * BYTES_PER_CHAR)
  const text = decoderOf(charsetOf(part)).decode(part)
  return text.slice(0, maxChars)
}

function charsetOf(bytes: Uint8Array): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le'
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf-16be'
  const head = bytes.subarray(0, GUESSED_BYTES)
  const [even, odd] = nullsOf(head)
  if (odd > head.length / 8) return 'utf-16le'
  if (even > head.length / 8) return 'utf-16be'
  const holdsEscape = head.includes(27)
  // The text counts as UTF-8 even if the end of the examined bytes cuts off its last character.
  if (!holdsEscape && isUtf8(bytes)) return 'utf-8'
  for (const { name } of analyse(head)) {
    if (/^(?:UTF-(?:16|32)|ASCII)/.test(name)) continue
    const label = name === 'ISO-8859-1' ? 'windows-1252' : name.toLowerCase()
    if (isKnown(label)) return label
  }
  return 'windows-1252'
}

function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true })
    return true
  } catch {
    return false
  }
}

function isKnown(label: string): boolean {
  try {
    decoderOf(label)
    return true
  } catch {
    return false
  }
}

function nullsOf(bytes: Uint8Array): [even: number, odd: number] {
  const counts: [number, number] = [0, 0]
  for (let at = 0; at < bytes.length; at++) if (bytes[at] === 0) counts[at % 2 === 0 ? 0 : 1]++
  return counts
}

/**
 * Returns a decoder for a charset of the WHATWG Encoding standard. @throws {RangeError} if the label names no charset.
 */
export const decoderOf = (label: string): TextDecoder =>
  new TextDecoder(label as ConstructorParameters<typeof TextDecoder>[0])
