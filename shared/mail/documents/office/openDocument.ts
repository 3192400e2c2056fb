import { DocumentError, type DocumentText, type Omission, TextWriter } from '../document.ts'
import { type Ink, unseenInk } from '../ink.ts'
import { TextFlow } from '../textFlow.ts'
import { lengthOf, OpenStyles } from './openStyles.ts'
import { readMainPart, readPart } from './packageParts.ts'
import { type Attributes, attributeOf, type XmlVisitor } from './xml.ts'
import type { ZipArchive } from './zipArchive.ts'

/** Maps each OpenDocument element whose words a person does not see at first sight to the reason for their omission. */
const LEFT_OUT: Readonly<Record<string, Omission>> = {
  annotation: 'comments',
  'tracked-changes': 'deleted-text',
  notes: 'speaker-notes',
  forms: 'hidden-text',
  'hidden-text': 'hidden-text',
  'hidden-paragraph': 'hidden-text',
}
const UNREAD = new Set([
  'note-citation',
  'title',
  'desc',
  'scripts',
  'font-face-decls',
  'settings',
  'dde-source',
])
const SPACES_MAX = 100
/**
 * Sets the maximum number of times that the OpenDocument reader writes a repeated cell or row of a spreadsheet. The
 * reader leaves out empty cells at the end of a row, and empty rows.
 */
const REPEATED_MAX = 200
const COLUMNS_MAX = 16_384
const PAINTED = new Set(['frame', 'custom-shape', 'rect', 'text-box'])

/** Reads the text of an OpenDocument file (ODF 1.3 part 3): text, sheets or slides. */
export function readOpenDocument(archive: ZipArchive, kind: 'odt' | 'ods' | 'odp'): DocumentText {
  refuseLocked(archive)
  const out = new TextWriter()
  const styles = new OpenStyles()
  readPart(archive, 'styles.xml', styles.visitor())
  const reader = (begin: string) => new Reader(out, styles, { kind, begin }).visitor()
  // The OpenDocument reader reads styles.xml only for a text document, because it then contains the headers and footers
  // of the pages. For slides, styles.xml contains only placeholders.
  if (kind === 'odt') readPart(archive, 'styles.xml', reader('master-styles'))
  readMainPart(archive, 'content.xml', reader('body'))
  return out.done()
}

/**
 * Refuses a file that is encrypted with a password. The manifest of an encrypted file has an element `encryption-data`.
 */
function refuseLocked(archive: ZipArchive): void {
  readPart(archive, 'META-INF/manifest.xml', {
    open(name) {
      if (name === 'encryption-data') throw new DocumentError('encrypted')
    },
  })
}

class Reader {
  readonly #out: TextWriter
  readonly #styles: OpenStyles
  readonly #kind: 'odt' | 'ods' | 'odp'
  readonly #begin: string
  readonly #flow: TextFlow
  readonly #inks: Ink[] = []
  /**
   * Describes the outermost XML element that the OpenDocument reader is leaving out: its name, the depth of nesting
   * inside it, and the reason for the omission.
   */
  #skip: { name: string; depth: number; why: Omission | null } | null = null
  #hiddenColumns = new Set<number>()
  #column = 0
  #row: string[] = []
  /** Holds how often the sheet repeats the current row. Programs store several equal rows as one row with a count. */
  #rowRepeats = 1
  #cell = { text: '', repeated: 1 }
  #slides = 0
  #slideGround: Ink = {}
  #isBody = false
  #texts = 0
  #notes = 0

  /**
   * Creates a reader for one part of an OpenDocument file. @param begin is the name of the element that contains the
   * readable words.
   */
  constructor(
    out: TextWriter,
    styles: OpenStyles,
    { kind, begin }: { kind: 'odt' | 'ods' | 'odp'; begin: string },
  ) {
    this.#out = out
    this.#styles = styles
    this.#kind = kind
    this.#begin = begin
    this.#flow = new TextFlow(out)
  }

  visitor(): XmlVisitor {
    return {
      open: (name, attributes) => this.#open(name, attributes),
      close: (name) => this.#close(name),
      text: (text) => this.#text(text),
      isDone: () => this.#out.isFull,
    }
  }

  #open(name: string, attributes: Attributes): void {
    if (this.#skip !== null) {
      if (name === this.#skip.name) this.#skip.depth++
      return
    }
    if (!this.#isBody) {
      this.#styles.open(name, attributes)
      this.#isBody = name === this.#begin
      return
    }
    const why = this.#whyLeftOut(name, attributes)
    if (why !== undefined) {
      this.#skip = { name, depth: 1, why }
      return
    }
    const style = attributeOf(attributes, 'style-name')
    if (name === 'page') this.#openSlide(style)
    if (name === 'p' || name === 'h' || name === 'span' || PAINTED.has(name)) {
      if (name === 'p' || name === 'h') this.#texts++
      this.#inks.push(this.#styles.inkOf(style))
    }
    // The OpenDocument reader writes a footnote in brackets inside the sentence, because a separate line would cut the
    // sentence in two.
    if (name === 'note-body') {
      this.#notes++
      this.#put(' [')
    }
    if (name === 's') this.#put(' '.repeat(countOf(attributes, 'c', SPACES_MAX)))
    if (name === 'tab') this.#put(this.#flow.isInTable || this.#kind === 'ods' ? ' ' : '\t')
    if (name === 'line-break') this.#put('\n')
    if (name === 'a') this.#out.link(attributeOf(attributes, 'href') ?? '', '')
    if (this.#kind === 'ods') this.#openSheetPart(name, attributes)
    else this.#openTablePart(name, attributes, style)
  }

  #whyLeftOut(name: string, attributes: Attributes): Omission | null | undefined {
    const style = attributeOf(attributes, 'style-name')
    if (UNREAD.has(name)) return null
    if (name === 'table' && this.#styles.isHidden(style)) return 'hidden-sheets'
    if (name === 'page' && this.#styles.isHidden(style)) {
      this.#slides++
      return 'hidden-slides'
    }
    const visibility = attributeOf(attributes, 'visibility')
    if (name === 'table-row' && visibility !== undefined && visibility !== 'visible')
      return 'hidden-cells'
    if (name === 'section' && attributeOf(attributes, 'display') === 'none') return 'hidden-text'
    if (this.#kind === 'odp' && PAINTED.has(name) && this.#isOff(attributes)) return 'off-page-text'
    return Object.hasOwn(LEFT_OUT, name) ? LEFT_OUT[name] : undefined
  }

  #isOff(attributes: Attributes): boolean {
    const of = (key: string) => lengthOf(attributeOf(attributes, key))
    const [x, y] = [of('x'), of('y')]
    if (x === undefined || y === undefined) return false
    const { pageWidth, pageHeight } = this.#styles
    return (
      x >= pageWidth || y >= pageHeight || x + (of('width') ?? 0) < 0 || y + (of('height') ?? 0) < 0
    )
  }

  #openSlide(style: string | undefined): void {
    this.#out.write(`Slide ${++this.#slides}\n`)
    this.#slideGround = this.#styles.inkOf(style)
  }

  #openTablePart(name: string, attributes: Attributes, style: string | undefined): void {
    if (name === 'table') this.#flow.openTable()
    if (name === 'table-row') this.#flow.openRow()
    if (name === 'table-cell' || name === 'covered-table-cell') {
      this.#flow.openCell()
      this.#inks.push(this.#styles.inkOf(style))
      this.#cell.repeated = countOf(attributes, 'number-columns-repeated', REPEATED_MAX)
    }
  }

  #openSheetPart(name: string, attributes: Attributes): void {
    const columns = countOf(attributes, 'number-columns-repeated', COLUMNS_MAX)
    if (name === 'table') {
      this.#out.write(`${attributeOf(attributes, 'name') ?? ''}\n`)
      this.#hiddenColumns = new Set()
      this.#column = 0
    }
    if (name === 'table-column') {
      if ((attributeOf(attributes, 'visibility') ?? 'visible') !== 'visible') {
        for (let n = 0; n < columns; n++) this.#hiddenColumns.add(this.#column + n)
      }
      this.#column = Math.min(COLUMNS_MAX, this.#column + columns)
    }
    if (name === 'table-row') {
      this.#row = []
      this.#rowRepeats = countOf(attributes, 'number-rows-repeated', REPEATED_MAX)
      this.#column = 0
    }
    if (name === 'table-cell' || name === 'covered-table-cell') {
      this.#cell = { text: '', repeated: columns }
      this.#inks.push(this.#styles.inkOf(attributeOf(attributes, 'style-name')))
    }
  }

  #close(name: string): void {
    if (this.#skip !== null) {
      if (name === this.#skip.name && --this.#skip.depth === 0) this.#skip = null
      return
    }
    if (!this.#isBody) {
      this.#styles.close(name)
      return
    }
    if (name === 'p' || name === 'h') {
      this.#texts--
      if (this.#notes === 0) this.#put('\n')
    }
    if (name === 'p' || name === 'h' || name === 'span' || PAINTED.has(name)) this.#inks.pop()
    if (name === 'note-body') {
      this.#notes--
      this.#put(']')
    }
    if (name === 'page') this.#out.write('\n')
    if (this.#kind === 'ods') this.#closeSheetPart(name)
    else this.#closeTablePart(name)
  }

  #closeTablePart(name: string): void {
    if (name === 'table') this.#flow.closeTable()
    if (name === 'table-row') this.#flow.closeRow()
    if (name === 'table-cell' || name === 'covered-table-cell') {
      this.#inks.pop()
      this.#flow.closeCell(this.#cell.repeated, true)
    }
  }

  #closeSheetPart(name: string): void {
    if (name === 'table') this.#out.write('\n')
    if (name === 'table-row' && this.#row.length > 0) {
      const line = `${this.#row.join('\t')}\n`
      for (let n = 0; n < this.#rowRepeats && !this.#out.isFull; n++) this.#out.write(line)
    }
    if (name !== 'table-cell' && name !== 'covered-table-cell') return
    this.#inks.pop()
    const text = this.#cell.text.replace(/\s+/g, ' ').trim()
    const { repeated } = this.#cell
    for (let n = 0; text !== '' && n < Math.min(repeated, REPEATED_MAX); n++) {
      if (this.#hiddenColumns.has(this.#column + n)) this.#out.omitted.add('hidden-cells')
      else if (this.#column + n < REPEATED_MAX * 5) {
        while (this.#row.length < this.#column + n) this.#row.push('')
        this.#row[this.#column + n] = text
      }
    }
    this.#column = Math.min(COLUMNS_MAX, this.#column + repeated)
    this.#cell = { text: '', repeated: 1 }
  }

  #text(text: string): void {
    if (this.#skip !== null) {
      if (this.#skip.why !== null) this.#flow.omit(this.#skip.why, text)
    } else if (this.#isBody && this.#texts > 0) this.#put(text.replace(/\s+/g, ' '))
  }

  #put(text: string): void {
    const ink: Ink = Object.assign({}, this.#slideGround, ...this.#inks)
    const why = text === '\n' ? null : unseenInk(ink)
    if (why !== null) this.#flow.omit(why, text)
    else if (this.#kind === 'ods') this.#cell.text += text
    else this.#flow.text(text)
  }
}

const countOf = (attributes: Attributes, name: string, max: number): number => {
  const count = Number(attributeOf(attributes, name) ?? 1)
  return Number.isInteger(count) ? Math.max(1, Math.min(max, count)) : 1
}
