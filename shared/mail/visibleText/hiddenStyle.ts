/** Decides from an element's style whether a person can see the element's text. */
import type { Declarations } from './cssRules.ts'

/**
 * Describes a colour of three bytes (red, green and blue), or `unknown`. Text in an unknown colour always counts as
 * visible.
 */
type Colour = readonly [number, number, number] | 'unknown'

/**
 * Describes how a person sees an HTML element, for example its colours. A child element inherits this description from
 * its parent.
 */
export type Sight = {
  /** Tells whether the element and all elements inside it are invisible. */
  gone: boolean
  invisible: boolean
  /** Tells whether the text of the element is too small to read. */
  tiny: boolean
  transparent: boolean
  colour: Colour
  background: Colour
}

/** Describes how the page of a mail program shows text by default: black text on a white background. */
export const PAGE: Sight = {
  gone: false,
  invisible: false,
  tiny: false,
  transparent: false,
  colour: [0, 0, 0],
  background: [255, 255, 255],
}

/** Lists the HTML elements with content that a mail program does not show. */
const UNSEEN = new Set([
  'template',
  'noscript',
  'iframe',
  'noembed',
  'noframes',
  'datalist',
  'dialog',
])

/** Tells whether a mail program hides every element of the given name. */
export const isUnseen = (name: string): boolean => UNSEEN.has(name)

const NAMED = new Map<string, Colour>(
  Object.entries<Colour>({
    white: [255, 255, 255],
    snow: [255, 250, 250],
    ivory: [255, 255, 240],
    ghostwhite: [248, 248, 255],
    mintcream: [245, 255, 250],
    whitesmoke: [245, 245, 245],
    black: [0, 0, 0],
    red: [255, 0, 0],
    green: [0, 128, 0],
    blue: [0, 0, 255],
    yellow: [255, 255, 0],
    gray: [128, 128, 128],
    grey: [128, 128, 128],
    silver: [192, 192, 192],
    lightgray: [211, 211, 211],
    lightgrey: [211, 211, 211],
  }),
)

/**
 * Sets the smallest visible difference between two values of red, green or blue. Two colours look alike if their
 * differences in red, green and blue are all smaller than this value.
 */
const COLOUR_STEP = 10
const OFF_SCREEN_PX = -400
const FAR_PX = 5_000
const TINY_PX = 2

/**
 * Computes how a person sees an element, from the element's attributes, its CSS declarations and the style of its
 * parent.
 */
export function sightOf(
  name: string,
  attributes: ReadonlyMap<string, string>,
  style: Declarations,
  parent: Sight,
): Sight {
  const styled = (property: string) => style.get(property)?.value ?? ''
  const size = styled('font-size') || sizeOfFont(styled('font'))
  const colour =
    styled('color') ||
    (name === 'font' || name === 'body'
      ? (attributes.get('color') ?? attributes.get('text') ?? '')
      : '')
  const visibility = styled('visibility')
  return {
    gone: parent.gone || isGone(name, attributes, styled),
    invisible:
      visibility === '' || visibility === 'inherit' ? parent.invisible : visibility !== 'visible',
    tiny: size === '' ? parent.tiny : isTiny(size, parent.tiny),
    ...colourOf(colour, parent),
    background: backgroundOf(attributes, styled, parent.background),
  }
}

/** Tells whether a reader can see text with the given size, colours and other properties. */
export const isSeen = ({
  gone,
  invisible,
  tiny,
  transparent,
  colour,
  background,
}: Sight): boolean => !(gone || invisible || tiny || transparent || isSame(colour, background))

function isGone(
  name: string,
  attributes: ReadonlyMap<string, string>,
  styled: (property: string) => string,
): boolean {
  const display = styled('display')
  if (UNSEEN.has(name) && !(name === 'dialog' && attributes.has('open'))) return true
  if (display === 'none' || (attributes.has('hidden') && display === '')) return true
  const opacity = styled('opacity')
  if (opacity !== '' && Number.parseFloat(opacity) <= (opacity.endsWith('%') ? 5 : 0.05))
    return true
  if (FAINT.test(styled('filter')) || FLAT.test(styled('transform'))) return true
  if (shiftsOf(styled('transform')).some((shift) => shift <= OFF_SCREEN_PX || shift >= FAR_PX))
    return true
  const cut = /^(?:hidden|clip)/.test(
    styled('overflow') || styled('overflow-y') || styled('overflow-x'),
  )
  if (cut && ['max-height', 'height', 'max-width', 'width'].some((side) => isZero(styled(side))))
    return true
  if (/^rect\(\s*(?:0|1)(?:px)?[\s,]+(?:0|1)(?:px)?[\s,]+(?:0|1)(?:px)?[\s,]/.test(styled('clip')))
    return true
  if (/^(?:inset\(\s*(?:50|100)%|circle\(\s*0)/.test(styled('clip-path'))) return true
  const shifts = ['text-indent', 'margin-left', 'margin-top', 'margin']
  if (/^(?:absolute|fixed|relative)/.test(styled('position'))) shifts.push('left', 'top')
  if (shifts.some((side) => pixels(styled(side)) <= OFF_SCREEN_PX)) return true
  const far = ['right', 'bottom', 'left', 'top'].some((side) => pixels(styled(side)) >= FAR_PX)
  return far && /^(?:absolute|fixed)/.test(styled('position'))
}

/** Matches a CSS filter that leaves less than a tenth of the opacity. */
const FAINT = /\bopacity\(\s*(?:0?\.0\d*|0|\d(?:\.\d*)?%)\s*\)/
/** Matches a CSS transformation that shrinks an element to a line or a point. */
const FLAT = /\bscale[xy]?\(\s*0*(?:\.0*)?(?:\s*,\s*[\d.]{1,10})?\s*\)/
const TRANSLATE = /\btranslate[xy]?\(([^),]{1,30})(?:,([^),]{1,30}))?\)/g

/**
 * Returns the lengths in pixels by which a transformation moves an element. The function ignores a length that is
 * relative to the element's size, such as a percentage.
 */
const shiftsOf = (transform: string): number[] =>
  [...transform.matchAll(TRANSLATE)]
    .flatMap(([, x = '', y = '']) => [x.trim(), y.trim()])
    .filter((length) => !length.endsWith('%'))
    .map(pixels)

const isZero = (value: string): boolean =>
  value !== '' && /^[01](?:\.0+)?(?:px|em|pt|rem|%)?$/.test(value) && !/^1(?:em|rem|%)/.test(value)

/** Returns a CSS length in pixels. One `em` counts as ten pixels. @returns NaN if the text is no length. */
function pixels(value: string): number {
  const [, number = '', unit = ''] = /^(-?[\d.]{1,10})(px|pt|em|rem|vw|vh|%)?/.exec(value) ?? []
  return Number.parseFloat(number) * (unit === '' || unit === 'px' || unit === 'pt' ? 1 : 10)
}

/** Returns the font size that the CSS shorthand `font` sets, such as `font: 0/0 a`. */
const sizeOfFont = (value: string): string =>
  /(?:^|\s)([\d.]{1,10}(?:px|pt|em|rem|%)?)(?:\/|\s)/.exec(value)?.[1] ?? ''

/**
 * Tells whether the font size is too small to read. With a relative size, the text is also too small if the parent's
 * font is too small. With an absolute size, the parent's font does not matter.
 */
function isTiny(size: string, parent: boolean): boolean {
  const [, number = '', unit = ''] = /^([\d.]{1,10})([a-z%]*)/.exec(size) ?? []
  if (number === '') return parent && /^(?:inherit|smaller|larger|initial)?$/.test(size)
  const value = Number.parseFloat(number)
  if (unit === 'em' || unit === '%') return parent || value < (unit === '%' ? 10 : 0.1)
  return value < (unit === 'rem' || unit === 'vw' ? 0.1 : TINY_PX)
}

function colourOf(text: string, parent: Sight): { colour: Colour; transparent: boolean } {
  if (text === '' || text === 'inherit') {
    return { colour: parent.colour, transparent: parent.transparent }
  }
  const colour = readColour(text.trim().toLowerCase())
  return {
    colour: colour === 'transparent' ? 'unknown' : colour,
    transparent: colour === 'transparent',
  }
}

function backgroundOf(
  attributes: ReadonlyMap<string, string>,
  styled: (property: string) => string,
  parent: Colour,
): Colour {
  // Text on a background picture has an unknown contrast, so the code does not compare the text colour with the
  // background.
  if (
    attributes.has('background') ||
    /url\(|gradient/.test(styled('background') + styled('background-image'))
  )
    return 'unknown'
  const text =
    styled('background-color') || styled('background') || (attributes.get('bgcolor') ?? '')
  if (text === '' || /^(?:none|inherit|initial)/.test(text)) return parent
  const value = text.trim().toLowerCase()
  const colour = readColour(value)
  return colour === 'transparent' ? parent : mixed(colour, alphaOf(value), parent)
}

/** Returns the colour that a person sees if a background of the given opacity lies on another background. */
function mixed(colour: Colour, alpha: number, below: Colour): Colour {
  // An almost opaque background hides everything below it. White text on a white background stays invisible, even if a
  // picture lies below this background.
  if (colour === 'unknown' || (1 - alpha) * 255 <= COLOUR_STEP) return colour
  if (below === 'unknown') return 'unknown'
  const [red, green, blue] = colour.map((part, n) => part * alpha + below[n]! * (1 - alpha))
  return [red!, green!, blue!]
}

const HEX = /^#?([\da-f]{3,8})(?=\s|$)/

/**
 * Returns the numbers of a colour such as `rgb(0 0 0 / 50%)` or `hsl(0 0% 0%)`. The fourth number of a CSS colour is the
 * opacity.
 */
const numbersOf = (value: string): string[] | undefined =>
  /^(?:rgb|hsl)a?\(([^)]{1,60})\)/
    .exec(value)?.[1]
    ?.split(/[\s,/]+/)
    .filter((part) => part !== '')

/** Returns the opacity of a colour from 0 to 1. A colour that states no opacity has the opacity 1. */
function alphaOf(value: string): number {
  const fourth = numbersOf(value)?.[3]
  if (fourth !== undefined) {
    const alpha = Number.parseFloat(fourth) / (fourth.endsWith('%') ? 100 : 1)
    return Number.isNaN(alpha) ? 1 : alpha
  }
  const [, hex = ''] = HEX.exec(value) ?? []
  const digits = hex.length === 8 ? hex.slice(6) : hex.length === 4 ? hex[3]!.repeat(2) : 'ff'
  return Number.parseInt(digits, 16) / 255
}

/** Holds the highest opacity at which a colour still counts as transparent. */
const ALPHA_MIN = 0.05

/** Reads a colour of CSS in lower case. */
function readColour(value: string): Colour | 'transparent' {
  if (value.startsWith('transparent') || alphaOf(value) <= ALPHA_MIN) return 'transparent'
  const [, hex] = HEX.exec(value) ?? []
  if (hex !== undefined) {
    const wide = hex.length < 6 ? [...hex].map((digit) => digit + digit).join('') : hex
    return [0, 2, 4].map((at) => Number.parseInt(wide.slice(at, at + 2), 16)) as unknown as Colour
  }
  const numbers = numbersOf(value)
  if (numbers === undefined || numbers.length < 3)
    return NAMED.get(value.split(/\s/, 1)[0]!) ?? 'unknown'
  if (value.startsWith('hsl')) return fromHsl(numbers)
  const [red, green, blue] = numbers.map(
    (part) => Number.parseFloat(part) * (part.endsWith('%') ? 2.55 : 1),
  )
  return [red!, green!, blue!]
}

/** Converts hue, saturation and lightness to red, green and blue (CSS Color 4 §7.1). */
function fromHsl([angle = '', ...percentages]: readonly string[]): Colour {
  const hue = Number.parseFloat(angle) * (angle.endsWith('turn') ? 360 : 1)
  const [saturation, lightness] = percentages.map((part) => Number.parseFloat(part) / 100)
  if (![hue, saturation, lightness].every(Number.isFinite)) return 'unknown'
  const strength = saturation! * Math.min(lightness!, 1 - lightness!)
  const part = (n: number) => {
    const at = (((n + hue / 30) % 12) + 12) % 12
    return 255 * (lightness! - strength * Math.max(-1, Math.min(at - 3, 9 - at, 1)))
  }
  return [part(0), part(8), part(4)]
}

const isSame = (one: Colour, other: Colour): boolean =>
  one !== 'unknown' &&
  other !== 'unknown' &&
  one.every((part, n) => Math.abs(part - other[n]!) <= COLOUR_STEP)
