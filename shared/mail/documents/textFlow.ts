import { cellText, type Omission, type TextWriter } from './document.ts'

/** Sets the maximum number of table cells that the writer adds for one cell that spans columns. */
const REPEATED_MAX = 200
/** Sets the maximum depth of nested tables. */
const TABLES_MAX = 20

type Table = { row: string[]; cell: string; isRowHidden: boolean }

/**
 * Collects the paragraphs and tables of a document. Each row of a table becomes a line, with tabs between its cells.
 */
export class TextFlow {
  readonly #out: TextWriter
  readonly #tables: Table[] = []

  constructor(out: TextWriter) {
    this.#out = out
  }

  get isInTable(): boolean {
    return this.#tables.length > 0
  }

  text(text: string): void {
    const table = this.#tables.at(-1)
    if (table === undefined) this.#out.write(text)
    else table.cell += text
  }

  /**
   * Records why the reader of the document leaves out certain words. The function ignores blanks, because their
   * omission matters to nobody.
   */
  omit(why: Omission, text: string): void {
    if (text.trim() !== '') this.#out.omitted.add(why)
  }

  endLine(): void {
    this.text('\n')
  }

  openTable(): void {
    if (this.#tables.length < TABLES_MAX) {
      this.#tables.push({ row: [], cell: '', isRowHidden: false })
    }
  }

  openRow(): void {
    const table = this.#tables.at(-1)
    if (table !== undefined) Object.assign(table, { row: [], cell: '', isRowHidden: false })
  }

  hideRow(): void {
    const table = this.#tables.at(-1)
    if (table !== undefined) table.isRowHidden = true
  }

  openCell(): void {
    const table = this.#tables.at(-1)
    if (table !== undefined) table.cell = ''
  }

  /**
   * Ends a table cell. @param span is the number of table columns that the cell covers. The parameter `repeats` tells
   * whether the output repeats the cell's text in each covered column.
   */
  closeCell(span = 1, repeats = false): void {
    const table = this.#tables.at(-1)
    if (table === undefined) return
    const text = cellText(table.cell)
    table.row.push(text)
    for (let n = 1; n < Math.min(span, REPEATED_MAX); n++) table.row.push(repeats ? text : '')
    table.cell = ''
  }

  closeRow(): void {
    const table = this.#tables.at(-1)
    if (table === undefined) return
    const line = table.row.join('\t').trimEnd()
    if (table.isRowHidden) this.omit('hidden-cells', line)
    else if (line !== '') this.#put(line)
    table.row = []
  }

  /** Ends a table. @param ends is false if the file may still continue the table with another row. */
  closeTable({ ends = true } = {}): void {
    this.#tables.pop()
    if (ends) this.text('\n')
  }

  /** Writes a table row as a line. A row of a nested table becomes a part of the outer cell's text. */
  #put(line: string): void {
    const outer = this.#tables.at(-2)
    if (outer === undefined) this.#out.write(`${line}\n`)
    else outer.cell += `${line} `
  }
}
