/** The text of a file, and the bounds that every reader of files keeps. */

/** What a file is. */
export type DocumentKind =
  | ('text' | 'html' | 'csv' | 'rtf' | 'mail' | 'calendar' | 'zip' | 'pdf')
  | ('docx' | 'xlsx' | 'pptx' | 'odt' | 'ods' | 'odp')

/** What a reader leaves out, because a person who opens the file does not see it, or not at first. */
export const OMISSIONS = [
  // Its colour is that of its background, or it is transparent.
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
  // The file has more than the bounds allow.
  'truncated',
] as const
export type Omission = (typeof OMISSIONS)[number]

/** Omissions that may conceal words from a person: a message with one has the label hidden-text. */
export const CONCEALED: ReadonlySet<Omission> = new Set([
  'invisible-text',
  'tiny-text',
  'off-page-text',
  'hidden-text',
  'hidden-sheets',
  'hidden-cells',
  'hidden-slides',
])

/** Characters of one file's text. */
const TEXT_MAX_CHARS = 1_000_000
/** Bytes of one file. */
export const FILE_MAX_BYTES = 32 * 1024 * 1024
/** Links of one file that are kept beside its text. */
const LINKS_READ_MAX = 200

/** Why a file has no text: it is damaged, needs a password, or passes a bound. */
export type FaultReason = 'malformed' | 'encrypted' | 'too_large'

/** The file cannot be read. */
export class DocumentError extends Error {
  override readonly name = 'DocumentError'
  readonly reason: FaultReason
  constructor(reason: FaultReason) {
    super(reason)
    this.reason = reason
  }
}

/** The text of a file. `links`: those that its words do not show. */
export type DocumentText = {
  text: string
  omitted: Set<Omission>
  links: { href: string; text: string }[]
}

/** A text that grows up to {@link TEXT_MAX_CHARS}. */
export class TextWriter {
  readonly omitted = new Set<Omission>()
  readonly links: { href: string; text: string }[] = []
  #parts: string[] = []
  #chars = 0

  /** It takes no more: a reader may stop. */
  get isFull(): boolean {
    return this.#chars >= TEXT_MAX_CHARS
  }

  write(text: string): void {
    if (text === '') return
    const room = TEXT_MAX_CHARS - this.#chars
    if (text.length > room) this.omitted.add('truncated')
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

/** Postgres refuses U+0000 in text. Blanks at the ends of lines, and more than two empty lines, say nothing. */
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

/** A cell of a table in one line: tabs and line ends divide cells and rows. */
export const cellText = (text: string): string => text.replace(/\s+/g, ' ').trim()
