import { createHash } from 'node:crypto'
import { firstWithin } from './firstWithin.ts'

/**
 * Sets the maximum number of identifiers that the service keeps of one References header. Of a longer list, the service
 * keeps only the first identifier and the latest ones (RFC 5537 §3.4.4 also does so).
 */
const REFERENCES_MAX = 200
/**
 * Sets the maximum number of characters of all identifiers that the service keeps of one header. The limit exists
 * because a page of the API holds the identifiers of hundreds of messages in memory.
 */
const REFERENCES_MAX_LENGTH = 16_000
/** Sets the maximum number of characters of a Message-ID, because RFC 5322 §2.1.1 limits a line to 998 characters. */
const MESSAGE_ID_MAX_LENGTH = 998
/**
 * Matches a Message-ID of RFC 5322 §3.6.4, lenient for real mail: one `@`, and no brackets, white space or controls.
 */
const MESSAGE_ID = /^<[^<>@\s\p{Cc}]+@[^<>@\s\p{Cc}]+>$/u
/**
 * Matches a Message-ID with a quoted local part. Exchange and other programs quote a local part with spaces or a second
 * `@`.
 */
const QUOTED_MESSAGE_ID = /^<"[^"<>\r\n\p{Cc}]+"@[^<>@\s\p{Cc}]+>$/u

/** Tells whether `text` is a Message-ID with its angle brackets. */
export function isMessageId(text: string): boolean {
  if (text.length > MESSAGE_ID_MAX_LENGTH) return false
  return MESSAGE_ID.test(text) || QUOTED_MESSAGE_ID.test(text)
}

/**
 * Returns the distinct Message-IDs of a References or In-Reply-To value, in order. The function drops text that is no
 * Message-ID.
 */
export function parseReferences(header: string | undefined): string[] {
  if (header === undefined) return []
  const ids = new Set<string>()
  for (const match of header.slice(0, 256 * 1024).matchAll(/<[^<>]{1,998}>/g)) {
    const id = match[0].replace(/[\r\n]+[ \t]*/g, '')
    if (isMessageId(id)) ids.add(id)
  }
  const [first, ...others] = ids
  if (first === undefined) return []
  const latestFirst = others.slice(1 - REFERENCES_MAX).toReversed()
  const kept = firstWithin(latestFirst, REFERENCES_MAX_LENGTH - first.length)
  return [first, ...kept.toReversed()]
}

/** Holds the header fields of a message that link it to a thread. */
export type ThreadLinks = {
  /** Holds the Message-ID that the header of the sent or received message contains. */
  messageId: string
  inReplyTo: string[]
  references: string[]
}

/** Returns the Message-IDs of a message's ancestors, the parent first. */
export function ancestors({ messageId, inReplyTo, references }: ThreadLinks): string[] {
  const nearestFirst = [...inReplyTo, ...references.toReversed()]
  return [...new Set(nearestFirst)].filter((id) => id !== messageId)
}

/**
 * Returns the References of a reply (RFC 5322 §3.6.4): the parent's References, then the parent's Message-ID. If the
 * parent has no References, its In-Reply-To takes their place, provided that this field names exactly one message.
 */
export function replyReferences({ messageId, inReplyTo, references }: ThreadLinks): string[] {
  const base = references.length > 0 ? references : inReplyTo.length === 1 ? inReplyTo : []
  return [...base.filter((id) => id !== messageId), messageId]
}

/** Replaces all reply prefixes of a subject by one `Re: `. */
export function replySubject(subject: string): string {
  // The subject may hold line breaks, because an earlier version of the service stored the line breaks of encoded
  // subjects.
  const line = subject.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
  return `Re: ${line.replace(/^(?:\s*re\s*(?:\[\d{1,4}\])?\s*:\s*)+/i, '')}`.trimEnd()
}

/**
 * Returns the SHA-256 of a Message-ID. The database indexes this hash instead of the Message-ID, because a Message-ID
 * can exceed the size of a Postgres index entry.
 */
export const messageIdHash = (messageId: string): Buffer =>
  createHash('sha256').update(messageId).digest()

/** Makes the stored identifier `<local.N@domain>` for a message if another message already has the same Message-ID. */
export function alternativeMessageId(messageId: string, n: number): string {
  const at = messageId.lastIndexOf('@')
  return `${messageId.slice(0, at)}.${n}${messageId.slice(at)}`
}

/** Matches `Re:` in the languages of mail programs, also with a number as in `Re[2]:`. */
const REPLY_PREFIX =
  /^\s*(?:re|aw|antw|ant|sv|vs|odp|rif|res|ynt|atb|vá|bls|σχετ|απ|отв|ответ|回复|答复|回覆|返信|رد|הב)\s*(?:\[\d{1,4}\]|\(\d{1,4}\)|\^\d{1,4})?\s*[:：]\s*/iu
const PREFIXES_MAX = 20

/**
 * Returns a subject without reply prefixes, in lower case and with single spaces. The field `isReply` tells whether the
 * subject had reply prefixes.
 */
export function baseSubject(subject: string): { base: string; isReply: boolean } {
  let base = subject
  let isReply = false
  for (let n = 0; n < PREFIXES_MAX && REPLY_PREFIX.test(base); n++) {
    base = base.replace(REPLY_PREFIX, '')
    isReply = true
  }
  return { base: base.normalize('NFKC').toLowerCase().replace(/\s+/g, ' ').trim(), isReply }
}

/** Returns the hash by which the service finds threads with the same subject. @returns null if the subject is empty. */
export function subjectKey(subject: string): Buffer | null {
  const { base } = baseSubject(subject)
  return base === '' ? null : createHash('sha256').update(base).digest()
}

/**
 * Tells whether two messages have the same participants. The comparison ignores whether a participant is a sender or a
 * recipient.
 */
export function sameParticipants(left: readonly string[], right: readonly string[]): boolean {
  const [one, other] = [left, right].map(
    (list) => new Set(list.map((address) => address.toLowerCase())),
  )
  return one!.size === other!.size && [...one!].every((address) => other!.has(address))
}
