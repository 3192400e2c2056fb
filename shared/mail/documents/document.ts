/** Defines the type of the text that a reader extracts from a file, and the limits for every reader of files. */

/** Names the kind of a file with readable text. */
export type DocumentKind =
  | ('text' | 'html' | 'csv' | 'rtf' | 'mail' | 'calendar' | 'zip' | 'pdf')
  | ('docx' | 'xlsx' | 'pptx' | 'odt' | 'ods' | 'odp')

/**
 * Lists the kinds of words that a file reader leaves out. A person who opens the file does not see these words, or does
 * not see them at first sight.
 */
export const OMISSIONS = [
  // The omission `invisible-text` means that the text has the colour of its background, or is transparent.
  'invisible-text',
  'tiny-text',
  'off-page-text',
  'hidden-text',
  'hidden-sheets',
  'hidden-cells',
  'hidden-slides',
  'speaker-notes',
  'comments',
  'deleted-text',
  // The omission `truncated` means that the file contains more than the file reader's limits allow.
  'truncated',
] as const
export type Omission = (typeof OMISSIONS)[number]

/**
 * Lists the kinds of omitted words that somebody may have hidden on purpose. If an attachment has omitted words of
 * these kinds, its message gets the label hidden-text.
 */
export const CONCEALED: ReadonlySet<Omission> = new Set([
  'invisible-text',
  'tiny-text',
  'off-page-text',
  'hidden-text',
  'hidden-sheets',
  'hidden-cells',
  'hidden-slides',
])

/** Sets the maximum number of characters of text that a reader extracts from one file. */
const TEXT_MAX_CHARS = 1_000_000
/** Sets the maximum size in bytes of a file that the service reads. */
export const FILE_MAX_BYTES = 32 * 1024 * 1024
/** Sets the maximum number of links that the service keeps beside the text of one file. */
const LINKS_READ_MAX = 200

/** Tells why a file has no text, because the file is damaged, needs a password, or exceeds a limit. */
export type FaultReason = 'malformed' | 'encrypted' | 'too_large'

/** Reports that a reader cannot read the text of a file. */
export class DocumentError extends Error {
  override readonly name = 'DocumentError'
  readonly reason: FaultReason
  constructor(reason: FaultReason) {
    super(reason)
    this.reason = reason
  }
}

/**
 * Holds the text of a file. The field `links` holds the file's links separately, because the text does not show their
 * URLs.
 */
export type DocumentText = {
  text: string
  omitted: Set<Omission>
  links: { href: string; text: string }[]
}

/** Collects the extracted text of a file, up to {@link TEXT_MAX_CHARS} characters. */
export class TextWriter {
  readonly omitted = new Set<Omission>()
  readonly links: { href: string; text: string }[] = []
  #parts: string[] = []
  #chars = 0
  #isFull = false

  /**
   * Tells whether the writer has cut text because the maximum length was reached. The reader of the file may then
   * stop.
   */
  get isFull(): boolean {
    return this.#isFull
  }

  write(text: string): void {
    if (text === '') return
    const room = TEXT_MAX_CHARS - this.#chars
    if (text.length > room) {
      this.#isFull = true
      this.omitted.add('truncated')
    }
    if (room <= 0) return
    const part = text.length > room ? text.slice(0, room) : text
    this.#parts.push(part)
    this.#chars += part.length
  }

  link(href: string, text: string): void {
    if (this.links.length >= LINKS_READ_MAX || !/^https?:\/\//i.test(href)) return
    this.links.push({ href: href.slice(0, 4_000), text: text.slice(0, 200) })
  }

  done(): DocumentText {
    return { text: tidy(this.#parts.join('')), omitted: this.omitted, links: this.links }
  }
}

/**
 * Removes U+0000 from a text, because PostgreSQL refuses this character. The function also removes blanks at the ends
 * of lines, and shortens each longer row of empty lines to two.
 */
const tidy = (text: string): string =>
  text
    .replaceAll('\u0000', '')
    .toWellFormed()
    .replace(/\r\n?/g, '\n')
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
    .replace(/\n{4,}/g, '\n\n\n')
    .replace(/^\n+/, '')
    .trimEnd()

/** Writes the text of a table cell as one line, because tabs separate cells and line ends separate rows. */
export const cellText = (text: string): string => text.replace(/\s+/g, ' ').trim()
