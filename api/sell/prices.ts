/** Reads the price of each path that `bun run sell` sells. */
import { z } from 'zod'
import { normalEncoding } from '../../shared/http/normalUrl.ts'
import { PathError } from './sellPath.ts'

/**
 * Holds the price of a path, and the path for which the seller registers this price. The registered path is the exact
 * path, or the part of a glob before its wildcards.
 */
export type Price = { amount: string; registered: string; description?: string | undefined }

/**
 * Returns the price of a path that is in its normal form. Returns `null` if the seller does not sell the path.
 * @throws {PathError} if the path is another spelling of a path with a higher price.
 */
type PriceOf = (path: string) => Price | null

/**
 * Holds the prices of all paths that the proxy sells. The function `of` returns the price at which the proxy sells a
 * path. The function `registeredAt` returns the price that the seller registered for a path.
 */
export type Prices = { all: readonly Price[]; of: PriceOf; registeredAt: PriceOf }

/** Reports that a price file or an argument is unusable. The error message tells the user what to change. */
export class PriceError extends Error {}

const PRICES_MAX = 1_000
const GLOB_MAX_CHARS = 500
const AMOUNT_RULE = 'must be decimal USDC with at most six places, such as "0.01"'

const amount = z
  .string({ error: AMOUNT_RULE })
  .regex(/^(?=.*[1-9])\d{1,9}(?:\.\d{1,6})?$/, { error: AMOUNT_RULE })
const price = z.union(
  [
    amount.transform((text) => ({ amount: text, description: undefined })),
    z.strictObject({ amount, description: z.string().max(500).optional() }),
  ],
  { error: `${AMOUNT_RULE}, or an object with amount and description` },
)
const file = z
  .record(z.string().startsWith('/').max(GLOB_MAX_CHARS), price)
  .refine((prices) => Object.keys(prices).length <= PRICES_MAX)

/** Reads an amount of USDC in a price file or an argument. @throws {PriceError} for an invalid amount. */
function readAmount(text: string): string {
  const parsed = amount.safeParse(text)
  if (!parsed.success) throw new PriceError(`the price ${AMOUNT_RULE}`)
  return parsed.data
}

/**
 * Reads a price file: a JSON object that maps globs of paths to amounts. If several globs match a path, the first one
 * applies.
 * @throws {PriceError} if the file is not a JSON object of this form.
 */
export function readPrices(json: string): Prices {
  let given: unknown
  try {
    given = JSON.parse(json)
  } catch {
    throw new PriceError('the file of prices must be JSON')
  }
  const parsed = file.safeParse(given)
  if (!parsed.success) {
    const [{ path, message } = { path: [], message: '' }] = parsed.error.issues
    const where = path.length === 0 ? 'the file' : `"${String(path[0])}"`
    throw new PriceError(
      `${where}: ${message}; a file is {"/weather": "0.01", "/reports/**": {"amount": "0.05"}}`,
    )
  }
  const prices = Object.entries(parsed.data).map(([text, found]) => {
    const pattern = encoded(text)
    return {
      glob: new Bun.Glob(pattern),
      looseGlob: looseGlobOf(pattern),
      price: { ...found, registered: fixedPart(pattern) },
    }
  })
  const amounts = new Map<string, string>()
  for (const { price: one } of prices) {
    const other = amounts.get(one.registered)
    if (other !== undefined && other !== one.amount) {
      throw new PriceError(`"${one.registered}": globs below it must have one amount`)
    }
    amounts.set(one.registered, one.amount)
  }
  const all = prices.map(({ price: one }) => one)
  return {
    all,
    of: (path) => {
      const price = prices.find(({ glob }) => glob.match(path))?.price ?? null
      const loose = loosely(path)
      // The wanted price is the first price whose glob matches any spelling of the path. If the exact spelling has a
      // lower price, the function refuses the path.
      const wanted = prices.find(
        ({ glob, looseGlob }) => glob.match(path) || looseGlob.match(loose),
      )
      if (price === null || Number(wanted?.price.amount) <= Number(price.amount)) return price
      throw new PathError(
        'the path must be spelt exactly as it is for sale (case, final slash, encoding and parameters count)',
      )
    },
    registeredAt: (path) => all.find(({ registered }) => registered === path) ?? null,
  }
}

/** Returns the prices of a server that sells only one path. */
export const onePrice = (path: string, text: string): Prices => {
  const only: Price = { amount: readAmount(text), registered: path }
  const of: PriceOf = (asked) => (asked === path ? only : null)
  return { all: [only], of, registeredAt: of }
}

/**
 * Returns a glob with the percent-encoding of normalised paths. Without this encoding, a glob such as `/münchen/*`
 * would match no path.
 */
const encoded = (glob: string): string =>
  normalEncoding(glob.toWellFormed().replace(/[^\x21-\x7e]|["<>`]/gu, encodeURIComponent))

/**
 * Returns a simplified spelling of a path. Two paths have the same simplified spelling if a server may serve the same
 * content for both. Express ignores the case of a path and a slash at its end. Servlet containers drop the parameters
 * of a segment. Many servers decode each percent-encoded character, so that `/%40a` means `/@a`.
 * @param write returns the spelling of a character that was percent-encoded.
 */
const loosely = (path: string, write = (char: string) => char): string =>
  path
    .replace(/(?:;|%3b)[^/]*/gi, '')
    .replace(/%(?:2[1-9a-e]|[3-6][0-9a-f]|7[0-9a-e])/gi, (code) =>
      write(String.fromCharCode(Number.parseInt(code.slice(1), 16))),
    )
    .toLowerCase()
    .replace(/(?<=.)\/$/, '')

/** Returns the simplified spelling of a glob. A percent-encoded character of a glob is never a wildcard. */
const looseGlobOf = (glob: string): Bun.Glob =>
  new Bun.Glob(loosely(glob, (char) => (/[*?[\]{}!,\\]/.test(char) ? `\\${char}` : char)))

/**
 * Returns the path segments of a glob that stand before the segment with the first wildcard. Returns the whole glob if
 * the glob has no wildcard.
 */
function fixedPart(glob: string): string {
  const wildcard = glob.search(/[*?[{\\]/)
  return wildcard === -1 ? glob : glob.slice(0, glob.lastIndexOf('/', wildcard) + 1)
}
