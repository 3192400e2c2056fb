import { type DocumentText, TextWriter } from '../document.ts'
import { type Colour, colourOf, FAINT_OPACITY, type Ink, unseenInk } from '../ink.ts'
import { TextFlow } from '../textFlow.ts'
import { holdsWords, readMainPart, readPart, relationsOf, targetsOf } from './packageParts.ts'
import { type Attributes, prefixedAttributeOf, type XmlVisitor } from './xml.ts'
import type { ZipArchive } from './zipArchive.ts'

/** Names the theme colours of a presentation that are white by default. */
const WHITE_NAMES = new Set(['bg1', 'lt1', 'window'])
const DARK_NAMES = new Set(['tx1', 'dk1', 'windowText'])
/** Names the XML elements that change the luminance of a colour. */
const LUMINANCE = new Set(['lumMod', 'lumOff'])
/**
 * Names the properties of a text run whose colours are not the colour of the letters, such as the colour of an outline.
 */
const BESIDE_LETTERS = new Set(['ln', 'highlight', 'effectLst', 'effectDag', 'uLn', 'uFill'])
/** Sets the maximum number of slides that the PowerPoint reader takes from one file. */
const SLIDES_MAX = 1_000

type Area = { left: number; top: number; right: number; bottom: number }
type Page = { width: number; height: number; ground: Colour }

/** Reads the text of a PowerPoint file (ECMA-376 part 1, §19). */
export function readSlides(archive: ZipArchive, main: string): DocumentText {
  const out = new TextWriter()
  const relations = relationsOf(archive, main)
  const slides: string[] = []
  const head = headReader(archive)
  const size = { width: Number.POSITIVE_INFINITY, height: Number.POSITIVE_INFINITY }
  readMainPart(archive, main, {
    open(name, attributes) {
      if (name === 'sldSz') {
        size.width = Number(attributes.cx)
        size.height = Number(attributes.cy)
      }
      if (name === 'sldId') {
        slides.push(relations.get(prefixedAttributeOf(attributes, 'id') ?? '')?.target ?? '')
      }
    },
  })
  if (slides.length > SLIDES_MAX) out.omitted.add('truncated')
  for (const [n, part] of slides.slice(0, SLIDES_MAX).entries()) {
    if (out.isFull) break
    const own = relationsOf(archive, part)
    const { isHidden, ground } = head(part)
    if (isHidden) {
      out.omitted.add('hidden-slides')
      continue
    }
    const page = { ...size, ground }
    out.write(`Slide ${n + 1}\n`)
    readPart(
      archive,
      part,
      slideVisitor(out, page, (id, text) => {
        const link = own.get(id)
        if (link?.isExternal === true) out.link(link.target, text)
      }),
    )
    out.write('\n')
    if (targetsOf(own, 'notesSlide').some((notes) => holdsWords(archive, notes, 't'))) {
      out.omitted.add('speaker-notes')
    }
    if (targetsOf(own, 'comments').length > 0) out.omitted.add('comments')
  }
  return out.done()
}

/**
 * Describes the properties at the beginning of a slide, a slide layout or a slide master. The field `ground` holds the
 * background colour behind the shapes.
 */
type Head = { isHidden: boolean; ground: Colour }
/**
 * Names the relations from a slide to its layout, and from a layout to its master. The slide, the layout and the master
 * may each set the background colour of the slide.
 */
const BASES: readonly string[] = ['slideLayout', 'slideMaster']

/**
 * Returns a function that reads the beginning of each part of the presentation only once, because many slides share a
 * layout, and every reading would count towards the limit of unpacked bytes.
 */
function headReader(archive: ZipArchive): (part: string) => Head {
  const known = new Map<string, Head>()
  const read = (part: string, [base, ...further]: readonly string[]): Head => {
    const before = known.get(part)
    if (before !== undefined) return before
    const { isHidden, ground } = readHead(archive, part)
    const [below] =
      ground !== undefined || base === undefined ? [] : targetsOf(relationsOf(archive, part), base)
    const inherited = below === undefined ? 'ffffff' : read(below, further).ground
    const head = { isHidden, ground: ground === undefined ? inherited : ground }
    known.set(part, head)
    return head
  }
  return (part) => read(part, BASES)
}

/**
 * Reads the properties that stand before the shapes in a part of the presentation. If `ground` is undefined, the part
 * states no background colour.
 */
function readHead(
  archive: ZipArchive,
  part: string,
): { isHidden: boolean; ground: Colour | undefined } {
  let isIn = false
  let isDone = false
  let isHidden = false
  let ground: Colour | undefined
  readPart(archive, part, {
    open(name, attributes) {
      if (name === 'sld') isHidden = attributes.show === '0' || attributes.show === 'false'
      if (name === 'bg') {
        isIn = true
        ground = null
      } else if (isIn && LUMINANCE.has(name)) ground = shaded(ground, name, attributes)
      else if (isIn) ground = colourIn(name, attributes) ?? ground
      if (name === 'spTree') isDone = true
    },
    close(name) {
      if (name === 'bg') isDone = true
    },
    isDone: () => isDone,
  })
  return { isHidden, ground }
}

function colourIn(name: string, attributes: Attributes): Colour {
  const value = attributes.val ?? ''
  if (name === 'srgbClr') return colourOf(value)
  if (name === 'sysClr') return colourOf(attributes.lastClr)
  if (name !== 'schemeClr') return null
  return WHITE_NAMES.has(value) ? 'ffffff' : DARK_NAMES.has(value) ? '000000' : null
}

/**
 * Changes the luminance of a grey (ECMA-376 part 1, §20.1.2.3.20 and §20.1.2.3.21). For example, the result of white is
 * a grey that is darker by half. @returns null for any other colour, because the code does not compute its result.
 */
function shaded(colour: Colour | undefined, name: string, { val }: Attributes): Colour {
  const grey = /^(..)\1\1$/.exec(colour ?? '')?.[1]
  const part = Number(val) / 100_000
  if (grey === undefined || !Number.isFinite(part)) return null
  const before = Number.parseInt(grey, 16) / 255
  const after = name === 'lumMod' ? before * part : before + part
  const level = Math.round(255 * Math.max(0, Math.min(1, after)))
  return level.toString(16).padStart(2, '0').repeat(3)
}

/** Tells whether a property of the fill of letters makes the letters invisible. The alpha is in thousandths of a percent. */
const isTransparent = (name: string, { val }: Attributes): boolean =>
  name === 'noFill' || (name === 'alpha' && Number(val ?? 100_000) / 100_000 < FAINT_OPACITY)

function slideVisitor(
  out: TextWriter,
  page: Page,
  onLink: (id: string, text: string) => void,
): XmlVisitor {
  const flow = new TextFlow(out)
  /** Holds the areas that earlier shapes of the slide have painted. The next shape lies on top of them. */
  const painted: Area[] = []
  let groups = 0
  let skipped = 0
  let shape: {
    area: Area | null
    ground: Colour | undefined
    /**
     * Tells whether the shape itself states that it has no fill. Such a shape has no fill, even if its style has a
     * fill.
     */
    isClear: boolean
    isHidden: boolean
  } | null = null
  let place: { left: number; top: number } | null = null
  let run: Ink = {}
  let isRunColour = false
  /**
   * Holds the name of the property in BESIDE_LETTERS that contains the PowerPoint reader's position. The reader ignores
   * colours in such a property, because they are not the colour of the letters.
   */
  let beside: string | null = null
  let isShapeColour = false
  let isText = false

  const groundHere = (): Colour => {
    if (shape?.ground !== undefined) return shape.ground
    const area = shape?.area
    // A shape without a stated position gets its position from the layout of the slide, which the code does not read.
    // Therefore the shape counts as lying over every painted area.
    const isOver = (one: Area) =>
      area == null ||
      ((area.left + area.right) / 2 > one.left &&
        (area.left + area.right) / 2 < one.right &&
        (area.top + area.bottom) / 2 > one.top &&
        (area.top + area.bottom) / 2 < one.bottom)
    return painted.some(isOver) ? null : page.ground
  }
  const isOff = ({ left, top, right, bottom }: Area) =>
    left >= page.width || top >= page.height || right <= 0 || bottom <= 0
  const put = (text: string) => {
    const why = unseenInk({ ground: flow.isInTable ? null : groundHere(), ...run })
    if (shape?.isHidden === true) flow.omit('hidden-text', text)
    else if (shape?.area != null && groups === 0 && isOff(shape.area))
      flow.omit('off-page-text', text)
    else if (why !== null) flow.omit(why, text)
    else flow.text(text)
  }
  const paint = (next: (before: Colour | undefined) => Colour) => {
    if (isRunColour && beside === 'highlight') run.ground = next(run.ground)
    else if (isRunColour && beside === null) run.colour = next(run.colour)
    else if (!isRunColour && isShapeColour && shape !== null) shape.ground = next(shape.ground)
  }
  return {
    open(name, attributes) {
      if (name === 'Fallback') skipped++
      if (skipped > 0) return
      if (isRunColour && BESIDE_LETTERS.has(name)) beside ??= name
      if (isRunColour && beside === null && isTransparent(name, attributes))
        run.isTransparent = true
      if (name === 'grpSp') groups++
      else if (name === 'sp' || name === 'graphicFrame' || name === 'pic' || name === 'cxnSp') {
        shape = { area: null, ground: undefined, isClear: false, isHidden: false }
      } else if (name === 'cNvPr' && shape !== null) shape.isHidden = attributes.hidden === '1'
      else if (name === 'off') {
        place = { left: Number(attributes.x), top: Number(attributes.y) }
      } else if (
        name === 'ext' &&
        attributes.cx !== undefined &&
        place !== null &&
        shape !== null
      ) {
        const [width, height] = [Number(attributes.cx), Number(attributes.cy)]
        shape.area = { ...place, right: place.left + width, bottom: place.top + height }
        place = null
      } else if (name === 'spPr') isShapeColour = true
      else if (name === 'ln' || name === 'effectLst') isShapeColour = false
      else if (name === 'noFill' && isShapeColour && shape !== null) shape.isClear = true
      else if (name === 'fillRef' && shape !== null) {
        const isPainted = attributes.idx !== '0' && !shape.isClear
        if (isPainted && shape.ground === undefined) shape.ground = null
      } else if (name === 'rPr' || name === 'endParaRPr') {
        const sizePt = attributes.sz === undefined ? {} : { sizePt: Number(attributes.sz) / 100 }
        run = { ...sizePt }
        isRunColour = true
      } else if (
        (name === 'gradFill' || name === 'blipFill' || name === 'pattFill') &&
        isShapeColour
      ) {
        if (shape !== null) shape.ground = null
      } else if (name === 'r' || name === 'fld') run = {}
      else if (name === 't') isText = true
      else if (name === 'br') put('\n')
      else if (name === 'hlinkClick') onLink(prefixedAttributeOf(attributes, 'id') ?? '', '')
      else if (name === 'tbl') flow.openTable()
      else if (name === 'tr') flow.openRow()
      else if (name === 'tc') flow.openCell()
      else if (name.endsWith('Clr')) paint(() => colourIn(name, attributes))
      else if (LUMINANCE.has(name)) paint((before) => shaded(before, name, attributes))
    },
    close(name) {
      if (name === 'Fallback') skipped--
      if (skipped > 0) return
      if (name === beside) beside = null
      if (name === 'grpSp') groups--
      else if (name === 'spPr') isShapeColour = false
      else if (name === 'rPr' || name === 'endParaRPr') isRunColour = false
      else if (name === 't') isText = false
      else if (name === 'p') flow.endLine()
      else if (name === 'tbl') flow.closeTable()
      else if (name === 'tr') flow.closeRow()
      else if (name === 'tc') flow.closeCell()
      else if (name === 'sp' || name === 'pic' || name === 'graphicFrame') {
        if (shape?.area != null && (name === 'pic' || shape.ground !== undefined))
          painted.push(shape.area)
        shape = null
      }
    },
    text(text) {
      if (isText && skipped === 0) put(text)
    },
    isDone: () => out.isFull,
  }
}
