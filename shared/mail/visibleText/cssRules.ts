/**
 * Reads the CSS declarations in a mail's `<style>` elements and `style` attributes that make text visible or hidden.
 *
 * The CSS reader supports selectors of tag, classes and id, lists of selectors, descendants (`.a .b`, `div > .b`),
 * `!important` and specificity. The CSS reader does not support attribute selectors, pseudo-classes, siblings,
 * variables, and @media with a condition in parentheses.
 */

export type Declarations = Map<string, { value: string; important: boolean }>
/** Holds the parts of an HTML element that CSS selectors compare: the element's name, id and classes. */
export type Selected = { name: string; id: string; classes: readonly string[] }

type Compound = { name: string; id: string; classes: string[] }
type Rule = { compounds: Compound[]; weight: number; order: number; declarations: Declarations }

/**
 * Sets the maximum number of characters of a mail's style sheets. The following constants limit the number of CSS
 * selectors and the steps of the matching, because a hostile sender can write style sheets of any size.
 */
const MAX_CSS_LENGTH = 256 * 1024
const MAX_SELECTORS = 5_000
const MAX_COMPOUNDS = 6
const MAX_STEPS = 300_000
/**
 * Sets the maximum number of HTML elements whose CSS declarations the style sheet caches. Most elements of a mail have
 * the same name, id and classes as an earlier element.
 */
const MAX_KNOWN = 1_000

/** Lists the CSS properties that hiddenStyle.ts reads. */
const PROPERTIES = new Set(
  (
    'display visibility opacity filter transform overflow overflow-x overflow-y max-height height max-width width clip ' +
    'clip-path text-indent margin margin-left margin-top position left top right bottom font font-size color background ' +
    'background-color background-image font-weight letter-spacing'
  ).split(' '),
)

const COMPOUND = /^([a-z][\w-]*|\*)?((?:[.#][\w-]+)*)$/i

/** Reads the declarations of a `style` attribute or of one CSS rule. */
export function readDeclarations(text: string): Declarations {
  const found: Declarations = new Map()
  for (const part of plainCss(text).split(';')) {
    const colon = part.indexOf(':')
    if (colon < 1) continue
    const value = part
      .slice(colon + 1)
      .trim()
      .toLowerCase()
    const important = value.endsWith('important') && /!\s*important$/.test(value.slice(-40))
    const name = part.slice(0, colon).trim().toLowerCase()
    if (!PROPERTIES.has(name)) continue
    if (found.get(name)?.important === true && !important) continue
    found.set(name, {
      value: important ? value.slice(0, value.lastIndexOf('!')).trim() : value,
      important,
    })
  }
  return found
}

/** Removes comments and escapes from CSS, so that `d\69splay` becomes `display`. */
function plainCss(text: string): string {
  const parts: string[] = []
  for (let at = 0; at < text.length; ) {
    const open = text.indexOf('/*', at)
    parts.push(text.slice(at, open < 0 ? text.length : open))
    const close = open < 0 ? -1 : text.indexOf('*/', open + 2)
    at = close < 0 ? text.length : close + 2
  }
  return parts.join(' ').replace(/\\([\da-f]{1,6})\s?/gi, (_, hex: string) => {
    const code = Number.parseInt(hex, 16)
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : ''
  })
}

const NONE: Declarations = new Map()
const HIDDEN: Declarations = new Map([['display', { value: 'none', important: true }]])

/** Holds the CSS rules of a mail that can make text visible or hidden. */
export class StyleSheet {
  readonly #rules = new Map<string, Rule[]>()
  #count = 0
  #steps = 0
  readonly #known = new Map<string, Declarations>()
  /** Tells whether the style sheet exceeds a limit, in which case the reader has dropped CSS rules. */
  isCut = false

  constructor(css: string) {
    this.#read(plainCss(css.slice(0, MAX_CSS_LENGTH)))
    this.isCut ||= css.length > MAX_CSS_LENGTH
  }

  #read(css: string): void {
    for (let at = 0; at < css.length && !this.isCut; ) {
      const open = css.indexOf('{', at)
      if (open < 0) return
      const head = css
        .slice(at, open)
        .replace(/^[\s;}]+|<!--|-->/g, '')
        .trim()
      // The reader treats the rules inside an @media block without a condition like all other rules. It skips the
      // closing brace of such a block like a blank.
      if (/^@media\s+(?:only\s+)?(?:all|screen)\s*$/i.test(head)) {
        at = open + 1
        continue
      }
      const close = head.startsWith('@') ? endOfBlock(css, open) : css.indexOf('}', open)
      const end = close < 0 ? css.length : close
      if (!head.startsWith('@')) this.#add(head, readDeclarations(css.slice(open + 1, end)))
      at = end + 1
    }
  }

  #add(selectors: string, declarations: Declarations): void {
    if (declarations.size === 0) return
    for (const selector of selectors.split(',')) {
      if (++this.#count > MAX_SELECTORS) {
        this.isCut = true
        return
      }
      const parts = selector.replaceAll('>', ' ').trim().split(/\s+/)
      const compounds = parts.map(readCompound)
      if (parts.length > MAX_COMPOUNDS || compounds.includes(null)) continue
      const rule = {
        compounds: compounds as Compound[],
        weight: weightOf(compounds as Compound[]),
        order: this.#count,
        declarations,
      }
      const last = rule.compounds.at(-1)!
      const key =
        last.id !== '' ? `#${last.id}` : last.classes[0] ? `.${last.classes[0]}` : last.name
      const rules = this.#rules.get(key)
      if (rules === undefined) this.#rules.set(key, [rule])
      else rules.push(rule)
    }
  }

  /** Tells whether the style sheet has no rule that can hide an element. */
  get isEmpty(): boolean {
    return this.#rules.size === 0
  }

  /**
   * Returns the CSS declarations that apply to an element according to the CSS cascade. If the matching of the
   * selectors takes too many steps, every element counts as hidden.
   * @param ancestors lists the ancestors of the element, from the root.
   */
  match(element: Selected, ancestors: readonly Selected[]): Declarations {
    if (this.isEmpty) return NONE
    const looks = `${element.name}#${element.id}.${element.classes.join('.')}`
    const known = this.#known.get(looks)
    if (known !== undefined) return known
    if (this.#steps > MAX_STEPS) return HIDDEN
    const keys = ['*', element.name, `#${element.id}`, ...element.classes.map((one) => `.${one}`)]
    const candidates = keys.flatMap((key) => this.#rules.get(key) ?? [])
    this.#steps += candidates.length
    const found = cascade(
      candidates
        .filter(({ compounds }) => this.#matches(compounds, element, ancestors))
        .sort((a, b) => a.weight - b.weight || a.order - b.order)
        .map(({ declarations }) => declarations),
    )
    // If no CSS rule depends on the element's ancestors, the computed style applies to every element with the same
    // name, id and classes.
    const isOwn = candidates.every(({ compounds }) => compounds.length === 1)
    if (isOwn && this.#known.size < MAX_KNOWN) this.#known.set(looks, found)
    return found
  }

  #matches(compounds: Compound[], element: Selected, ancestors: readonly Selected[]): boolean {
    if (!fits(compounds.at(-1)!, element)) return false
    let left = compounds.length - 1
    for (let n = ancestors.length - 1; left > 0 && n >= 0; n--) {
      if (++this.#steps > MAX_STEPS) return true
      if (fits(compounds[left - 1]!, ancestors[n]!)) left--
    }
    return left === 0
  }
}

/** Combines lists of CSS declarations. Later declarations win, and `!important` declarations win over all others. */
export function cascade(list: readonly Declarations[]): Declarations {
  const all: Declarations = new Map()
  for (const declarations of list) {
    for (const [name, declared] of declarations) {
      if (all.get(name)?.important === true && !declared.important) continue
      all.set(name, declared)
    }
  }
  return all
}

function endOfBlock(css: string, open: number): number {
  let depth = 0
  for (let at = open; at < css.length; at++) {
    if (css[at] === '{') depth++
    else if (css[at] === '}' && --depth === 0) return at
  }
  return -1
}

function readCompound(text: string): Compound | null {
  const match = text.length > 200 ? null : COMPOUND.exec(text)
  if (match === null || text === '') return null
  const marks = match[2]?.match(/[.#][^.#]+/g) ?? []
  return {
    name: (match[1] ?? '*').toLowerCase(),
    id: marks.find((mark) => mark.startsWith('#'))?.slice(1) ?? '',
    classes: marks.filter((mark) => mark.startsWith('.')).map((mark) => mark.slice(1)),
  }
}

const weightOf = (compounds: Compound[]): number =>
  compounds.reduce(
    (sum, { name, id, classes }) =>
      sum + (id === '' ? 0 : 10_000) + classes.length * 100 + (name === '*' ? 0 : 1),
    0,
  )

const fits = ({ name, id, classes }: Compound, element: Selected): boolean =>
  (name === '*' || name === element.name) &&
  (id === '' || id === element.id) &&
  classes.every((one) => element.classes.includes(one))
