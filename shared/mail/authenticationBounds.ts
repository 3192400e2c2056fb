/** Header fields of real mail take some kilobytes; each line of a folded field costs as much as all lines before it. */
const HEADER_MAX_BYTES = 256 * 1024
const HEADER_LINES_MAX = 5_000
/** Of a From field, whose addresses are taken apart one by one. */
const FROM_MAX_BYTES = 16 * 1024
/** Past these no body is hashed: RFC 5321 §4.5.3.1.6 ends a line at 1,000 bytes, and nobody signs ten thousand blank ones. */
const BODY_LINES_MAX = 1_000_000
const LINE_MAX_BYTES = 64 * 1024
const BLANK_LINES_MAX = 10_000

const [CR, LF] = [0x0d, 0x0a]

/**
 * How much of a message its sender may be checked by. Checks take time that grows with the square of what they were not
 * made for: 400 KB of folded lines took a minute, 30 MB of blank lines under one signature 30 s and 10 GB.
 * @returns `unsigned` where the body is not to be hashed; `no` where not even the header is to be read.
 */
export function authenticable(raw: Buffer): 'whole' | 'unsigned' | 'no' {
  let lines = 0
  let from = 0
  let isFrom = false
  let at = 0
  for (; at < raw.length; lines++) {
    const next = endOfLine(raw, at)
    if (isBlank(raw, at, next) && !isFolded(raw, at)) break
    if (at === 0 || !isFolded(raw, at)) isFrom = isFromField(raw.toString('latin1', at, next))
    if (isFrom) from += next - at
    at = next
    if (lines > HEADER_LINES_MAX || at > HEADER_MAX_BYTES || from > FROM_MAX_BYTES) return 'no'
  }
  let blank = 0
  for (lines = 0; at < raw.length; lines++) {
    const next = endOfLine(raw, at)
    blank = isBlank(raw, at, next) ? blank + 1 : 0
    if (lines > BODY_LINES_MAX || next - at > LINE_MAX_BYTES || blank > BLANK_LINES_MAX) {
      return 'unsigned'
    }
    at = next
  }
  return 'whole'
}

function endOfLine(raw: Buffer, at: number): number {
  const end = raw.indexOf(LF, at)
  return end === -1 ? raw.length : end + 1
}

/** As the library reads it: blanks may stand around the name, and the colon on the next line. */
const isFromField = (line: string): boolean =>
  line.split(':', 1)[0]!.trim().toLowerCase() === 'from'

/** Any blank folds a field for the library, whatever RFC 5322 says: tab, VT, FF, space, and NBSP. */
const FOLDS = [0x09, 0x0b, 0x0c, 0x20, 0xa0]

/** Folded lines of nothing but blanks belong to their field. */
const isFolded = (raw: Buffer, at: number): boolean =>
  FOLDS.includes(raw[at]!) || (raw[at] === CR && raw[at + 1] !== LF)

function isBlank(raw: Buffer, at: number, next: number): boolean {
  for (let n = at; n < next; n++) if (raw[n]! > 0x20) return false
  return true
}
