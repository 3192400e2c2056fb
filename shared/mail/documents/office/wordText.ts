import { type DocumentText, TextWriter } from '../document.ts'
import { colourOf, FAINT_OPACITY, type Ink, unseenInk } from '../ink.ts'
import { TextFlow } from '../textFlow.ts'
import { holdsWords, isOn, readMainPart, readPart, relationsOf, targetsOf } from './packageParts.ts'
import { type Attributes, attributeOf, prefixedAttributeOf, type XmlVisitor } from './xml.ts'
import type { ZipArchive } from './zipArchive.ts'

/** Sets the maximum number of base styles of a Word style that the Word reader follows. */
const BASES_MAX = 20
/**
 * Names the parts of a Word file that the Word reader reads before the main text. AFTER names the parts that the reader
 * reads after the main text.
 */
const BEFORE = ['header']
const AFTER = ['footer', 'footnotes', 'endnotes']
/** Names the elements that fill a shape with a colour, a pattern or a picture. */
const FILLS = new Set(['solidFill', 'gradFill', 'blipFill', 'pattFill'])

type Styles = { inks: Map<string, { base: string | null; ink: Ink }>; shaded: Set<string> }

/** Reads the text of a Word document (ECMA-376 part 1, §17). */
export function readWord(archive: ZipArchive, main: string): DocumentText {
  const out = new TextWriter()
  const relations = relationsOf(archive, main)
  const styles = readStyles(archive, targetsOf(relations, 'styles')[0])
  const read = (part: string, isMain = false) => {
    const links = isMain ? relations : relationsOf(archive, part)
    const visitor = wordVisitor(out, styles, (id, text) => {
      const link = links.get(id)
      if (link?.isExternal === true) out.link(link.target, text)
    })
    if (isMain) readMainPart(archive, part, visitor)
    else readPart(archive, part, visitor)
    out.write('\n')
  }
  for (const type of BEFORE) for (const part of targetsOf(relations, type)) read(part)
  read(main, true)
  for (const type of AFTER) for (const part of targetsOf(relations, type)) read(part)
  const comments = targetsOf(relations, 'comments')
  if (comments.some((part) => holdsWords(archive, part, 't'))) out.omitted.add('comments')
  return out.done()
}

function readStyles(archive: ZipArchive, part: string | undefined): Styles {
  const inks: Styles['inks'] = new Map()
  const shaded: Styles['shaded'] = new Set()
  let id = ''
  let isRun = false
  if (part === undefined) return { inks, shaded }
  readPart(archive, part, {
    open(name, attributes) {
      if (name === 'style') {
        id = attributeOf(attributes, 'styleId') ?? ''
        inks.set(id, { base: null, ink: {} })
      }
      const style = inks.get(id)
      if (style === undefined) return
      if (name === 'basedOn') style.base = attributeOf(attributes, 'val') ?? null
      if (name === 'rPr') isRun = true
      if (name === 'shd' && colourOf(attributeOf(attributes, 'fill')) !== null) shaded.add(id)
      if (isRun || name === 'shd') style.ink = { ...style.ink, ...inkOf(name, attributes) }
    },
    close(name) {
      if (name === 'rPr') isRun = false
      if (name === 'style') id = ''
    },
  })
  return { inks, shaded }
}

/** Returns the colour, background or size that one property of a text run states. */
function inkOf(name: string, attributes: Attributes): Ink {
  const value = attributeOf(attributes, 'val')
  if (name === 'vanish' || name === 'webHidden' || name === 'specVanish') {
    return { isHidden: isOn(attributes) }
  }
  if (name === 'color') return { colour: colourOf(value) }
  if (name === 'sz') return { sizePt: Number(value) / 2 }
  // The value of a highlighter may be the name of a colour. A name other than white counts as an unknown colour,
  // because the Word reader does not know the names.
  if (name === 'highlight' && value !== 'none')
    return { ground: value === 'white' ? 'ffffff' : null }
  if (name === 'shd') {
    const fill = attributeOf(attributes, 'fill')
    return fill === undefined || fill === 'auto' ? {} : { ground: colourOf(fill) }
  }
  return {}
}

/**
 * Returns the colour or the opacity that one property of a text fill states. Word shows the text fill in place of the
 * colour ([MS-DOCX], element `textFill`). In Word, an alpha of 100000 means fully transparent.
 */
function textFillOf(name: string, attributes: Attributes): Ink {
  const value = attributeOf(attributes, 'val')
  if (name === 'noFill') return { isTransparent: true }
  if (name === 'alpha') return { isTransparent: 1 - Number(value) / 100_000 < FAINT_OPACITY }
  const colour = name === 'srgbClr' ? colourOf(value) : null
  return colour === null ? {} : { colour }
}

function styledInk({ inks }: Styles, id: string | undefined): Ink {
  const chain: Ink[] = []
  for (let at = id ?? null; at !== null && chain.length < BASES_MAX; ) {
    const style = inks.get(at)
    if (style === undefined) break
    chain.unshift(style.ink)
    at = style.base
  }
  return Object.assign({}, ...chain)
}

/**
 * Holds what the Word reader has read so far of an unfinished paragraph. A paragraph can contain a text box with
 * further paragraphs.
 */
type Paragraph = { ink: Ink; run: Ink | null; inProperties: boolean }

function wordVisitor(
  out: TextWriter,
  styles: Styles,
  onLink: (id: string, text: string) => void,
): XmlVisitor {
  const flow = new TextFlow(out)
  const paragraphs: Paragraph[] = []
  /**
   * Holds the background of each table cell that contains the Word reader's current position. A table cell can contain
   * a table with further cells.
   */
  const grounds: Ink[] = []
  /**
   * Holds a number for each table around the Word reader's position. The number is the length of the list `grounds`
   * (background colours) at the start of the table. The list `cells` holds the same number for each table cell.
   */
  const tables: number[] = []
  const cells: number[] = []
  const spans: number[] = []
  let skipped = 0
  let moved = 0
  let isText = false
  let isDeleted = false
  let inRowProperties = false
  let inCellProperties = false
  /**
   * Holds the shapes that contain the Word reader's position. The field `isClear` tells whether the shape states that
   * it has no fill. The field `grounds` holds the length of the list `grounds` at the start of the shape.
   */
  const shapes: { isClear: boolean; isSolid: boolean; grounds: number }[] = []
  let inShapeProperties = false
  let inTextFill = false
  let link: { id: string; text: string } | null = null
  const inkNow = (): Ink => {
    const paragraph = paragraphs.at(-1)
    return Object.assign({}, ...grounds, paragraph?.ink, paragraph?.run)
  }
  const put = (text: string) => {
    const why = unseenInk(inkNow())
    if (moved > 0) flow.omit('deleted-text', text)
    else if (why !== null) flow.omit(why, text)
    else {
      flow.text(text)
      if (link !== null) link.text += text
    }
  }
  /**
   * Sets the background of a table, a cell or a shape. @param at is the length of the list `grounds` at the start of
   * this table, cell or shape.
   */
  const setGround = (at: number, ink: Ink) => {
    grounds.length = Math.min(grounds.length, at)
    grounds.push(ink)
  }
  const property = (name: string, attributes: Attributes) => {
    const paragraph = paragraphs.at(-1)
    const shape = shapes.at(-1)
    if (shape !== undefined) {
      if (inShapeProperties && name === 'noFill') shape.isClear = true
      const isStyled =
        name === 'fillRef' && attributeOf(attributes, 'idx') !== '0' && !shape.isClear
      // The Word reader does not know the colours of a theme. Therefore it does not know the background of words in a
      // shape with a theme colour.
      if (isStyled || (inShapeProperties && FILLS.has(name))) {
        setGround(shape.grounds, { ground: null })
      }
      if (inShapeProperties && name === 'solidFill') shape.isSolid = true
      if (shape.isSolid && name === 'srgbClr') {
        grounds[grounds.length - 1] = { ground: colourOf(attributeOf(attributes, 'val')) }
      }
    }
    if (inCellProperties && name === 'shd') setGround(cells.at(-1) ?? 0, inkOf(name, attributes))
    if (inCellProperties && name === 'gridSpan') {
      spans[spans.length - 1] = Number(attributeOf(attributes, 'val') ?? 1)
    }
    if (inRowProperties && name === 'hidden' && isOn(attributes)) flow.hideRow()
    if (name === 'tblStyle' && styles.shaded.has(attributeOf(attributes, 'val') ?? '')) {
      // A table style may shade only some cells. Therefore the background of a cell in such a table is unknown.
      setGround(tables.at(-1) ?? 0, { ground: null })
    }
    if (paragraph === undefined) return
    if (paragraph.run !== null && inTextFill) {
      Object.assign(paragraph.run, textFillOf(name, attributes))
    } else if (paragraph.run !== null) {
      const base = name === 'rStyle' ? styledInk(styles, attributeOf(attributes, 'val')) : {}
      Object.assign(paragraph.run, base, inkOf(name, attributes))
    } else if (paragraph.inProperties && (name === 'pStyle' || name === 'shd')) {
      const base = name === 'pStyle' ? styledInk(styles, attributeOf(attributes, 'val')) : {}
      Object.assign(paragraph.ink, base, inkOf(name, attributes))
    }
  }
  const open: Record<string, (attributes: Attributes) => void> = {
    p: () =>
      void paragraphs.push({ ink: styledInk(styles, 'Normal'), run: null, inProperties: false }),
    pPr: () => set({ inProperties: true }),
    r: () => set({ run: {} }),
    t: () => {
      isText = true
    },
    delText: () => {
      isDeleted = true
    },
    moveFrom: () => void moved++,
    Fallback: () => void skipped++,
    tab: () => {
      if (paragraphs.at(-1)?.inProperties !== true) put(flow.isInTable ? ' ' : '\t')
    },
    br: () => put('\n'),
    cr: () => put('\n'),
    noBreakHyphen: () => put('-'),
    tbl: () => {
      flow.openTable()
      tables.push(grounds.length)
    },
    tr: () => flow.openRow(),
    trPr: () => {
      inRowProperties = true
    },
    tc: () => {
      flow.openCell()
      spans.push(1)
      cells.push(grounds.length)
      grounds.push({})
    },
    tcPr: () => {
      inCellProperties = true
    },
    wsp: () => {
      shapes.push({ isClear: false, isSolid: false, grounds: grounds.length })
    },
    spPr: () => {
      inShapeProperties = true
    },
    ln: () => {
      inShapeProperties = false
    },
    textFill: () => {
      inTextFill = true
    },
    hyperlink: (attributes) => {
      link = { id: prefixedAttributeOf(attributes, 'id') ?? '', text: '' }
    },
  }
  const close: Record<string, () => void> = {
    p: () => {
      flow.endLine()
      paragraphs.pop()
    },
    pPr: () => set({ inProperties: false }),
    r: () => set({ run: null }),
    t: () => {
      isText = false
    },
    delText: () => {
      isDeleted = false
    },
    moveFrom: () => void moved--,
    tbl: () => {
      flow.closeTable()
      grounds.length = tables.pop() ?? 0
    },
    tr: () => flow.closeRow(),
    trPr: () => {
      inRowProperties = false
    },
    tc: () => {
      flow.closeCell(spans.pop())
      grounds.length = cells.pop() ?? 0
    },
    tcPr: () => {
      inCellProperties = false
    },
    solidFill: () => {
      const shape = shapes.at(-1)
      if (shape !== undefined) shape.isSolid = false
    },
    wsp: () => {
      grounds.length = Math.min(grounds.length, shapes.pop()?.grounds ?? 0)
    },
    spPr: () => {
      inShapeProperties = false
    },
    textFill: () => {
      inTextFill = false
    },
    hyperlink: () => {
      if (link !== null) onLink(link.id, link.text)
      link = null
    },
  }
  const set = (change: Partial<Paragraph>) => {
    const paragraph = paragraphs.at(-1)
    if (paragraph !== undefined) Object.assign(paragraph, change)
  }
  return {
    open(name, attributes) {
      if (skipped > 0 && name !== 'Fallback') return
      property(name, attributes)
      if (Object.hasOwn(open, name)) open[name]!(attributes)
    },
    close(name) {
      if (name === 'Fallback') skipped--
      else if (skipped === 0 && Object.hasOwn(close, name)) close[name]!()
    },
    text(text) {
      if (skipped > 0) return
      if (isDeleted) flow.omit('deleted-text', text)
      else if (isText) put(text)
    },
    isDone: () => out.isFull,
  }
}
