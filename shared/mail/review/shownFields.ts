/** Writes the header of a reviewed mail for a person, so that no field can look like another field. */

/** Matches an encoded word (RFC 2047) of UTF-8. The service writes encoded words in no other character set. */
const WORD = /=\?utf-8\?([bq])\?([^?\s]*)\?=/gi
const BETWEEN_WORDS = /(=\?[^?\s]{1,40}\?[bq]\?[^?\s]*\?=)[ \t]+(?==\?)/gi
/**
 * Matches the encoded words of a display name. They stand at the beginning of a mailbox, before the `<` of its address.
 */
const ENCODED_NAME = /(^|,[ \t]+)((?:=\?utf-8\?[bq]\?[^?\s]*\?=[ \t]+)+)(?=<)/gi
/** Matches a sign that delimits addresses or parts of an address (RFC 5322 §3.4). */
const DELIMITER = /[<>@,;:"\\()[\]]/
const MAILBOXES = /^(?:from|to|cc)$/i

/**
 * Returns the header fields of a mail as text, with each field on one line. The function decodes only what the service
 * encodes: the subject and the display names. A mail host never decodes an address, so the text shows addresses and
 * all other fields as they are written.
 */
export function shownFields(bytes: Uint8Array): string {
  const raw = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  const end = raw.indexOf('\r\n\r\n')
  const fields = raw.subarray(0, end === -1 ? raw.length : end).toString('utf8')
  return fields
    .replace(/\r\n(?=[ \t])/g, '')
    .split('\r\n')
    .map((field) => shownBreaks(decoded(field)))
    .join('\n')
}

/** Decodes the value of a field if it holds a subject or mailboxes. */
function decoded(field: string): string {
  const colon = field.indexOf(':')
  const name = field.slice(0, Math.max(0, colon))
  const [, start, value] = /^(:[ \t]*)(.*)$/s.exec(field.slice(colon)) ?? []
  if (start === undefined || value === undefined) return field
  if (/^subject$/i.test(name)) return name + start + readWords(value)
  if (!MAILBOXES.test(name)) return field
  const mailboxes = value.replace(
    ENCODED_NAME,
    (_whole, before: string, words: string) => `${before}${quoted(readWords(words.trim()))} `,
  )
  return name + start + mailboxes
}

/** Quotes a display name that could look like an address or like several mailboxes. */
const quoted = (name: string): string =>
  DELIMITER.test(name) ? `"${name.replace(/["\\]/g, '\\$&')}"` : name

/** Shows a sign for each line break within a field. */
const shownBreaks = (field: string): string =>
  field.replaceAll('\r', '⟨U+000D⟩').replaceAll('\n', '⟨U+000A⟩')

const readWords = (text: string): string =>
  text
    .replace(BETWEEN_WORDS, '$1')
    .replace(WORD, (_whole, kind: string, word: string) =>
      kind.toLowerCase() === 'b' ? Buffer.from(word, 'base64').toString() : readQ(word),
    )

const readQ = (word: string): string =>
  Buffer.from(
    word
      .replaceAll('_', ' ')
      .replace(/=([0-9a-f]{2})/gi, (_whole, hex) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  ).toString()
