import { cellText, DocumentError, type DocumentText, TextWriter } from '../document.ts'
import { unseenInk } from '../ink.ts'
import { isOn, readMainPart, readPart, relationsOf, targetsOf } from './packageParts.ts'
import { readSheetStyles, type SheetStyle, shownValue } from './sheetStyles.ts'
import { prefixedAttributeOf, type XmlVisitor } from './xml.ts'
import type { ZipArchive } from './zipArchive.ts'

/** Sets the maximum number of cells that the Excel reader takes from one workbook. */
const CELLS_MAX = 500_000
/**
 * Limits the number of tabs in a row of a sheet. The limit is needed, because tabs keep each cell at its position in
 * the row, and a sheet can have 16,384 columns.
 */
const COLUMNS_MAX = 1_000
const STRINGS_MAX_CHARS = 16_000_000

type Sheet = { name: string; isHidden: boolean; part: string }
type Book = { strings: string[]; styles: SheetStyle[]; is1904: boolean; cells: number }

/** Reads the text of an Excel workbook (ECMA-376 part 1, §18). Each row becomes a line, with tabs between the cells. */
export function readSheets(archive: ZipArchive, main: string): DocumentText {
  const out = new TextWriter()
  const relations = relationsOf(archive, main)
  const sheets: Sheet[] = []
  const book: Book = { strings: [], styles: [], is1904: false, cells: 0 }
  readMainPart(archive, main, {
    open(name, attributes) {
      if (name === 'workbookPr')
        book.is1904 = attributes.date1904 !== undefined && isOn(attributes, 'date1904')
      if (name !== 'sheet') return
      const part = relations.get(prefixedAttributeOf(attributes, 'id') ?? '')?.target ?? ''
      const isHidden = (attributes.state ?? 'visible') !== 'visible'
      sheets.push({ name: cellText(attributes.name ?? ''), isHidden, part })
    },
  })
  const [strings] = targetsOf(relations, 'sharedStrings')
  if (strings !== undefined) book.strings = readStrings(archive, strings)
  const [styles] = targetsOf(relations, 'styles')
  if (styles !== undefined) book.styles = readSheetStyles(archive, styles)
  for (const { name, isHidden, part } of sheets) {
    if (isHidden) out.omitted.add('hidden-sheets')
    else if (!out.isFull) {
      out.write(`${name}\n`)
      readPart(archive, part, sheetVisitor(out, book))
      out.write('\n')
      const own = relationsOf(archive, part)
      for (const { type, target, isExternal } of own.values()) {
        if (type === 'hyperlink' && isExternal) out.link(target, '')
        if (type === 'comments' || type === 'threadedComment') out.omitted.add('comments')
      }
    }
  }
  return out.done()
}

function readStrings(archive: ZipArchive, part: string): string[] {
  const strings: string[] = []
  let chars = 0
  let current = ''
  let isText = false
  let isReading = false
  readPart(archive, part, {
    open(name) {
      if (name === 'si') current = ''
      if (name === 'rPh') isReading = true
      if (name === 't') isText = true
    },
    close(name) {
      if (name === 't') isText = false
      if (name === 'rPh') isReading = false
      if (name === 'si') strings.push(current)
    },
    text(text) {
      if (!isText || isReading) return
      chars += text.length
      if (chars > STRINGS_MAX_CHARS) throw new DocumentError('too_large')
      current += text
    },
  })
  return strings
}

function sheetVisitor(out: TextWriter, book: Book): XmlVisitor {
  const hiddenColumns = new Set<number>()
  let row: string[] = []
  let column = 0
  let isRowHidden = false
  let cell = { type: '', style: 0 }
  let raw = ''
  let isValue = false
  const endCell = () => {
    const style = book.styles[cell.style]
    const text = cellText(cellValue(cell.type, raw, style, book))
    if (text === '') return
    const why = style === undefined ? null : unseenInk(style.ink)
    if (hiddenColumns.has(column) || isRowHidden) out.omitted.add('hidden-cells')
    else if (style?.isHidden === true) out.omitted.add('hidden-text')
    else if (why !== null) out.omitted.add(why)
    else if (column < COLUMNS_MAX) {
      while (row.length < column) row.push('')
      row[column] = text
    } else out.omitted.add('truncated')
  }
  return {
    open(name, attributes) {
      if (name === 'col') {
        const isGone = isHiddenBy(attributes.hidden) || Number(attributes.width ?? 1) === 0
        const last = Math.min(Number(attributes.max ?? 0), COLUMNS_MAX)
        for (let n = Number(attributes.min ?? 1); isGone && n <= last; n++) hiddenColumns.add(n - 1)
      }
      if (name === 'row') {
        row = []
        column = -1
        isRowHidden = isHiddenBy(attributes.hidden) || Number(attributes.ht ?? 1) === 0
      }
      if (name === 'c') {
        if (++book.cells > CELLS_MAX) throw new DocumentError('too_large')
        column = columnOf(attributes.r) ?? column + 1
        cell = { type: attributes.t ?? 'n', style: Number(attributes.s ?? 0) }
        raw = ''
      }
      if (name === 'v' || name === 't') isValue = true
    },
    close(name) {
      if (name === 'v' || name === 't') isValue = false
      if (name === 'c') endCell()
      if (name === 'row' && row.length > 0) out.write(`${row.join('\t')}\n`)
    },
    text(text) {
      if (isValue) raw += text
    },
    isDone: () => out.isFull,
  }
}

const isHiddenBy = (value: string | undefined): boolean => value === '1' || value === 'true'

/** Returns the column of a cell reference such as `AB12`, counted from 0. */
function columnOf(place: string | undefined): number | null {
  const letters = /^[A-Z]{1,3}/.exec(place ?? '')?.[0]
  if (letters === undefined) return null
  let column = 0
  for (const letter of letters) column = column * 26 + letter.charCodeAt(0) - 64
  return column - 1
}

function cellValue(type: string, raw: string, style: SheetStyle | undefined, book: Book): string {
  if (type === 's') return book.strings[Number(raw)] ?? ''
  if (type === 'b') return raw === '1' ? 'TRUE' : 'FALSE'
  if (type !== 'n' || raw === '') return raw
  return shownValue(Number(raw), style?.format ?? '', book.is1904)
}
