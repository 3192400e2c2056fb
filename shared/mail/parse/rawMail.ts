import { createHash } from 'node:crypto'

/**
 * Matches the header fields that relays add or rewrite: the trace fields of RFC 5321 §4.4, RFC 8601, RFC 8617, and the
 * delivery fields of Gmail and Exchange. Two transmissions of one message differ only in these header fields.
 */
const TRACE_FIELD =
  /^(received|return-path|delivered-to|x-original-to|envelope-to|x-envelope-to|x-received|authentication-results|received-spf|arc-[a-z-]+|x-google-smtp-source|x-ms-exchange-[a-z-]+)[ \t]*:/i

const LF = 0x0a
const CR = 0x0d

/**
 * Sets the maximum number of bytes that the code reads of a header. The MIME parser has the same limit. Splitting 30 MB
 * of header fields would take gigabytes of memory.
 */
const HEADER_MAX_BYTES = 1024 * 1024

/**
 * Returns the offset of the first byte after the header of a message. For a header that is too long, the result is
 * HEADER_MAX_BYTES. For a message without a body, the result is the length of `raw`. The header may be empty.
 */
function headerEnd(raw: Uint8Array): number {
  if (raw[0] === LF) return 1
  if (raw[0] === CR && raw[1] === LF) return 2
  const max = Math.min(raw.length, HEADER_MAX_BYTES)
  for (let i = 0; i < max; i++) {
    if (raw[i] !== LF) continue
    const next = raw[i + 1] === CR ? i + 2 : i + 1
    if (raw[next] === LF) return next + 1
  }
  return max
}

/**
 * Matches the start of a header line. A header field begins with its name and a colon (RFC 5322 §2.2). A folded line
 * begins with a blank.
 */
const FIELD_LINE = /^(?:[!-9;-~]+[ \t]*:|[ \t])/

/**
 * Returns at most `maxBytes` of the text after the header, even if no blank line separates the header from the text.
 */
export function rawBody(raw: Uint8Array, maxBytes: number): string {
  const header = Buffer.from(raw.buffer, raw.byteOffset, headerEnd(raw)).toString('latin1')
  let start = 0
  for (const [line] of header.matchAll(/[^\n]*\n|[^\n]+$/g)) {
    if (!FIELD_LINE.test(line)) break
    start += line.length
  }
  return new TextDecoder().decode(raw.subarray(start, start + maxBytes))
}

/** Splits a header into header fields with their folded lines (RFC 5322 §2.2.3). */
function headerFields(header: string): string[] {
  return header.split(/\r?\n(?![ \t])/).filter((field) => field !== '')
}

/**
 * Returns the SHA-256 of a message without its trace fields. Every transmission of one message gives the same hash, so
 * that the service recognises a repeated transmission.
 */
export function contentHash(raw: Uint8Array): Buffer {
  const end = headerEnd(raw)
  const header = Buffer.from(raw.buffer, raw.byteOffset, end).toString('latin1')
  const hash = createHash('sha256')
  for (const field of headerFields(header)) {
    if (!TRACE_FIELD.test(field)) hash.update(`${field.replace(/\r\n/g, '\n')}\n`, 'latin1')
  }
  return hash.update('\n').update(raw.subarray(end)).digest()
}

/**
 * Returns the unfolded value of the first header field with a name, as UTF-8. The function also reads header fields of
 * unparseable mail.
 */
export const rawHeader = (raw: Uint8Array, name: string): string | undefined =>
  rawHeaders(raw, name)[0]

/** Returns the values of all header fields with a name, in their order. */
export function rawHeaders(raw: Uint8Array, name: string): string[] {
  const header = Buffer.from(raw.buffer, raw.byteOffset, headerEnd(raw)).toString('utf8')
  const prefix = `${name.toLowerCase()}:`
  return headerFields(header)
    .filter((line) => line.slice(0, prefix.length).toLowerCase() === prefix)
    .map((field) =>
      field
        .slice(prefix.length)
        .replace(/\r?\n[ \t]+/g, ' ')
        .trim(),
    )
}
