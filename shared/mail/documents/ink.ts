import type { Omission } from './document.ts'

/**
 * Sets the smallest readable difference of colour values (0 to 255) between words and background. Even very light print
 * differs more from its background.
 */
const CONTRAST_MIN = 24
/** Sets the smallest readable size of letters in points. */
const TINY_PT = 3
/** Sets the opacity, as a fraction, below which a person does not see letters. */
export const FAINT_OPACITY = 0.1

/** Describes a colour as six hexadecimal digits. Null means that the colour is unknown. */
export type Colour = string | null

/** Reads a colour from `#rrggbb`, `rrggbb` or `aarrggbb`. @returns null if the text has another form. */
export function colourOf(given: string | undefined): Colour {
  const digits = /^#?([0-9a-f]{2})?([0-9a-f]{6})$/i.exec(given ?? '')?.[2]
  return digits === undefined ? null : digits.toLowerCase()
}

/** Tells whether a person cannot distinguish two colours. */
export function isAlike(one: Colour, other: Colour): boolean {
  if (one === null || other === null) return false
  const part = (colour: string, n: number) => Number.parseInt(colour.slice(2 * n, 2 * n + 2), 16)
  return [0, 1, 2].every((n) => Math.abs(part(one, n) - part(other, n)) < CONTRAST_MIN)
}

/**
 * Describes how a file shows certain words, for example their colour, background and size. A property is undefined if
 * the file does not state it.
 */
export type Ink = {
  colour?: Colour
  /** Holds the colour of the background behind the words. */
  ground?: Colour
  sizePt?: number
  isHidden?: boolean
  /** Tells whether the letters have no paint, or almost transparent paint. */
  isTransparent?: boolean
}

/**
 * Tells why a person does not see certain words of a file, by their colour, background and size. If the file states no
 * colours, the function assumes black words on a white page. @returns null if a person sees the words.
 */
export function unseenInk({
  colour,
  ground,
  sizePt,
  isHidden,
  isTransparent,
}: Ink): Omission | null {
  if (isHidden === true) return 'hidden-text'
  if (sizePt !== undefined && sizePt < TINY_PT) return 'tiny-text'
  if (isTransparent === true) return 'invisible-text'
  const behind = ground === undefined ? 'ffffff' : ground
  return colour !== undefined && isAlike(colour, behind) ? 'invisible-text' : null
}
