/**
 * Sets the maximum number of header bytes that the authentication checks may read. Real mail has a few kilobytes of
 * header. The unfolding of a header field takes quadratic time in the number of its lines, so a longer header could
 * block a process.
 */
const HEADER_MAX_BYTES = 256 * 1024
const HEADER_LINES_MAX = 5_000
/** Sets how many bytes of a header field's name the code compares with known names. */
const NAME_MAX_BYTES = 128
/** Sets the maximum number of bytes of all From fields of a message together. */
const FROM_MAX_BYTES = 16 * 1024
/**
 * Sets the maximum number of lines of a message body that the DKIM check hashes. RFC 5321 §4.5.3.1.6 limits a line to
 * 1,000 bytes, and real mail has fewer than 10,000 blank lines.
 */
const BODY_LINES_MAX = 1_000_000
const LINE_MAX_BYTES = 64 * 1024
const BLANK_LINES_MAX = 10_000

const [TAB, LF, CR, SPACE, COLON, TILDE] = [0x09, 0x0a, 0x0d, 0x20, 0x3a, 0x7e]

/**
 * Decides which part of a message the authentication checks may read, because they take quadratic time for hostile
 * mail. They took a minute for a header of 400 KB in folded lines. They took 30 s and 10 GB for a signed body of 30 MB
 * of blank lines.
 * @returns `whole` if the authentication checks may read the whole message. The result `unsigned` means that they must
 * not hash the body for DKIM. The result `no` means that they must not even read the header. A header that two parsers
 * may read in two ways also gives `no`.
 */
export function authenticable(raw: Buffer): 'whole' | 'unsigned' | 'no' {
  let lines = 0
  let from = 0
  let isFrom = false
  let at = 0
  const names = new NameCheck()
  for (; at < raw.length; lines++) {
    const next = endOfLine(raw, at)
    if (endsHeader(raw, at, next)) break
    if (next > HEADER_MAX_BYTES || holdsBareReturn(raw, at, next) || !names.reads(raw, at, next)) {
      return 'no'
    }
    if (at === 0 || !isFolded(raw, at)) isFrom = isFromField(raw.toString('latin1', at, next))
    if (isFrom) from += next - at
    at = next
    if (lines > HEADER_LINES_MAX || from > FROM_MAX_BYTES) return 'no'
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

/**
 * Counts the header fields of each name in a message that the authentication checks may read. The names are in lower
 * case. The count matters, because a signature may cover only some of several fields with one name, while the mail
 * program shows another of them.
 */
export function countFields(raw: Buffer): Map<string, number> {
  const counts = new Map<string, number>()
  for (let at = 0; at < raw.length && at <= HEADER_MAX_BYTES; ) {
    const next = endOfLine(raw, at)
    if (endsHeader(raw, at, next)) break
    if (at === 0 || !isFolded(raw, at)) {
      const name = fieldName(raw.toString('latin1', at, Math.min(next, at + NAME_MAX_BYTES)))
      counts.set(name, (counts.get(name) ?? 0) + 1)
    }
    at = next
  }
  return counts
}

/**
 * Tells whether a line ends the header. An empty line ends the header. The first line of the message is an exception,
 * because the library mailauth would read on without a limit. The parser postal-mime also ends the header at a line `CR
 * CR LF`, where mailauth reads on. With such a line, a forger could put another header and body before the signed
 * header.
 */
const endsHeader = (raw: Buffer, at: number, next: number): boolean =>
  at > 0 && (raw[at] === LF || (raw[at] === CR && next === at + 2 && raw[at + 1] === LF))

/**
 * Tells whether a line holds a CR before its end (RFC 5322 §2.2), or holds only CRs. An additional CR directly before
 * the line end does not count, because all parsers ignore it. It comes from programs that convert line ends twice.
 */
function holdsBareReturn(raw: Buffer, at: number, next: number): boolean {
  let end = raw[next - 1] === LF ? next - 1 : next
  while (end > at && raw[end - 1] === CR) end--
  return end === at ? next - at > 2 : raw.subarray(at, end).includes(CR)
}

/**
 * Checks the names of header fields line by line. A name may hold only visible ASCII characters, space and tab.
 * Otherwise two parsers may see different From fields, because postal-mime drops a byte order mark, and mailauth drops
 * a vertical tab.
 */
class NameCheck {
  #isOpen = false
  #isOdd = false

  /** Reads the next line. @returns false if the line completes a field name with a forbidden character. */
  reads(raw: Buffer, at: number, next: number): boolean {
    if (at === 0 || (raw[at] !== SPACE && raw[at] !== TAB)) {
      this.#isOpen = true
      this.#isOdd = false
    }
    if (!this.#isOpen) return true
    for (let n = at; n < next; n++) {
      const byte = raw[n]!
      if (byte === COLON) {
        this.#isOpen = false
        return !this.#isOdd
      }
      const isPlain = (byte >= SPACE && byte <= TILDE) || [TAB, CR, LF].includes(byte)
      if (!isPlain) this.#isOdd = true
    }
    return true
  }
}

function endOfLine(raw: Buffer, at: number): number {
  const end = raw.indexOf(LF, at)
  return end === -1 ? raw.length : end + 1
}

/**
 * Recognises a From field as the library mailauth does. Blanks may surround the field name From, and the colon may be
 * on the next line.
 */
const isFromField = (line: string): boolean => fieldName(line) === 'from'

/** Returns the name of the field that begins with a line, in lower case. */
const fieldName = (line: string): string => line.split(':', 1)[0]!.trim().toLowerCase()

/**
 * Lists the blanks at which the library mailauth folds a header field: tab, VT, FF, space and NBSP. RFC 5322 allows
 * only space and tab.
 */
const FOLDS = [0x09, 0x0b, 0x0c, 0x20, 0xa0]

/**
 * Tells whether a folded line of a header field begins at a given offset. A folded line of only blanks still belongs to
 * its header field.
 */
const isFolded = (raw: Buffer, at: number): boolean => FOLDS.includes(raw[at]!)

function isBlank(raw: Buffer, at: number, next: number): boolean {
  for (let n = at; n < next; n++) if (raw[n]! > 0x20) return false
  return true
}
