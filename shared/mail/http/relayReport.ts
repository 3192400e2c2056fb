/** What a relay reports by HTTP about a copy that it took from us. */

/** A bounce or a complaint, and what may name the copy. */
export type RelayReport = {
  kind: 'bounce' | 'complaint'
  /** The recipient. */
  address: string
  /** The author of the message. */
  from: string
  /** The RFC 3463 code of a bounce; null: the relay gives none. */
  status: string | null
  /** One line. */
  detail: string
  /** Ids that the relay gave to the copy. */
  relayIds: string[]
  /** Message-IDs that may be ours. */
  messageIds: string[]
  /** Possible envelope senders of the copy. */
  returnPaths: string[]
}

/** Longer replies are cut before they are read. */
const REPLY_MAX_CHARS = 1_000

/**
 * The id in a relay's 250 answer: `250 2.0.0 Ok: queued as 4F2A…`, `250 Ok 0100018…-000000`, `250 2.6.0 <id@host> accepted`.
 * @returns null: the answer names none.
 */
export function relayIdOf(reply: string): string | null {
  const words = reply
    .slice(0, REPLY_MAX_CHARS)
    .replace(/^250[ -]?(?:2\.\d+\.\d+)?/, '')
    .split(/[\s,;=]+/)
  // An id is long and has a digit; a word of a sentence has none.
  const id = words
    .map(relayIdOfWord)
    .findLast((word) => /^[\w.-]{8,200}$/.test(word) && /\d/.test(word))
  return id ?? null
}

const CLOSERS = '>)"\'.:'

/** Without brackets and the relay's domain. */
export function relayIdOfWord(word: string): string {
  const [local = ''] = word.replace(/^[<("']+/, '').split('@', 1)
  // A pattern with `$` would begin anew at each bracket.
  let end = local.length
  while (end > 0 && CLOSERS.includes(local[end - 1]!)) end--
  return local.slice(0, end)
}
