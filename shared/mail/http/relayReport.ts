/** Describes what a relay reports over HTTP about a copy that it took from us. */

/** Describes a bounce or a complaint, with the values that may identify the copy. */
export type RelayReport = {
  kind: 'bounce' | 'complaint'
  /** Is the recipient of the copy. */
  address: string
  /** Is the author of the message. */
  from: string
  /** Is the RFC 3463 code of a bounce; null: the relay gives no code. */
  status: string | null
  /** Explains the report in one line. */
  detail: string
  /** Lists the ids that the relay gave to the copy. */
  relayIds: string[]
  /** Lists the Message-IDs that may be ours. */
  messageIds: string[]
  /** Lists the possible envelope senders of the copy. */
  returnPaths: string[]
}

/** Longer replies are cut before they are read. */
const REPLY_MAX_CHARS = 1_000

/**
 * Returns the id in a relay's 250 reply: `250 2.0.0 Ok: queued as 4F2A…`, `250 Ok 0100018…-000000`, `250 2.6.0
 * <id@host> accepted`.
 * @returns null if the reply names no id.
 */
export function relayIdOf(reply: string): string | null {
  const words = reply
    .slice(0, REPLY_MAX_CHARS)
    .replace(/^250[ -]?(?:2\.\d+\.\d+)?/, '')
    .split(/[\s,;=]+/)
  // An id is long and has a digit. A word of a sentence has no digit.
  const id = words
    .map(relayIdOfWord)
    .findLast((word) => /^[\w.-]{8,200}$/.test(word) && /\d/.test(word))
  return id ?? null
}

const CLOSERS = '>)"\'.:'

/** Returns the id without brackets and without the relay's domain. */
export function relayIdOfWord(word: string): string {
  const [local = ''] = word.replace(/^[<("']+/, '').split('@', 1)
  // A pattern with `$` would start again at each bracket.
  let end = local.length
  while (end > 0 && CLOSERS.includes(local[end - 1]!)) end--
  return local.slice(0, end)
}
