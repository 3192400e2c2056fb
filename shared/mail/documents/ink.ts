import type { Omission } from './document.ts'

/** Of 255. The lightest print that a person reads differs more from its ground. */
const CONTRAST_MIN = 24
/** Points. Smaller letters are dust. */
const TINY_PT = 3

/** A colour as six hexadecimal digits; null: it may be any. */
export type Colour = string | null

/** A colour from `#rrggbb`, `rrggbb` or `aarrggbb`; null: it is none of these. */
export function colourOf(given: string | undefined): Colour {
  const digits = /^#?([0-9a-f]{2})?([0-9a-f]{6})$/i.exec(given ?? '')?.[2]
  return digits === undefined ? null : digits.toLowerCase()
}

/** Whether two colours cannot be told apart. */
export function isAlike(one: Colour, other: Colour): boolean {
  if (one === null || other === null) return false
  const part = (colour: string, n: number) => Number.parseInt(colour.slice(2 * n, 2 * n + 2), 16)
  return [0, 1, 2].every((n) => Math.abs(part(one, n) - part(other, n)) < CONTRAST_MIN)
}

/** How words are printed. Undefined: nothing says it. */
export type Ink = {
  colour?: Colour
  /** What lies behind the words. */
  ground?: Colour
  sizePt?: number
  isHidden?: boolean
}

/** Why a person does not see words in this ink; null: they are seen. A page is white, and words are black. */
export function unseenInk({ colour, ground, sizePt, isHidden }: Ink): Omission | null {
  if (isHidden === true) return 'hidden-text'
  if (sizePt !== undefined && sizePt < TINY_PT) return 'tiny-text'
  const behind = ground === undefined ? 'ffffff' : ground
  return colour !== undefined && isAlike(colour, behind) ? 'invisible-text' : null
}
