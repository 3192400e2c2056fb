import type { MessageEventData } from './events.ts'

/**
 * Marks the end of a shortened subject in a webhook event, because the event of a long message has only a part of its
 * sender, recipients and subject.
 */
const CUT_MARK = '…'

/**
 * Tells whether a webhook event may lack a part of its message's sender, recipients or subject, because these texts are
 * long.
 */
export const mayBeCut = ({ subject }: MessageEventData): boolean => subject.endsWith(CUT_MARK)

/**
 * Returns the data of an event whose sender, recipients and subject have together at most about `maxBytes` bytes. A
 * shortened event holds the first addresses, and its subject ends with {@link CUT_MARK}.
 */
export function messageWithin(data: MessageEventData, maxBytes: number): MessageEventData {
  if (costOf([...data.from, ...data.to, data.subject]) <= maxBytes) return data
  const from = firstOf(data.from, maxBytes / 2)
  const subjectBytes = (maxBytes - costOf(from)) / 2
  const subject = startOf(data.subject, subjectBytes - Buffer.byteLength(CUT_MARK)) + CUT_MARK
  return { ...data, from, to: firstOf(data.to, maxBytes - costOf([...from, subject])), subject }
}

/** Counts the bytes that a text needs in a JSON array besides its characters: two quotes, a comma and a blank. */
const JSON_BYTES = 4
const costOf = (texts: readonly string[]): number =>
  texts.reduce((sum, text) => sum + Buffer.byteLength(text) + JSON_BYTES, 0)

/** Returns the first texts of a list whose JSON has together at most `maxBytes` bytes. */
function firstOf(texts: readonly string[], maxBytes: number): string[] {
  let cost = 0
  const end = texts.findIndex((text) => {
    cost += costOf([text])
    return cost > maxBytes
  })
  return end === -1 ? [...texts] : texts.slice(0, end)
}

/**
 * Returns the longest start of a text that has at most `maxBytes` bytes. The function never cuts inside a character.
 */
function startOf(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text).subarray(0, Math.max(0, Math.floor(maxBytes)))
  // With the option `stream`, the decoder leaves out an incomplete character at the end, instead of writing a
  // replacement character.
  return new TextDecoder().decode(bytes, { stream: true })
}
