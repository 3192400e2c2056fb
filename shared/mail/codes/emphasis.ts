/**
 * Finds the texts of HTML in large or bold letters, because most senders show a one-time code in such letters. Only the
 * style attributes of the HTML elements decide. Rules of a style sheet do not count, because many mail programs ignore
 * a style sheet.
 */
import { readDeclarations } from '../visibleText/cssRules.ts'
import { VOID_ELEMENTS } from '../visibleText/htmlElements.ts'
import { readHtml } from '../visibleText/htmlTokens.ts'
import { OpenElements } from '../visibleText/openElements.ts'

/**
 * Sets the maximum number of characters of the large texts, and of the bold texts, because a one-time code is among the
 * first of these texts.
 */
const TEXT_MAX_CHARS = 2_000
/**
 * Sets the maximum number of open HTML elements with a recorded style. Text in more deeply nested elements gets the
 * style of the deepest recorded element.
 */
const DEPTH_MAX = 500
/** Sets the smallest font size of a large text in pixels. */
const LARGE_PX = 20
/** Holds the font size in pixels that the code assumes for a mail without a stated size. */
const BODY_PX = 16

const BOLD = new Set('b strong h1 h2 h3 h4 code kbd pre tt samp'.split(' '))
const HEADINGS: Record<string, number> = { h1: 32, h2: 24, h3: 20 }
/**
 * Lists the HTML elements whose text stays on the line of the surrounding text. All other HTML elements begin and end a
 * line.
 */
const INLINE = new Set(
  'a abbr b code em font i kbd mark samp small span strong sub sup tt u wbr'.split(' '),
)

type Look = { px: number; isSpaced: boolean; isBold: boolean }
const PAGE: Look = { px: BODY_PX, isSpaced: false, isBold: false }

/** Holds the large and the bold texts of HTML. The texts of different HTML blocks are on different lines. */
export type Emphasis = { large: string; bold: string }

/** Returns the large and the bold texts of visible HTML (visibleHtml.ts). The function reads the HTML in one pass. */
export function emphasisOf(shown: string): Emphasis {
  const large = new Lines()
  const bold = new Lines()
  const open = new OpenElements<{ name: string; look: Look }>()
  let tag = { name: '', style: '', size: '' }
  const look = () => open.top?.look ?? PAGE
  const breakLine = (name: string) => {
    if (INLINE.has(name)) return
    large.end()
    bold.end()
  }
  readHtml(shown, {
    text: (text) => {
      const { px, isSpaced, isBold } = look()
      large.add(text, px >= LARGE_PX || isSpaced)
      bold.add(text, isBold)
    },
    name: (name) => {
      tag = { name, style: '', size: '' }
    },
    attribute: (name, value) => {
      if (name === 'style') tag.style = value
      if (name === 'size') tag.size = value
    },
    begin: () => {
      breakLine(tag.name)
      if (VOID_ELEMENTS.has(tag.name) || open.all.length >= DEPTH_MAX) return
      open.push({ name: tag.name, look: lookOf(tag, look()) })
    },
    end: (name) => {
      breakLine(name)
      open.close(name)
    },
    isDone: () => large.isFull && bold.isFull,
  })
  return { large: large.text, bold: bold.text }
}

/** Collects the lines of large or of bold text. Text that is neither large nor bold ends the current line. */
class Lines {
  text = ''

  get isFull(): boolean {
    return this.text.length >= TEXT_MAX_CHARS
  }

  add(text: string, isEmphasized: boolean): void {
    if (this.isFull) return
    if (isEmphasized) this.text += text.slice(0, TEXT_MAX_CHARS)
    else if (/\S/.test(text)) this.end()
  }

  end(): void {
    if (!this.text.endsWith('\n')) this.text += '\n'
  }
}

/** Matches the size and the weight in the CSS shorthand `font: bold 24px Georgia`. */
const FONT_SIZE = /(?:^| )([\d.]{1,10}(?:px|pt|r?em|%))/
const FONT_WEIGHT = /(?:^| )(bold|[6-9]00)(?: |$)/
/** Matches a CSS letter spacing that is usual in running text. A wider letter spacing emphasises a one-time code. */
const USUAL_SPACING = /^(?:0?\.\d|1)(?:\.\d+)?px/

function lookOf(
  { name, style, size }: { name: string; style: string; size: string },
  parent: Look,
): Look {
  const declarations = style === '' ? null : readDeclarations(style)
  const styled = (property: string) => declarations?.get(property)?.value ?? ''
  const font = styled('font')
  const weight = styled('font-weight') || (FONT_WEIGHT.exec(font)?.[1] ?? '')
  const px = pixelsOf(styled('font-size') || (FONT_SIZE.exec(font)?.[1] ?? ''), parent.px)
  const spacing = styled('letter-spacing')
  return {
    px: px ?? sizeOfElement(name, size) ?? parent.px,
    isSpaced:
      spacing === ''
        ? parent.isSpaced
        : Number.parseFloat(spacing) > 0 && !USUAL_SPACING.test(spacing),
    isBold: weight === '' ? parent.isBold || BOLD.has(name) : /^(?:bold|[6-9]00)/.test(weight),
  }
}

/** Returns the font size that an HTML element has without CSS. The element `<font size=5>` and headings are large. */
const sizeOfElement = (name: string, size: string): number | undefined =>
  name === 'font' && /^\+?[5-7]$/.test(size) ? LARGE_PX : HEADINGS[name]

/** Returns a CSS font size in pixels. @returns undefined if the text is no font size. */
function pixelsOf(text: string, parent: number): number | undefined {
  if (/^xx?x?-large/.test(text)) return LARGE_PX
  const [, number, unit = 'px'] = /^([\d.]{1,10})(px|pt|r?em|%)?/.exec(text) ?? []
  if (number === undefined) return undefined
  const value = Number.parseFloat(number)
  const unitPx = { px: 1, pt: 4 / 3, em: parent, rem: BODY_PX, '%': parent / 100 }[unit]!
  return value * unitPx
}
