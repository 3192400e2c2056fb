import PostalMime, { type Email } from 'postal-mime'

/** Parts of a message that are read; the original is kept whole. Mail programs make a few, reports a few dozen. */
const PARTS_MAX = 2_000
/** Lines that are read: twice as many as the largest message has whose lines are as long as mail programs make them. */
const LINES_MAX = 1_000_000
const NESTING_MAX = 100
const HEADERS_MAX_BYTES = 1024 * 1024
const RFC822_NESTING_MAX = 5

/** What the parser does for each line (postal-mime 4.0.0); its types leave it out. */
type Steps = {
  av: Uint8Array
  /** Where in `av` the next line begins. */
  readPos: number
  readLine(): { bytes: Uint8Array; done: boolean }
  processLine(line: Uint8Array, isFinal: boolean): Promise<void>
  currentNode: object
}

/**
 * Parses a message up to its first {@link PARTS_MAX} parts and {@link LINES_MAX} lines. The parser makes objects of each:
 * ten megabytes of empty parts took it 7 s and 2.5 GB, eleven million lines of one letter 6 s and 2.3 GB. Parts are
 * counted as the parser finds them, for a boundary can be written in more ways than a search for it would know.
 * @returns also how many parts there were below the whole: 0 where a multipart's boundary never came.
 * @throws what the parser throws.
 */
export async function parseBounded(
  raw: Uint8Array,
): Promise<{ email: Email; isWhole: boolean; parts: number }> {
  const parser = new PostalMime({
    maxNestingDepth: NESTING_MAX,
    maxHeadersSize: HEADERS_MAX_BYTES,
    maxRfc822NestingDepth: RFC822_NESTING_MAX,
    forceRfc822Attachments: true,
  })
  const steps = parser as unknown as Steps
  const [readLine, processLine] = [steps.readLine.bind(parser), steps.processLine.bind(parser)]
  let lines = 0
  let parts = 0
  let isWhole = true
  steps.readLine = () => {
    const line = readLine()
    lines++
    if (line.done || (lines < LINES_MAX && parts < PARTS_MAX)) return line
    isWhole = false
    steps.readPos = steps.av.length
    return { ...line, done: true }
  }
  steps.processLine = async (line, isFinal) => {
    const before = steps.currentNode
    await processLine(line, isFinal)
    if (steps.currentNode !== before) parts++
  }
  return { email: await parser.parse(raw), isWhole, parts }
}
