/**
 * Returns the HTML of a mail without the text that a person cannot see. The function makes one pass over the HTML in
 * linear time.
 */
import { cascade, readDeclarations, type Selected, StyleSheet } from './cssRules.ts'
import { isSeen, isUnseen, PAGE, type Sight, sightOf } from './hiddenStyle.ts'
import { SIBLING_ELEMENTS, VOID_ELEMENTS } from './htmlElements.ts'
import { readHtml } from './htmlTokens.ts'
import { OpenElements } from './openElements.ts'

/**
 * Sets for how many open HTML elements the function records whether they are visible. The function only counts more
 * deeply nested elements. If one of them is hidden, all text counts as hidden until all of them have ended.
 */
const MAX_DEPTH = 500
const MAX_ATTRIBUTE_LENGTH = 4_000
const MAX_CLASSES = 30

/** Lists the HTML elements whose start tag ends a paragraph (`<p>`) without an end tag. */
const BLOCKS = new Set(
  'address article aside blockquote center div dl fieldset footer form h1 h2 h3 h4 h5 h6 header hr main nav ol pre section table ul'.split(
    ' ',
  ),
)
/** Lists the HTML elements whose content a reader never sees as text. */
const CODE = new Set(['script', 'style'])
const LETTER = /[\p{L}\p{N}]/u

/** All HTML elements without attributes share this empty map, because a map for each element would cost memory. */
const NO_ATTRIBUTES = new Map<string, string>()

type Open = Selected & { sight: Sight; isCode: boolean }

const NONE: readonly string[] = []
const ROOT: Open = { name: '', id: '', classes: [], sight: PAGE, isCode: false }

/**
 * Removes comments and invisible text from HTML. The files cssRules.ts and hiddenStyle.ts decide which text is
 * invisible to a person.
 * @param html is the HTML of a mail. The function reads only the first `maxLength` characters of the HTML.
 * @returns the visible HTML. The field `hidesText` tells whether the function removed letters or digits.
 */
export function visibleHtml(html: string, maxLength: number): { html: string; hidesText: boolean } {
  const input = html.slice(0, maxLength)
  const sheet = new StyleSheet(/<style/i.test(input) ? styleText(input) : '')
  const out: string[] = []
  const open = new OpenElements<Open>(ROOT)
  let overflow = 0
  let buried = false
  let hidesText = false
  let tag = { name: '', start: 0, attributes: NO_ATTRIBUTES }

  const top = () => open.top!
  const text = (shown: string) => {
    const { sight, isCode } = top()
    if (isCode) return
    if (isSeen(sight) && !buried) out.push(shown)
    else hidesText ||= LETTER.test(shown)
  }
  const begin = (end: number) => {
    const { name, start, attributes } = tag
    if (SIBLING_ELEMENTS.has(name) && top().name === name) open.pop()
    if (name === 'tr' && (top().name === 'td' || top().name === 'th')) open.pop()
    if (BLOCKS.has(name) && top().name === 'p') open.pop()
    const element = elementOf(name, attributes, sheet, open.all)
    // The function writes the start tag of a hidden element without attributes. In this way, a hidden link loses its
    // URL.
    if (isSeen(element.sight)) out.push(input.slice(start, end + 1))
    else if (!element.sight.gone) out.push(`<${name}>`)
    if (VOID_ELEMENTS.has(name)) return
    if (open.all.length > MAX_DEPTH) {
      overflow++
      buried ||= !isSeen(element.sight)
      return
    }
    open.push(element)
  }
  const end = (name: string) => {
    if (!top().sight.gone) out.push(`</${name}>`)
    if (overflow > 0) {
      if (--overflow === 0) buried = false
    } else open.close(name)
  }
  readHtml(input, {
    // The function decodes an HTML entity to judge the text. It writes the entity unchanged to the output.
    text: (shown, isEntity) => text(isEntity ? escaped(shown) : shown),
    begin,
    end,
    name: (name, start) => {
      tag = { name, start, attributes: NO_ATTRIBUTES }
    },
    attribute: (name, value) => {
      if (tag.attributes === NO_ATTRIBUTES) tag.attributes = new Map()
      if (!tag.attributes.has(name)) tag.attributes.set(name, value.slice(0, MAX_ATTRIBUTE_LENGTH))
    },
  })
  return { html: out.join(''), hidesText: hidesText || sheet.isCut }
}

function elementOf(
  name: string,
  attributes: ReadonlyMap<string, string>,
  sheet: StyleSheet,
  stack: readonly Open[],
): Open {
  const parent = stack.at(-1)!
  if (attributes.size === 0 && sheet.isEmpty && !isUnseen(name)) {
    const isCode = parent.isCode || CODE.has(name)
    return { name, id: '', classes: NONE, sight: parent.sight, isCode }
  }
  const id = attributes.get('id') ?? ''
  const classes = (attributes.get('class') ?? '').split(/\s+/, MAX_CLASSES)
  const own = readDeclarations(attributes.get('style') ?? '')
  const style = cascade([sheet.match({ name, id, classes }, stack), own])
  const sight = sightOf(name, attributes, style, parent.sight)
  return { name, id, classes, sight, isCode: parent.isCode || CODE.has(name) }
}

/** Returns the text of all `<style>` elements in HTML. */
function styleText(input: string): string {
  const parts: string[] = []
  let inStyle = false
  readHtml(input, {
    text: (shown) => void (inStyle && parts.push(shown)),
    name: (name) => {
      inStyle = name === 'style'
    },
    end: () => {
      inStyle = false
    },
  })
  return parts.join('\n')
}

const escaped = (character: string): string =>
  character === '<' ? '&lt;' : character === '&' ? '&amp;' : character
