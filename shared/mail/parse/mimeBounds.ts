import PostalMime, { type Email } from 'postal-mime'

/**
 * Sets the maximum number of parsed MIME parts of a message. Usual mail has a few parts, and a delivery report has a
 * few dozen. The service keeps the whole raw mail in any case.
 */
const PARTS_MAX = 2_000
/**
 * Sets the maximum number of parsed lines of a message. The limit is twice the number of lines of a message with the
 * maximum size and usual line lengths.
 */
const LINES_MAX = 1_000_000
const NESTING_MAX = 100
const HEADERS_MAX_BYTES = 1024 * 1024
const RFC822_NESTING_MAX = 5

/** Describes internals of postal-mime 4.0.0 that the types of postal-mime omit. */
type Steps = {
  av: Uint8Array
  /** Holds the offset in the buffer `av` at which the next line begins. */
  readPos: number
  readLine(): { bytes: Uint8Array; done: boolean }
  processLine(line: Uint8Array, isFinal: boolean): Promise<void>
  currentNode: object
}

/**
 * Parses the first {@link PARTS_MAX} parts and {@link LINES_MAX} lines of a message. The limits exist because
 * postal-mime makes an object of each part and line. For example, 10 MB of empty parts took 7 s and 2.5 GB, and eleven
 * million lines of one letter took 6 s and 2.3 GB. The code counts the parts inside the parser, because a separate
 * search would not find every spelling of a boundary.
 * @returns the parsed mail. The field `parts` counts the MIME parts below the top level. It is 0 if the boundary of the
 * multipart does not occur in the message.
 * @throws the errors of postal-mime.
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
