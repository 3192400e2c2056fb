import { OPS } from 'unpdf/pdfjs'
import type { Omission } from '../document.ts'
import { type Colour, colourOf, isAlike } from '../ink.ts'
import {
  type Box,
  boxOf,
  ENDLESS,
  holds,
  IDENTITY,
  intersect,
  type Matrix,
  matrixOf,
  multiply,
  TURNS,
} from './pdfGeometry.ts'

/**
 * Holds words at one position of a PDF page. Their base line reaches from `x` to `end`. The field `unseen` tells why a
 * person does not see the words.
 */
export type Run = {
  text: string
  x: number
  end: number
  y: number
  size: number
  unseen: Omission | null
}

type Fill = { box: Box; colour: Colour; order: number }
type Glyph = { unicode?: string; width?: number; isSpace?: boolean }
type Font = { vertical?: boolean; fontMatrix?: readonly number[] }

/** Holds the operators of one PDF page, and the resources that the operators use. */
export type PageOperators = {
  fnArray: readonly number[]
  argsArray: readonly unknown[]
  /** Holds the area of the page that a PDF viewer shows, before the page is turned. */
  view: Box
  /** Holds by how many degrees a PDF viewer turns the page clockwise: 0, 90, 180 or 270. */
  rotate: number
  fontOf: (name: string) => Font | null
  isShown: (layer: unknown) => boolean
}

type State = {
  ctm: Matrix
  clip: Box
  fill: Colour
  stroke: Colour
  alpha: number
  /** Tells whether new paint can only darken the page. Dark words then stay visible below the paint. */
  darkens: boolean
  font: Font | null
  fontSize: number
  charSpacing: number
  wordSpacing: number
  scale: number
  leading: number
  rise: number
  mode: number
}

const START: State = {
  ...{ ctm: IDENTITY, clip: ENDLESS, fill: '000000', stroke: '000000', alpha: 1 },
  darkens: false,
  ...{ font: null, fontSize: 0, charSpacing: 0, wordSpacing: 0, scale: 1, leading: 0, rise: 0 },
  mode: 0,
}

const DEPTH_MAX = 500
/**
 * Sets the maximum number of painted areas of a page that the PDF reader records. Above this number, the reader keeps
 * only the latest areas.
 */
const FILLS_MAX = 500
/** Sets the smallest readable size of letters in points. */
const TINY_PT = 2
const FAINT_ALPHA = 0.1
const PAINTS = new Set<number>([
  ...[OPS.fill, OPS.eoFill, OPS.fillStroke, OPS.eoFillStroke],
  ...[OPS.closeFillStroke, OPS.closeEOFillStroke],
])
const PICTURES = new Set<number>([
  ...[OPS.paintImageXObject, OPS.paintInlineImageXObject, OPS.paintImageMaskXObject],
  ...[OPS.paintImageXObjectRepeat, OPS.paintSolidColorImageMask, OPS.shadingFill],
])
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/

/** Returns the words of a PDF page in their painting order. */
export function runsOf(page: PageOperators): Run[] {
  const walk = new Walk(page)
  for (const [n, operator] of page.fnArray.entries()) {
    walk.step(operator, (page.argsArray[n] ?? []) as unknown[])
  }
  return walk.done()
}

class Walk {
  readonly #page: PageOperators
  readonly #view: Box
  readonly #runs: (Run & { order: number })[] = []
  readonly #stack: State[] = []
  readonly #layers: boolean[] = []
  #fills: Fill[] = []
  #state = START
  #text: Matrix = IDENTITY
  #line: Matrix = IDENTITY
  #clips = false
  #order = 0

  constructor(page: PageOperators) {
    this.#page = page
    // The PDF reader applies the turn of the page, because a landscape page is often a turned portrait page.
    const ctm = TURNS.get(page.rotate) ?? IDENTITY
    this.#state = { ...START, ctm }
    this.#view = boxOf(ctm, page.view)
  }

  step(operator: number, args: unknown[]): void {
    this.#order++
    if (PICTURES.has(operator)) this.#paint([0, 0, 1, 1], null)
    else this.#steps.get(operator)?.(args)
  }

  readonly #steps: ReadonlyMap<number, (args: unknown[]) => void> = new Map([
    ...[OPS.save, OPS.beginGroup].map((one) => [one, () => this.#save()] as const),
    ...[OPS.restore, OPS.endGroup, OPS.paintFormXObjectEnd, OPS.endAnnotation].map(
      (one) => [one, () => this.#restore()] as const,
    ),
    [OPS.transform, (args) => this.#transform(matrixOf(args))],
    [
      OPS.paintFormXObjectBegin,
      ([matrix, box]) => {
        this.#save()
        this.#transform(matrixOf(matrix))
        this.#clip(box)
      },
    ],
    [
      OPS.beginAnnotation,
      (args) => {
        this.#save()
        this.#transform(matrixOf(args[2]))
        this.#transform(matrixOf(args[3]))
      },
    ],
    [
      OPS.beginMarkedContentProps,
      ([tag, layer]) => void this.#layers.push(tag !== 'OC' || this.#page.isShown(layer)),
    ],
    [OPS.beginMarkedContent, () => void this.#layers.push(true)],
    [OPS.endMarkedContent, () => void this.#layers.pop()],
    ...[OPS.clip, OPS.eoClip].map((one) => [one, () => this.#markClip()] as const),
    [OPS.constructPath, ([paint, data, box]) => this.#path(Number(paint), data, box)],
    [OPS.setFillRGBColor, ([colour]) => this.#set({ fill: colourOf(String(colour)) })],
    [OPS.setFillColorN, () => this.#set({ fill: null })],
    [OPS.setFillTransparent, () => this.#set({ alpha: 0 })],
    [OPS.setStrokeRGBColor, ([colour]) => this.#set({ stroke: colourOf(String(colour)) })],
    [OPS.setStrokeColorN, () => this.#set({ stroke: null })],
    [OPS.setGState, ([entries]) => this.#graphics(entries)],
    [
      OPS.beginText,
      () => {
        this.#text = IDENTITY
        this.#line = IDENTITY
      },
    ],
    [OPS.setFont, ([name, size]) => this.#font(name, size)],
    [OPS.setCharSpacing, ([n]) => this.#set({ charSpacing: Number(n) })],
    [OPS.setWordSpacing, ([n]) => this.#set({ wordSpacing: Number(n) })],
    [OPS.setHScale, ([n]) => this.#set({ scale: Number(n) / 100 })],
    [OPS.setLeading, ([n]) => this.#set({ leading: -Number(n) })],
    [OPS.setTextRise, ([n]) => this.#set({ rise: Number(n) })],
    [OPS.setTextRenderingMode, ([n]) => this.#set({ mode: Number(n) })],
    [OPS.moveText, ([x, y]) => this.#move(Number(x), Number(y))],
    [
      OPS.setLeadingMoveText,
      ([x, y]) => {
        this.#set({ leading: Number(y) })
        this.#move(Number(x), Number(y))
      },
    ],
    [OPS.nextLine, () => this.#move(0, this.#state.leading)],
    [OPS.setTextMatrix, (args) => this.#place(matrixOf(args.length === 6 ? args : args[0]))],
    [OPS.showText, ([glyphs]) => this.#show(glyphs)],
  ] as [number, (args: unknown[]) => void][])

  done(): Run[] {
    return this.#runs.map(({ order, ...run }) =>
      run.unseen === null && this.#isCovered(run, order)
        ? { ...run, unseen: 'invisible-text' }
        : run,
    )
  }

  #set(change: Partial<State>): void {
    this.#state = { ...this.#state, ...change }
  }

  #save(): void {
    if (this.#stack.length < DEPTH_MAX) this.#stack.push(this.#state)
  }

  #restore(): void {
    this.#state = this.#stack.pop() ?? this.#state
  }

  #transform(matrix: Matrix | null): void {
    if (matrix !== null) this.#set({ ctm: multiply(this.#state.ctm, matrix) })
  }

  #move(x: number, y: number): void {
    this.#line = multiply(this.#line, [1, 0, 0, 1, x, y])
    this.#text = this.#line
  }

  #place(matrix: Matrix | null): void {
    if (matrix === null) return
    this.#text = matrix
    this.#line = matrix
  }

  #markClip(): void {
    this.#clips = true
  }

  #font(name: unknown, size: unknown): void {
    this.#set({ font: this.#page.fontOf(String(name)), fontSize: Number(size) })
  }

  #clip(given: unknown): void {
    const box = bounds(given)
    if (box !== null) {
      this.#set({ clip: intersect(this.#state.clip, boxOf(this.#state.ctm, box)) })
    }
  }

  #path(paint: number, data: unknown, given: unknown): void {
    if (this.#clips) this.#clip(given)
    this.#clips = false
    const box = bounds(given)
    if (box === null || !PAINTS.has(paint) || this.#state.alpha < 1) return
    const { darkens, fill } = this.#state
    if (darkens && fill === 'ffffff') return
    this.#paint(box, !darkens && isRectangle((data as unknown[] | null)?.[0]) ? fill : null)
  }

  /** Records the colour of a painted area of the page. */
  #paint(box: Box, colour: Colour): void {
    if (!this.#isLayerShown()) return
    const area = intersect(boxOf(this.#state.ctm, box), this.#state.clip)
    this.#fills.push({ box: area, colour, order: this.#order })
    if (this.#fills.length > 2 * FILLS_MAX) this.#fills = this.#fills.slice(-FILLS_MAX)
  }

  #graphics(given: unknown): void {
    for (const entry of Array.isArray(given) ? given : []) {
      if (entry?.[0] === 'ca') this.#set({ alpha: Number(entry[1]) })
      // The blend mode of a highlighter multiplies its colour with the page, so the words below stay visible (ISO
      // 32000-1 §11.3.5).
      if (entry?.[0] === 'BM') this.#set({ darkens: /^(?:multiply|darken)$/.test(entry[1]) })
      if (entry?.[0] === 'Font') {
        const [name, size] = entry[1] ?? []
        this.#font(name, size)
      }
    }
  }

  /**
   * Records the position of the words that an operator (drawing command) of the PDF page shows (ISO 32000-1 §9.4.4).
   */
  #show(given: unknown): void {
    if (!Array.isArray(given)) return
    const { font, fontSize, charSpacing, wordSpacing, scale, rise } = this.#state
    const unit = font?.fontMatrix?.[0] ?? 0.001
    let from = 0
    let at = 0
    let text = ''
    const end = () => {
      this.#put(text, from, at, rise)
      from = at
      text = ''
    }
    for (const one of given as (Glyph | number | null)[]) {
      if (one === null) continue
      if (typeof one === 'number') {
        at -= (one / 1000) * fontSize * scale
        // A large number in a PDF text array moves to the next table cell. Therefore the words before it form a
        // separate run. A small number only adjusts the distance between two letters.
        if (Math.abs(one) > 180 && text !== '') {
          this.#put(text, from, at + (one / 1000) * fontSize * scale, rise)
          from = at
          text = ''
        }
        continue
      }
      const letters = one.unicode ?? ''
      const isRightToLeft = RIGHT_TO_LEFT.test(letters)
      if (isRightToLeft && text !== '') end()
      const advance = font?.vertical === true ? fontSize : (one.width ?? 0) * unit * fontSize
      at += (advance + charSpacing + (one.isSpace === true ? wordSpacing : 0)) * scale
      text += letters
      if (isRightToLeft) end()
    }
    if (text !== '') end()
    this.#text = multiply(
      this.#text,
      font?.vertical === true ? [1, 0, 0, 1, 0, -at] : [1, 0, 0, 1, at, 0],
    )
  }

  #put(text: string, from: number, to: number, rise: number): void {
    const { fontSize } = this.#state
    const place = multiply(this.#state.ctm, this.#text)
    const pointOf = (x: number) => ({
      x: place[0] * x + place[2] * rise + place[4],
      y: place[1] * x + place[3] * rise + place[5],
    })
    const [start, end] = [pointOf(from), pointOf(to)]
    const height = Math.hypot(place[2], place[3])
    const size = Math.abs(fontSize) * height
    const run = { text, x: start.x, end: end.x, y: start.y, size }
    this.#runs.push({ ...run, unseen: this.#unseen(run), order: this.#order })
  }

  #isLayerShown(): boolean {
    return this.#layers.every(Boolean)
  }

  #unseen(run: Omit<Run, 'unseen'>): Omission | null {
    const { mode, fill, stroke, alpha, clip } = this.#state
    if (!this.#isLayerShown()) return 'hidden-text'
    const x = (run.x + run.end) / 2
    const y = run.y + run.size / 3
    const [left, bottom, right, top] = this.#view
    const isOff = x < left || x > right || y < bottom || y > top
    if (isOff || !holds(clip, x, y)) return 'off-page-text'
    // A type 3 font may scale its letters to any size. Therefore its font size does not tell the size of the letters.
    if (run.size < TINY_PT && Math.abs(this.#state.font?.fontMatrix?.[0] ?? 0.001) <= 0.001) {
      return 'tiny-text'
    }
    // The modes 3 and 7 show no letters: mode 3 paints nothing, and mode 7 only clips. The modes 1 and 5 paint the
    // outline of the letters in the stroke colour (ISO 32000-1 §9.3.6).
    if (mode === 3 || mode === 7 || alpha < FAINT_ALPHA) return 'invisible-text'
    const colour = mode === 1 || mode === 5 ? stroke : fill
    return isAlike(colour, this.#groundAt(x, y)) ? 'invisible-text' : null
  }

  /** Returns the colour of the page behind a point. A page is white by default. */
  #groundAt(x: number, y: number): Colour {
    for (let n = this.#fills.length - 1; n >= 0; n--) {
      const { box, colour } = this.#fills[n]!
      if (holds(box, x, y)) return colour
    }
    return 'ffffff'
  }

  /** Tells whether a filled rectangle covers words, because the page paints the rectangle after the words. */
  #isCovered({ x, end, y, size }: Omit<Run, 'unseen'>, order: number): boolean {
    const middle = y + size / 3
    for (let n = this.#fills.length - 1; n >= 0; n--) {
      const fill = this.#fills[n]!
      if (fill.order < order) return false
      if (fill.colour === null) continue
      if (holds(fill.box, x + 0.1, middle) && holds(fill.box, end - 0.1, middle)) return true
    }
    return false
  }
}

function bounds(given: unknown): Box | null {
  const numbers = given == null ? [] : Array.from(given as ArrayLike<unknown>, Number)
  if (numbers.length !== 4 || !numbers.every(Number.isFinite)) return null
  return numbers as unknown as Box
}

/**
 * Tells whether a PDF path is one rectangle with sides parallel to the axes. The four corners of such a rectangle have
 * two different x values and two different y values.
 */
function isRectangle(data: unknown): boolean {
  const numbers = data == null ? [] : Array.from(data as ArrayLike<number>)
  // The path of a rectangle consists of one move, three or four lines, and a close. A move and a line have three
  // numbers each.
  if (numbers.length < 12 || numbers.length > 16) return false
  const xs = new Set<number>()
  const ys = new Set<number>()
  for (let at = 0; at + 2 < numbers.length; at += 3) {
    if (numbers[at] !== 0 && numbers[at] !== 1) return false
    xs.add(numbers[at + 1]!)
    ys.add(numbers[at + 2]!)
  }
  return xs.size === 2 && ys.size === 2
}
