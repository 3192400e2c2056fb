import { colourOf, type Ink } from '../ink.ts'
import { type Attributes, attributeOf, type XmlVisitor } from './xml.ts'

/** Describes a style of an OpenDocument file. */
export type OpenStyle = {
  base: string | null
  ink: Ink
  /** Tells whether the style hides a sheet, a column or a row, or leaves a slide out of the presentation. */
  isHidden: boolean
  /**
   * Tells whether the style explicitly states that it has no background. Such a style does not inherit the background
   * of its base style.
   */
  isClear: boolean
}

const BASES_MAX = 20
const POINTS: Readonly<Record<string, number>> = {
  pt: 1,
  in: 72,
  cm: 28.3465,
  mm: 2.83465,
  px: 0.75,
}

/** Converts a length such as `2cm` to points. @returns undefined if the text is no length. */
export function lengthOf(text: string | undefined): number | undefined {
  const [, digits, unit] = /^(-?\d{1,9}(?:\.\d{1,12})?)(pt|in|cm|mm|px)$/.exec(text ?? '') ?? []
  return digits === undefined ? undefined : Number(digits) * POINTS[unit!]!
}

/** Collects the styles during the reading of a part of an OpenDocument file (ODF 1.3 part 3, §16). */
export class OpenStyles {
  readonly #styles = new Map<string, OpenStyle>()
  #open: OpenStyle | null = null
  pageWidth = Number.POSITIVE_INFINITY
  pageHeight = Number.POSITIVE_INFINITY

  visitor(): XmlVisitor {
    return {
      open: (name, attributes) => this.open(name, attributes),
      close: (name) => this.close(name),
    }
  }

  open(name: string, attributes: Attributes): void {
    if (name === 'style' || name === 'default-style') {
      this.#open = {
        base: attributeOf(attributes, 'parent-style-name') ?? null,
        ink: {},
        isHidden: false,
        isClear: false,
      }
      const own = attributeOf(attributes, 'name')
      if (own !== undefined) this.#styles.set(own, this.#open)
    }
    if (name === 'page-layout-properties') {
      this.pageWidth = lengthOf(attributeOf(attributes, 'page-width')) ?? this.pageWidth
      this.pageHeight = lengthOf(attributeOf(attributes, 'page-height')) ?? this.pageHeight
    }
    const style = this.#open
    if (style === null) return
    const of = (key: string) => attributeOf(attributes, key)
    if (name === 'text-properties') {
      if (of('display') === 'none') style.ink.isHidden = true
      if (of('color') !== undefined) style.ink.colour = colourOf(of('color'))
      if (of('use-window-font-color') === 'true') style.ink.colour = null
      const sizePt = lengthOf(of('font-size'))
      if (sizePt !== undefined) style.ink.sizePt = sizePt
    }
    const ground = of('background-color')
    if (ground !== undefined && ground !== 'transparent') style.ink.ground = colourOf(ground)
    if (
      name === 'graphic-properties' &&
      /^(?:solid|gradient|bitmap|hatch)$/.test(of('fill') ?? '')
    ) {
      style.ink.ground = of('fill') === 'solid' ? colourOf(of('fill-color')) : null
    }
    if (
      name === 'drawing-page-properties' &&
      /^(?:solid|gradient|bitmap|hatch)$/.test(of('fill') ?? '')
    ) {
      style.ink.ground = of('fill') === 'solid' ? colourOf(of('fill-color')) : null
    }
    if (name.endsWith('graphic-properties') && of('fill') === 'none') style.isClear = true
    if (name === 'table-properties' && of('display') === 'false') style.isHidden = true
    if (name === 'drawing-page-properties' && of('visibility') === 'hidden') style.isHidden = true
  }

  close(name: string): void {
    if (name === 'style' || name === 'default-style') this.#open = null
  }

  inkOf(name: string | undefined): Ink {
    const chain: OpenStyle[] = []
    for (let at = name ?? null; at !== null && chain.length < BASES_MAX; ) {
      const style = this.#styles.get(at)
      if (style === undefined) break
      chain.unshift(style)
      at = style.base
    }
    const ink: Ink = {}
    for (const style of chain) {
      if (style.isClear) delete ink.ground
      Object.assign(ink, style.ink)
    }
    return ink
  }

  isHidden(name: string | undefined): boolean {
    return this.#styles.get(name ?? '')?.isHidden ?? false
  }
}
