/** Makes hostile texts of any length from the tokens of a grammar. */

/**
 * Describes one kind of hostile text. `make` returns a text of this kind with `length` UTF-16 units.
 */
export type Shape = { name: string; make: (length: number) => string }

/** Holds the tokens of a grammar. `nests` holds the pairs of an opening text and a closing text. */
export type Grammar = { tokens: readonly string[]; nests?: readonly (readonly [string, string])[] }

const show = (text: string) =>
  JSON.stringify(text.length > 24 ? `${text.slice(0, 20)}…` : text).slice(1, -1)

const times = (text: string, length: number): string =>
  text.repeat(Math.ceil(length / text.length)).slice(0, Math.max(0, length))

/**
 * Makes a generator of random numbers from 0 to below `end` (mulberry32). The same seed gives the same numbers.
 */
export function randomBySeed(seed: number): (end: number) => number {
  let state = seed
  return (end) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296) * end)
  }
}

/**
 * Returns the kinds of hostile texts: repeats, near-matches and nests of every token, and `draws` random combinations.
 */
export function shapesOf({ tokens, nests = [] }: Grammar, draws: number, seed: number): Shape[] {
  const shapes: Shape[] = []
  const add = (name: string, make: (length: number) => string) => shapes.push({ name, make })
  for (const token of tokens) {
    add(`${show(token)} repeated`, (length) => times(token, length))
    if (token.length > 1) {
      const near = token.slice(0, -1)
      add(`${show(near)} repeated`, (length) => times(near, length))
    } else {
      add(`${show(token)} repeated, then x!`, (length) => `${times(token, length - 2)}x!`)
      add(`x, then ${show(token)} repeated, then x`, (length) => `x${times(token, length - 2)}x`)
    }
  }
  for (const [open, close] of nests) {
    const deep = (length: number) => Math.floor(length / (open.length + close.length))
    add(`${show(open)} nested`, (length) => open.repeat(deep(length)) + close.repeat(deep(length)))
    add(
      `${show(close)} before ${show(open)}`,
      (length) => close.repeat(deep(length)) + open.repeat(deep(length)),
    )
  }
  const random = randomBySeed(seed)
  const draw = () => tokens[random(tokens.length)]!
  for (let n = 0; n < draws; n++) {
    const [one, other, third] = [draw(), draw(), draw()]
    const kind = random(4)
    if (kind === 0) {
      add(`${show(one)} and ${show(other)} by turns`, (length) => times(one + other, length))
    } else if (kind === 1) {
      add(
        `${show(one)}, then ${show(other)} repeated, then ${show(third)}`,
        (length) => one + times(other, length - one.length - third.length) + third,
      )
    } else if (kind === 2) {
      add(
        `${show(one)} repeated, then ${show(other)} repeated`,
        (length) => times(one, length / 2) + times(other, length / 2),
      )
    } else {
      const own = random(2 ** 31)
      add(`a mix of seed ${own}`, (length) => {
        const choose = randomBySeed(own)
        let text = ''
        while (text.length < length) text += tokens[choose(tokens.length)]!
        return text.slice(0, length)
      })
    }
  }
  return shapes
}
