import { createHash } from 'node:crypto'

/** Identifiers kept of one References header; the first and the latest are kept (as RFC 5537 §3.4.4 does for news). */
const REFERENCES_MAX = 200
/** An identifier longer than this is no identifier: RFC 5322 §2.1.1 limits a line to 998 characters. */
const MESSAGE_ID_MAX_LENGTH = 998
/** RFC 5322 §3.6.4 made lenient: one `@`, no brackets, white space or controls; what real mail carries. */
const MESSAGE_ID = /^<[^<>@\s\p{Cc}]+@[^<>@\s\p{Cc}]+>$/u
/** Exchange and others quote the local part when it holds spaces or a second `@`. */
const QUOTED_MESSAGE_ID = /^<"[^"<>\r\n\p{Cc}]+"@[^<>@\s\p{Cc}]+>$/u

/** Whether `text` is a Message-ID with its angle brackets. */
export function isMessageId(text: string): boolean {
  if (text.length > MESSAGE_ID_MAX_LENGTH) return false
  return MESSAGE_ID.test(text) || QUOTED_MESSAGE_ID.test(text)
}

/** All Message-IDs in a References or In-Reply-To value, in order, once each; whatever else stands there is dropped. */
export function parseReferences(header: string | undefined): string[] {
  if (header === undefined) return []
  const ids = new Set<string>()
  for (const match of header.slice(0, 256 * 1024).matchAll(/<[^<>]{1,998}>/g)) {
    const id = match[0].replace(/[\r\n]+[ \t]*/g, '')
    if (isMessageId(id)) ids.add(id)
  }
  const all = [...ids]
  return all.length <= REFERENCES_MAX ? all : [all[0]!, ...all.slice(1 - REFERENCES_MAX)]
}

/** What a message says about the conversation it belongs to. */
export type ThreadLinks = {
  /** The Message-ID as other mail programs know it. */
  messageId: string
  inReplyTo: string[]
  references: string[]
}

/** The identifiers that name a message's ancestors, the nearest first: its parent, then up the chain. */
export function ancestors({ messageId, inReplyTo, references }: ThreadLinks): string[] {
  const nearestFirst = [...inReplyTo, ...references.toReversed()]
  return [...new Set(nearestFirst)].filter((id) => id !== messageId)
}

/**
 * The References of a reply (RFC 5322 §3.6.4): the parent's References, or its In-Reply-To when it has none and names
 * one message only, then the parent's Message-ID.
 */
export function replyReferences({ messageId, inReplyTo, references }: ThreadLinks): string[] {
  const base = references.length > 0 ? references : inReplyTo.length === 1 ? inReplyTo : []
  return [...base.filter((id) => id !== messageId), messageId]
}

/** One `Re: ` before the subject, whatever reply prefixes it already carried. */
export function replySubject(subject: string): string {
  return `Re: ${subject.replace(/^(?:\s*re\s*(?:\[\d{1,4}\])?\s*:\s*)+/i, '')}`.trimEnd()
}

/** SHA-256 of a Message-ID: identifiers may be longer than an index entry of Postgres can be. */
export const messageIdHash = (messageId: string): Buffer =>
  createHash('sha256').update(messageId).digest()

/** The identifier under which another message with a Message-ID already taken is kept: `<local.N@domain>`. */
export function alternativeMessageId(messageId: string, n: number): string {
  const at = messageId.lastIndexOf('@')
  return `${messageId.slice(0, at)}.${n}${messageId.slice(at)}`
}

/** `Re:` as mail programs write it in the languages of their users; with a count as in `Re[2]:`. */
const REPLY_PREFIX =
  /^\s*(?:re|aw|antw|ant|sv|vs|odp|rif|res|ynt|atb|vá|bls|σχετ|απ|отв|ответ|回复|答复|回覆|返信|رد|הב)\s*(?:\[\d{1,4}\]|\(\d{1,4}\)|\^\d{1,4})?\s*[:：]\s*/iu
const PREFIXES_MAX = 20

/** A subject without its reply prefixes, in one case and spacing; and whether it had any. */
export function baseSubject(subject: string): { base: string; isReply: boolean } {
  let base = subject
  let isReply = false
  for (let n = 0; n < PREFIXES_MAX && REPLY_PREFIX.test(base); n++) {
    base = base.replace(REPLY_PREFIX, '')
    isReply = true
  }
  return { base: base.normalize('NFKC').toLowerCase().replace(/\s+/g, ' ').trim(), isReply }
}

/** The key by which threads of one subject are found; null for a subject that says nothing. */
export function subjectKey(subject: string): Buffer | null {
  const { base } = baseSubject(subject)
  return base === '' ? null : createHash('sha256').update(base).digest()
}

/** Whether two messages went between the same people, in whatever direction. */
export function sameParticipants(left: readonly string[], right: readonly string[]): boolean {
  const [one, other] = [left, right].map(
    (list) => new Set(list.map((address) => address.toLowerCase())),
  )
  return one!.size === other!.size && [...one!].every((address) => other!.has(address))
}
