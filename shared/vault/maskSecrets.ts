/**
 * Masks secrets in a text, even if a secret appears only after one or several decoding steps. A hostile server can
 * still hide a secret in an encoding of its own, as SECURITY.md states.
 */
import {
  createRunDecoder,
  narrowed,
  type RunDecoder,
  unescapedViews,
  type View,
} from './decodedViews.ts'
import { NeedleSearch, type Range } from './needleSearch.ts'

/** Holds the text that replaces a secret in a masked text. */
const MASK = '[masked]'
/** Sets the length of the shortest masked secret, because a shorter text can occur in any longer text by chance. */
export const SECRET_MIN_LENGTH = 3

/** Sets the maximum number of nested layers of encoding that the masker searches for secrets. */
const DEPTH_MAX = 3
/**
 * Limits the work of the masker: the number of characters that it searches in all decoded texts together, divided by
 * the length of the masked text. The service does not show a text that would need more decoding.
 */
const WORK_PER_CHARACTER = 24
const WORK_MIN = 256 * 1024
/**
 * Sets the minimum length of the base64 core of a secret. The core consists of the base64 characters that do not depend
 * on neighbouring bytes. The masker also searches for cores, because it cannot decode base64 text whose letter case was
 * changed.
 */
const BASE64_CORE_MIN_LENGTH = 5
const LINE_MIN_LENGTH = 8
/**
 * Sets the length in bytes from which the masker always decodes a run of encoded bytes. It decodes such a run even if
 * every secret is longer than the run.
 */
const RUN_BYTES_MAX = 16

/**
 * Reports that a text needs too much decoding for the masking. The service must then show no part of the text to the
 * caller.
 */
export class TooManyLayersError extends Error {}

type Work = { left: number }

/**
 * Finds and masks the same secrets in several texts. Masking a text of a megabyte takes up to a second of processor
 * time, so workers/vault runs the masker in a child process.
 */
export class Masker {
  readonly #needles: NeedleSearch
  readonly #runs: RunDecoder

  /**
   * Creates a masker for the given secrets. @param secrets holds values of at least SECRET_MIN_LENGTH characters. The
   * masker does not mask shorter secrets.
   */
  constructor(secrets: Iterable<string>) {
    const needles = new Set<string>()
    for (const secret of secrets) for (const needle of needlesOf(secret)) needles.add(needle)
    this.#needles = new NeedleSearch([...needles])
    let shortest = RUN_BYTES_MAX
    for (const { length } of needles) shortest = Math.min(shortest, length)
    this.#runs = createRunDecoder(shortest)
  }

  /** Masks the secrets in a text. @throws {TooManyLayersError} if the text needs too much decoding. */
  text(text: string): string {
    return this.bytes(Buffer.from(text)).toString()
  }

  /** Masks the secrets in UTF-8 bytes. @throws {TooManyLayersError} if the text needs too much decoding. */
  bytes(bytes: Buffer): Buffer {
    const source = bytes.toString('latin1')
    const work = { left: Math.max(WORK_MIN, source.length * WORK_PER_CHARACTER) }
    const ranges = merged(this.#find(source, DEPTH_MAX, work))
    if (ranges.length === 0) return bytes
    const parts: Buffer[] = []
    let at = 0
    for (const { start, end } of ranges) {
      parts.push(bytes.subarray(at, start), Buffer.from(MASK))
      at = end
    }
    return Buffer.concat([...parts, bytes.subarray(at)])
  }

  /**
   * Finds the ranges of a text that hold a secret in any encoding.
   * @param siblings maps each already searched text to its depth. All of these texts come from the same source text,
   * from which escapes were removed. Different orders of removal often give the same text. The map prevents a second
   * search of this text.
   */
  #find(text: string, depth: number, work: Work, siblings = new Map<string, number>()): Range[] {
    work.left -= text.length
    if (work.left < 0) throw new TooManyLayersError()
    const found = this.#plain(text)
    if (depth === 0) return found
    const narrow = narrowed(text)
    if (narrow !== null) addBack(found, narrow, this.#find(narrow.text, depth, work))
    for (const view of unescapedViews(text)) {
      if ((siblings.get(view.text) ?? -1) >= depth) continue
      siblings.set(view.text, depth)
      addBack(found, view, this.#find(view.text, depth - 1, work, siblings))
    }
    for (const view of this.#runs.decode(text)) {
      addBack(found, view, this.#inBytes(view.text, depth - 1, work))
    }
    return merged(found)
  }

  /**
   * Searches decoded bytes for secrets. The function searches for further layers of encoding only in the runs of
   * readable text.
   */
  #inBytes(bytes: string, depth: number, work: Work): Range[] {
    const view = this.#runs.textOf(bytes)
    if (view === null) return this.#find(bytes, depth, work)
    work.left -= bytes.length
    const found = this.#plain(bytes)
    addBack(found, view, this.#find(view.text, depth, work))
    return merged(found)
  }

  #plain = (text: string): Range[] => this.#needles.find(text.toLowerCase())
}

/**
 * Adds the ranges in which a decoded text holds secrets, as ranges of the source text. The ranges do not overlap, so
 * the time is at most proportional to the length of the decoded text.
 */
function addBack(found: Range[], view: View, ranges: readonly Range[]): void {
  for (const range of ranges) found.push(back(view, range))
}

/** Converts a range of a decoded text into the range of the source text. */
function back({ from, to }: View, { start, end }: Range): Range {
  let [first, last] = [from[start]!, to[start]!]
  for (let n = start + 1; n < end; n++) {
    first = Math.min(first, from[n]!)
    last = Math.max(last, to[n]!)
  }
  return { start: first, end: last }
}

/** Joins overlapping or touching ranges of secrets. */
function merged(ranges: Range[]): Range[] {
  const joined: Range[] = []
  for (const { start, end } of ranges.sort((one, other) => one.start - other.start)) {
    const last = joined.at(-1)
    if (last !== undefined && start <= last.end) last.end = Math.max(last.end, end)
    else joined.push({ start, end })
  }
  return joined
}

/** Returns the byte strings that represent a secret, in lower case. */
function needlesOf(secret: string): string[] {
  const lines = secret.split(/\r\n|\r|\n/)
  const parts = lines.length === 1 ? [] : lines.filter((line) => line.length >= LINE_MIN_LENGTH)
  const spellings = [secret, secret.trim(), ...parts].flatMap((text) => [
    ...[text, text.toLowerCase(), text.toUpperCase(), text.normalize('NFC'), text.normalize('NFD')],
    ...(text.includes(' ') ? [text.replaceAll(' ', '+')] : []),
  ])
  const long = [...new Set(spellings)].filter((text) => text.length >= SECRET_MIN_LENGTH)
  return long.flatMap((text) => {
    const bytes = Buffer.from(text)
    const wide = Buffer.from(text, 'utf16le')
    const encoded = [bytes, wide, Buffer.from(wide).swap16()]
    if (/^[\0-\xff]*$/.test(text)) encoded.push(Buffer.from(text, 'latin1'))
    return [...encoded.map((one) => one.toString('latin1')), ...base64Cores(bytes)].map((one) =>
      one.toLowerCase(),
    )
  })
}

/**
 * Returns the base64 text of a secret for each of the three possible alignments of its bytes. The function cuts off the
 * first and last base64 characters that also depend on the neighbouring bytes.
 */
function base64Cores(bytes: Buffer): string[] {
  return [0, 1, 2].flatMap((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64')
    const core = text.slice(
      Math.ceil((before * 8) / 6),
      Math.floor(((before + bytes.length) * 8) / 6),
    )
    if (core.length < BASE64_CORE_MIN_LENGTH) return []
    return [core, core.replaceAll('+', '-').replaceAll('/', '_')]
  })
}
