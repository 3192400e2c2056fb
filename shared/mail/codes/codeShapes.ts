/** Finds the parts of a line that have the shape of a one-time code. */

export type CodeKind = 'numeric' | 'alphanumeric' | 'words'

export type Candidate = {
  kind: CodeKind
  value: string
  start: number
  end: number
  /**
   * Tells whether a candidate (a possible one-time code) consists only of letters, or contains small letters. It counts
   * as a code only if the mail announces a code.
   */
  isWeak: boolean
  /** Tells whether a candidate (a possible one-time code) is a number from 1900 to 2099, which may be a year. */
  isYear: boolean
  /**
   * Tells whether a candidate (a possible one-time code) looks like an issue key or the name of a standard, such as
   * OPS-4821 or SHA-256.
   */
  isKey: boolean
  /** Tells whether a candidate (a possible one-time code) is part of a postal address. */
  isPlace: boolean
  /**
   * Tells whether a candidate (a possible one-time code) consists of letters with as many vowels as a word, such as
   * IMPORTANT and MSIAMJTL.
   */
  isWord?: boolean
  /**
   * Tells whether a candidate (a possible one-time code) mixes capital and small letters without order, as in zlQEWh.
   */
  isJumble?: boolean
  /**
   * Tells whether a candidate (a possible one-time code) consists of groups of small letters, as in qwtzv-xhpls. Two
   * words with a hyphen can have the same shape.
   */
  isSmall?: boolean
}

const CANDIDATES_MAX = 20

/**
 * Lists the code points of the digit zero in other scripts. In Unicode, the other nine digits of each script follow the
 * zero of the script.
 */
const ZEROS = [0x660, 0x6f0, 0x966, 0x9e6, 0xe50, 0xff10]

const asciiDigit = (digit: string): string => {
  const code = digit.charCodeAt(0)
  const zero = ZEROS.find((one) => code >= one && code < one + 10)
  return zero === undefined ? digit : String(code - zero)
}

/** Converts all digits, spaces and dashes of a text to ASCII, and removes invisible characters. */
export const plainForm = (text: string): string =>
  text
    .replace(
      /\u034f|[\u00ad\u061c\u180e\u200b-\u200f\u2060-\u2064\ufeff]|\p{Variation_Selector}/gu,
      '',
    )
    .replace(/[٠-٩۰-۹०-९০-৯๐-๙０-９]/g, asciiDigit)
    .replace(/[Ａ-Ｚａ-ｚ]/g, (letter) => String.fromCharCode(letter.charCodeAt(0) - 0xfee0))
    // A long dash without spaces separates a code from a sentence. The function puts spaces around it, so that it does
    // not look like the hyphen between two groups of a code.
    .replace(/(?<=\S)[\u2014\u2015](?=\S)/g, ' - ')
    .replace(/[\u2010-\u2015\u2212－]/g, '-')
    // Some senders decorate a code on both sides, as in `-482913-`. The function replaces the marks by spaces, because
    // they are no part of the code.
    .replace(
      /(?<!\S)([-_~#=^]{1,3})([\dA-Z][\dA-Z -]{2,14}[\dA-Z])\1(?![^\s.,;:!?])/g,
      (_, mark: string, code: string) =>
        code.padStart(mark.length + code.length).padEnd(2 * mark.length + code.length),
    )
    // In India, many senders write a colon and a dash before a code, as in `OTP:-482913`. The function removes the
    // dash, which is no part of the code.
    .replace(/([:：]) ?-(?=[\dA-Z]{2})/g, '$1 ')
    .replace(/\t/g, '   ')
    .replace(/[\u00a0\u2000-\u200a\u202f\u205f\u3000]/g, ' ')

/**
 * Matches the shapes of a one-time code: single characters with spaces between, two groups of hexadecimal digits,
 * groups of digits, words with hyphens, and groups of letters and digits. Each repetition in the pattern has a maximum,
 * so that every match stays short.
 */
const SHAPE =
  /(?<hex>(?=[a-f]{0,3}\d)(?=[\da-f]{0,4} ?[\da-f]{0,3}[a-f])[\da-f]{4} (?=[a-f]{0,3}\d)[\da-f]{4}(?![\p{L}\p{N}-]))|(?<singles>[0-9A-Z](?: {1,3}(?:- {1,3})?[0-9A-Z]){3,9}(?![ -]{0,3}[0-9A-Z](?![\p{L}\p{N}])))|(?<groups>\d{1,4}(?: ?[ -] ?\d{1,4}){1,4}(?![\dA-Za-z]|-[\dA-Za-z]))|(?<words>[a-z]{3,10}(?:-[a-z]{3,10}){1,4}(?:-[a-z]{3,10}|-\d{1,3}(?![\d-])))|(?<mixed>[0-9A-Za-z]{1,12}(?:-[0-9A-Za-z]{2,8}){0,4}(?:-[0-9A-Z](?![\dA-Za-z-]))?)/gu

/**
 * Matches a character directly before a number that makes the number a part of a longer expression. The character is a
 * digit, a sign, or a letter of a script with spaces between words.
 */
const BEFORE =
  /[\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{N}_#@&=/\\+$€£¥₹₽₺₩~^%-]$|〒 ?$/u
const BEFORE_NUMBER =
  /\p{N}[.,:'’]$|\p{L}[.,'’]$|[A-Za-z\d][[(]$|\*\*$|[$€£¥₹₽₺₩] $|\+\d{1,3} $|\d[ )(/-]{1,2}$/u
const AFTER = /^[\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{N}_@&=/\\$€£¥₹₽₺₩%°-]/u
const AFTER_NUMBER =
  /^(?:[.,:'’][\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{N}]| ?(?:[$€£¥₹₽₺₩%°]|[年月日년월일元円원](?!\p{L})|(?:kr|ft|eur|usd|gbp|inr|zł|kč|lei|ms|km|kg|mb|gb|kb|pm|am|utc|hours?|minutes?|min|days?)(?!\p{L}))|[ )(/-]{1,2}\d)/iu

/**
 * Matches the words that follow a punctuation mark without a space, as in `482913.Do not share it` and `482913,valid
 * for an hour`.
 */
const NEXT_WORDS = /^(?:\.\p{Lu}|,\p{L})(?:\p{Ll}{1,6} |\p{Ll}{7})/u

/**
 * Matches a long number or word, groups of small letters, and a short word of capital and small letters. A match counts as a code only if it is
 * alone on its line or directly follows a label (such as "code"). Otherwise a telephone number, a file name or a
 * product name of the same length would count.
 */
const UNLIKELY = /^(?:\d{9,10}|[a-z-]+|[A-Za-z\d]{11,12}|(?=.*[a-z])(?=.*[A-Z])[A-Za-z\d]{5})$/
const LABEL_BEFORE = /(?:[:：=]|(?<!\p{L})(?:is|ist|est|es|è|é|е|је)|[为為是はが은는]) ?["“„«「]?$/u

/** Matches a name with a number before a code, as in `PIN1: 41907385`. */
const NUMBERED_LABEL = /^[A-Z]{2,6}\d$/
const CURRENCY_BEFORE = /(?<!\p{L})(?:eur|usd|gbp|inr|chf|jpy|cny|rs|kr|r)\.? ?$/iu

/**
 * Matches streets and rooms with their numbers in the formats of the larger countries. Each repetition in the pattern
 * has a maximum, so that every match stays short.
 */
const STREET =
  /(?<!\p{N})\d{1,6}[a-z]? (?:[\p{L}.'’-]{1,20} ){0,3}(?:street|st|avenue|ave|road|rd|boulevard|blvd|lane|ln|drive|dr|way|court|ct|square|sq|plaza|place|parkway|pkwy|highway|hwy|terrace|quay|building)(?!\p{L})|(?<!\p{L})(?:suite|ste|floor|unit|apt|room|box|postfach|bp|〒) ?#?\d[\d-]{0,7}|\p{L}{0,20}(?:straße|strasse|str\.|gasse|allee|platz|straat|laan|gatan|gade|vägen|katu|utca)[ ,]{1,2}\d{1,5}|(?<!\p{L})(?:rue|via|calle|avenida|av\.|rua|ul\.|ulica|ул\.|улица|cad\.|sok\.)(?:,? [\p{L}.'’-]{1,20}){1,4},? \d{1,5}/giu
/** Matches towns with their postal codes, such as San Francisco, CA 94103; 1010 Wien; D-10115 Berlin. */
const TOWN =
  /(?<=, ?)[A-Z]{2},? \d{5}(?:-\d{4})?(?!\p{N})|(?<=[,·|] ?)(?:[A-Z]{1,2}-)?\d{4,5} \p{Lu}\p{Ll}{2,20}(?= ?(?:[,·|]|$))/gu

/**
 * Returns the candidates for one-time codes in a line of text. The line must be in {@link plainForm}, with at most a
 * few hundred characters.
 */
export function candidatesOf(line: string): Candidate[] {
  const found: Candidate[] = []
  const places = [...line.matchAll(STREET), ...line.matchAll(TOWN)]
  for (const match of line.matchAll(SHAPE)) {
    const [shown] = match
    const start = match.index
    const end = start + shown.length
    const before = line.slice(Math.max(0, start - 5), start)
    const after = line.slice(end, end + 9)
    if (BEFORE.test(before) || AFTER.test(after)) continue
    const candidate = read(shown, match.groups!)
    if (candidate === undefined) continue
    const isEnded = candidate.kind === 'numeric' && NEXT_WORDS.test(after)
    const goesOn = !isEnded && AFTER_NUMBER.test(after)
    if (candidate.kind !== 'words' && (BEFORE_NUMBER.test(before) || goesOn)) continue
    if (candidate.kind === 'numeric' && CURRENCY_BEFORE.test(before)) continue
    if (candidate.isYear && /(?:©|\(c\)) ?$/i.test(before)) continue
    const isUnlikely =
      candidate.kind !== 'words' && (candidate.isJumble === true || UNLIKELY.test(shown))
    if (isUnlikely && !standsAlone(line, { start, end }) && !LABEL_BEFORE.test(before)) continue
    if (NUMBERED_LABEL.test(shown) && /^ ?[:：=]/.test(after)) continue
    const isPlace = places.some(({ 0: text, index }) => start < index + text.length && end > index)
    found.push({ ...candidate, start, end, isPlace })
    if (found.length === CANDIDATES_MAX) break
  }
  return found
}

/** Tells whether a line contains no letters and digits outside the candidate (a possible code). */
export const standsAlone = (line: string, { start, end }: Pick<Candidate, 'start' | 'end'>) =>
  !/[\p{L}\p{N}]/u.test(line.slice(0, start) + line.slice(end))

type Shape = Omit<Candidate, 'start' | 'end' | 'isPlace'>

const numeric = (value: string): Shape => ({
  kind: 'numeric',
  value,
  isWeak: false,
  isYear: /^(?:19|20)\d\d$/.test(value),
  isKey: false,
})

/** Matches the letters before the number of an invoice, an order, a case or a standard, as in INV-93174. */
const DOCUMENT =
  /^(?:INV|RE|RG|ORD|PO|SO|SI|QU|QTE|EST|RMA|REF|TKT|TK|INC|REQ|CHG|SR|CR|PR|MR|WO|BUG|ISO|RFC|CVE|SHA|UTF|PAY|TX|TXN|BK|RES|DOC|LOT|SKU|FV|FA|AB)$/

function read(
  shown: string,
  { hex, singles, groups, words }: Record<string, string | undefined>,
): Shape | undefined {
  if (hex !== undefined) return letters(hex.replace(' ', ''))
  if (singles !== undefined) {
    const value = singles.replace(/[ -]/g, '')
    return /^\d+$/.test(value) ? numeric(value) : letters(value)
  }
  if (groups !== undefined) return readGroups(groups)
  if (words !== undefined)
    return { kind: 'words', value: words, isWeak: true, isYear: false, isKey: false }
  if (/^\d{4,10}$/.test(shown)) return numeric(shown)
  // Some senders put letters before the code, as in G-482913. The person who uses such a code enters only the digits.
  const [, sender, digits] =
    /^([A-Z](?=-\d{4,8}$)|[A-Z]{2,3}(?=-\d{5,8}$))-(\d+)$/.exec(shown) ?? []
  if (sender !== undefined && !DOCUMENT.test(sender))
    return { ...numeric(digits!), isKey: sender.length > 1 }
  const length = shown.replaceAll('-', '').length
  const isMixed = /[a-z]/.test(shown) && /[A-Z]/.test(shown)
  const lengthMax = shown.includes('-') ? 20 : isMixed ? 12 : 10
  return length < 4 || length > lengthMax ? undefined : letters(shown)
}

/**
 * Reads groups of digits as a one-time code, such as 482 913, 4829-1305, 4829 - 1305, 48 29 13 and 482 9130. Rare
 * shapes such as 0916 3 and 40-66-1 become only weak candidates, which need further evidence.
 */
function readGroups(shown: string): Shape | undefined {
  const parts = shown.split(/[ -]+/)
  const value = parts.join('')
  const signs = new Set(shown.replace(/\d+/g, '|').split('|').slice(1, -1))
  if (signs.size !== 1 || value.length < 4 || value.length > 9) return undefined
  const isEven =
    parts.every((part) => part.length === parts[0]!.length) ||
    (parts.length === 2 && parts.every((part) => part.length >= 3))
  // The second pattern is the shape of an Apple HomeKit setup code: 384-19-226.
  const isSetup = /^\d{3}-\d\d-\d{3}$/.test(shown)
  const isCut = parts
    .slice(0, -1)
    .every((part) => part.length >= 2 && part.length === parts[0]!.length)
  return isEven || isSetup || isCut ? { ...numeric(value), isWeak: !isEven && !isSetup } : undefined
}

/**
 * Tells whether a text has three groups, of which one mixes small letters and digits. The two other groups may be
 * words, as in atlas-7f41-drop.
 */
function hasMixedGroup(value: string): boolean {
  const groups = value.split('-')
  return groups.length === 3 && groups.some((group) => /^(?=.*\d)(?=.*[a-z])[a-z\d]+$/.test(group))
}

/** Matches a short number that a hyphen joins to a word, as in 2-step and 24-HOUR. */
const COMPOUND = /(?<![^-])[a-z]{3,}(?![^-])|^\d{1,3}-[A-Z]*[AEIOU][A-Z]*$/
/**
 * Matches codes such as kT4wZq and Nb63-Ty08, which have a digit in each group. The pattern does not match product
 * names such as iPhone15 and Win11, because they begin with a word.
 */
const MIXED_CASE =
  /^(?=.{5,12}$)(?:(?=.*\d.*[A-Za-z])[^-]+|(?=[^-]*\d)[^-]+(?:-(?=[^-]*\d)[^-]+){1,2})$/

/**
 * Tells whether capital and small letters alternate without order, as in zlQEWh. In a name such as PayPal or GitHub,
 * each part that begins with a capital has a vowel.
 */
const isJumbled = (value: string): boolean =>
  /^(?=.{6,10}$)(?=.*[a-z].*[A-Z])[A-Za-z]+$/.test(value) &&
  value.split(/(?=[A-Z])/).some((part) => !/[AEIOUYaeiouy]/.test(part)) &&
  value.replace(/[^AEIOUaeiou]/g, '').length <= value.length / 3

/** Matches two or three groups of equally many small letters, such as qwtzv-xhpls. */
const SMALL_GROUPS = /^(?:[a-z]{4}(?:-[a-z]{4}){1,2}|[a-z]{5}(?:-[a-z]{5}){1,2}|[a-z]{6}-[a-z]{6})$/

const KEY = /^[A-Z]{2,10}-\d{1,6}$/

/** Matches the name of a published security fault. */
const FAULT_NAME = /^CVE-\d{4}-/

function letters(value: string): Shape | undefined {
  if (FAULT_NAME.test(value)) return undefined
  if (SMALL_GROUPS.test(value))
    return { kind: 'alphanumeric', value, isWeak: true, isYear: false, isKey: false, isSmall: true }
  if (COMPOUND.test(value) && !hasMixedGroup(value)) return undefined
  const hasDigit = /\d/.test(value)
  const hasLetter = /[A-Za-z]/.test(value)
  if (!hasLetter) return undefined
  if (isJumbled(value))
    return {
      kind: 'alphanumeric',
      value,
      isWeak: true,
      isYear: false,
      isKey: false,
      isJumble: true,
    }
  const isUpper = value === value.toUpperCase()
  const isLower = value === value.toLowerCase()
  if (!isUpper && !isLower && !MIXED_CASE.test(value)) return undefined
  // A word with a number, such as WELCOME15, is probably a voucher. It counts as a one-time code only if the mail names
  // a sign-in code, and not just a `code`.
  const isVoucher = /^[A-Z]{4,}\d{1,4}$/.test(value) && /[AEIOU]/.test(value)
  if (hasDigit) {
    const isKey = KEY.test(value)
    return { kind: 'alphanumeric', value, isWeak: !isUpper || isVoucher, isYear: false, isKey }
  }
  // A group of capital letters with many vowels is probably a word, because random letters contain fewer vowels.
  const bare = value.replaceAll('-', '')
  const vowels = bare.replace(/[^AEIOU]/g, '').length
  if (!isUpper || bare.length < 6 || vowels > bare.length / 2) return undefined
  const isWord = vowels > bare.length / 5
  return { kind: 'alphanumeric', value, isWeak: true, isYear: false, isKey: false, isWord }
}
