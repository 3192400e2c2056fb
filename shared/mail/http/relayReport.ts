/** Describes what a mail relay reports over HTTP about a sent copy of a message. */
import { storableLine } from '../../storable.ts'

/** Describes a relay's report of a bounce or a complaint, with values that identify the sent copy of the message. */
export type RelayReport = {
  kind: 'bounce' | 'complaint'
  /** Holds the recipient of the reported copy. */
  address: string
  /** Holds the author of the reported message. */
  from: string
  /** Holds the RFC 3463 code of a bounce. Null means that the relay's report contains no RFC 3463 code. */
  status: string | null
  /** Explains the relay's report in one line. */
  detail: string
  /** Lists the ids that the relay gave to the sent copy of the message. */
  relayIds: string[]
  /** Lists the Message-IDs that may belong to a message of this service. */
  messageIds: string[]
  /** Lists the possible envelope senders of the sent copy. */
  returnPaths: string[]
}

/** Limits the characters of the explanation in a relay's report. */
const DETAIL_MAX_CHARS = 400

/**
 * Writes the explanation of a relay's report in one line. The explanation quotes the recipient's mail host, so it may
 * contain any character.
 */
export const detailOf = (text: string): string => storableLine(text, DETAIL_MAX_CHARS)

/** Removes the character U+0000 from a text of a relay's report, because PostgreSQL refuses this character. */
export const withoutNul = (text: string): string => text.replaceAll('\0', '')

/** Sets the maximum number of characters that the code reads of a relay's reply. */
const REPLY_MAX_CHARS = 1_000

/**
 * Returns the id in a relay's 250 reply, such as `250 2.0.0 Ok: queued as 4F2A…`, `250 Ok 0100018…-000000` or `250
 * 2.6.0 <id@host> accepted`.
 * @returns null if the relay's reply names no id.
 */
export function relayIdOf(reply: string): string | null {
  const words = reply
    .slice(0, REPLY_MAX_CHARS)
    .replace(/^250[ -]?(?:2\.\d+\.\d+)?/, '')
    .split(/[\s,;=]+/)
  // The id in a relay's reply has at least eight characters and a digit. Therefore no ordinary word of the reply counts
  // as an id.
  const id = words
    .map(relayIdOfWord)
    .findLast((word) => /^[\w.-]{8,200}$/.test(word) && /\d/.test(word))
  return id ?? null
}

const CLOSERS = '>)"\'.:'

/** Returns the id of a message at a relay, without brackets and without the relay's domain. */
export function relayIdOfWord(word: string): string {
  const [local = ''] = word.replace(/^[<("']+/, '').split('@', 1)
  // A loop removes the closing brackets at the end of the id, because a regular expression with `$` would start again
  // at each bracket and take quadratic time.
  let end = local.length
  while (end > 0 && CLOSERS.includes(local[end - 1]!)) end--
  return local.slice(0, end)
}
