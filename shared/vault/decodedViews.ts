/**
 * Decodes a text in every way that its recipient could decode it. The decoder removes percent, backslash, HTML or
 * quoted-printable escapes. It also decodes base64, hexadecimal digits and decimal bytes. The decoded texts are binary
 * strings, in which one character is one byte.
 *
 * Standards: RFC 3986 §2.1 (percent), RFC 8259 §7 (JSON), RFC 2045 §6.7 (quoted-printable), RFC 4648 §4, §5, §8.
 */

/**
 * Describes a decoded text with the position of each decoded character in the source text. Character n of the decoded
 * text comes from the source characters `from[n]` (inclusive) to `to[n]` (exclusive).
 */
export type View = { text: string; from: Int32Array; to: Int32Array }

const byte = (code: number) => String.fromCharCode(code)

/**
 * Returns the UTF-8 bytes of a code point. A lone surrogate or a number above U+10FFFF becomes a replacement character.
 */
const utf8 = (point: number): string =>
  point < 0x80
    ? byte(point)
    : Buffer.from(point <= 0x10ffff ? String.fromCodePoint(point) : '\ufffd').toString('latin1')

class ViewBuilder {
  readonly #bytes: Buffer
  readonly #from: Int32Array
  readonly #to: Int32Array
  #length = 0

  constructor(lengthMax: number) {
    this.#bytes = Buffer.allocUnsafe(lengthMax)
    this.#from = new Int32Array(lengthMax)
    this.#to = new Int32Array(lengthMax)
  }

  /** Adds one decoded byte, with the range of the byte in the source text. */
  put(code: number, from: number, to: number): void {
    this.#bytes[this.#length] = code
    this.#from[this.#length] = from
    this.#to[this.#length++] = to
  }

  /** Adds decoded characters that all come from the same range of the source text. */
  add(text: string, from: number, to: number): void {
    for (let n = 0; n < text.length; n++) this.put(text.charCodeAt(n), from, to)
  }

  /** Copies a range of the source text that needs no decoding. */
  copy(source: string, from: number, to: number): void {
    this.#bytes.write(source.slice(from, to), this.#length, 'latin1')
    for (let at = from; at < to; at++) {
      this.#from[this.#length] = at
      this.#to[this.#length++] = at + 1
    }
  }

  view(): View {
    return {
      text: this.#bytes.toString('latin1', 0, this.#length),
      from: this.#from.subarray(0, this.#length),
      to: this.#to.subarray(0, this.#length),
    }
  }
}

type Unescape = { token: RegExp; decode: (groups: readonly (string | undefined)[]) => string }

const hex = (digits: string) => Number.parseInt(digits, 16)

const PERCENT: Unescape = {
  token: /%(?:u([\da-f]{4})|([\da-f]{2}))/gi,
  decode: ([, unit, pair]) => (pair === undefined ? utf8(hex(unit!)) : byte(hex(pair))),
}

const SHORT_ESCAPES: Record<string, string> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }

const BACKSLASH: Unescape = {
  token:
    /\\(?:u\{([\da-f]{1,6})\}|u(d[89ab][\da-f]{2})\\u(d[c-f][\da-f]{2})|u([\da-f]{4})|x([\da-f]{2})|([0-3][0-7]{2})|([\s\S]))/gi,
  decode([, braced, high, low, unit, pair, octal, other]) {
    if (high !== undefined) {
      return utf8(0x10000 + ((hex(high) - 0xd800) << 10) + (hex(low!) - 0xdc00))
    }
    const point = braced ?? unit
    if (point !== undefined) return utf8(hex(point))
    if (pair !== undefined) return byte(hex(pair))
    if (octal !== undefined) return byte(Number.parseInt(octal, 8))
    return SHORT_ESCAPES[other!] ?? other!
  },
}

const ENTITIES: Record<string, string> = {
  ...{ amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", sol: '/', bsol: '\\', plus: '+' },
  ...{ equals: '=', num: '#', excl: '!', dollar: '$', percnt: '%', lpar: '(', rpar: ')', ast: '*' },
  ...{
    comma: ',',
    period: '.',
    colon: ':',
    semi: ';',
    quest: '?',
    commat: '@',
    lsqb: '[',
    lbrack: '[',
  },
  ...{
    rsqb: ']',
    rbrack: ']',
    hat: '^',
    lowbar: '_',
    grave: '`',
    lcub: '{',
    lbrace: '{',
    verbar: '|',
  },
  ...{ vert: '|', rcub: '}', rbrace: '}', tilde: '~', hyphen: '-', dash: '-' },
}

/**
 * Lists the named characters of HTML 4 (HTML 4.01 §24) that {@link ENTITIES} does not contain. Each list of names
 * begins at the code point `first`, and each following name belongs to the next code point. The function `htmlentities`
 * of PHP writes all of these names.
 */
const HTML_4: readonly (readonly [first: number, names: string])[] = [
  [
    0xa0,
    `nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute
   micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring
   AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml
   times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil
   egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash
   ugrave uacute ucirc uuml yacute thorn yuml`,
  ],
  [0x152, 'OElig oelig'],
  [0x160, 'Scaron scaron'],
  [0x178, 'Yuml'],
  [0x192, 'fnof'],
  [0x2c6, 'circ'],
  [
    0x391,
    'Alpha Beta Gamma Delta Epsilon Zeta Eta Theta Iota Kappa Lambda Mu Nu Xi Omicron Pi Rho',
  ],
  [0x3a3, 'Sigma Tau Upsilon Phi Chi Psi Omega'],
  [
    0x3b1,
    'alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho',
  ],
  [0x3c2, 'sigmaf sigma tau upsilon phi chi psi omega'],
  [0x3d1, 'thetasym upsih'],
  [0x3d6, 'piv'],
  [0x2002, 'ensp emsp'],
  [0x2009, 'thinsp'],
  [0x200c, 'zwnj zwj lrm rlm'],
  [0x2013, 'ndash mdash'],
  [0x2018, 'lsquo rsquo sbquo'],
  [0x201c, 'ldquo rdquo bdquo'],
  [0x2020, 'dagger Dagger bull'],
  [0x2026, 'hellip'],
  [0x2030, 'permil'],
  [0x2032, 'prime Prime'],
  [0x2039, 'lsaquo rsaquo'],
  [0x203e, 'oline'],
  [0x2044, 'frasl'],
  [0x20ac, 'euro'],
  [0x2111, 'image'],
  [0x2118, 'weierp'],
  [0x211c, 'real'],
  [0x2122, 'trade'],
  [0x2135, 'alefsym'],
  [0x2190, 'larr uarr rarr darr harr'],
  [0x21b5, 'crarr'],
  [0x21d0, 'lArr uArr rArr dArr hArr'],
  [0x2200, 'forall'],
  [0x2202, 'part exist'],
  [0x2205, 'empty'],
  [0x2207, 'nabla isin notin'],
  [0x220b, 'ni'],
  [0x220f, 'prod'],
  [0x2211, 'sum minus'],
  [0x2217, 'lowast'],
  [0x221a, 'radic'],
  [0x221d, 'prop infin'],
  [0x2220, 'ang'],
  [0x2227, 'and or cap cup int'],
  [0x2234, 'there4'],
  [0x223c, 'sim'],
  [0x2245, 'cong'],
  [0x2248, 'asymp'],
  [0x2260, 'ne equiv'],
  [0x2264, 'le ge'],
  [0x2282, 'sub sup nsub'],
  [0x2286, 'sube supe'],
  [0x2295, 'oplus'],
  [0x2297, 'otimes'],
  [0x22a5, 'perp'],
  [0x22c5, 'sdot'],
  [0x2308, 'lceil rceil lfloor rfloor'],
  [0x25ca, 'loz'],
  [0x2660, 'spades'],
  [0x2663, 'clubs'],
  [0x2665, 'hearts diams'],
]
const NAMED = new Map(
  HTML_4.flatMap(([first, names]) =>
    names.split(/\s+/).map((name, n) => [name, utf8(first + n)] as const),
  ),
)

const HTML: Unescape = {
  token: /&(?:#x0*([\da-f]{1,6})|#0*(\d{1,7})|([a-z][a-z\d]{1,7})(?=;));?/gi,
  decode([all, hexadecimal, decimal, name]) {
    if (hexadecimal !== undefined) return utf8(hex(hexadecimal))
    if (decimal !== undefined) return utf8(Number(decimal))
    return NAMED.get(name!) ?? ENTITIES[name!.toLowerCase()] ?? all!
  },
}

const QUOTED_PRINTABLE: Unescape = {
  token: /=(?:([\da-f]{2})|[ \t]*\r?\n)/gi,
  decode: ([, pair]) => (pair === undefined ? '' : byte(hex(pair))),
}

/** Decodes all escapes of one kind in a text. @returns null if the text has no escape of this kind. */
function unescaped(text: string, { token, decode }: Unescape): View | null {
  let builder: ViewBuilder | null = null
  let at = 0
  for (const match of text.matchAll(token)) {
    // The decoded text is never longer than the source text, because each escape sequence has more characters than the
    // bytes that it encodes.
    builder ??= new ViewBuilder(text.length)
    builder.copy(text, at, match.index)
    at = match.index + match[0].length
    builder.add(decode(match), match.index, at)
  }
  builder?.copy(text, at, text.length)
  return builder?.view() ?? null
}

const BASE64_VALUE = new Int8Array(256).fill(-1)
for (const [n, character] of [
  ...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/',
].entries()) {
  BASE64_VALUE[character.charCodeAt(0)] = n
}
BASE64_VALUE['-'.charCodeAt(0)] = 62
BASE64_VALUE['_'.charCodeAt(0)] = 63

/**
 * Sets the number of separating bytes between two decoded runs of a text. With these bytes, the search finds no secret
 * that begins in one run and ends in the next.
 */
const GAP = 1

type Run = { text: string; index: number }

/** Returns all matches of a pattern in a text, each with its index. */
const runsOf = (text: string, pattern: RegExp): Run[] =>
  Array.from(text.matchAll(pattern), ({ 0: run, index }) => ({ text: run, index }))

/**
 * Creates a large enough output buffer for decoded runs. A decoded run never has more bytes than the encoded run has
 * characters.
 */
const builderFor = (runs: readonly Run[]) =>
  new ViewBuilder(runs.reduce((sum, { text }) => sum + text.length + 1, 0))

/**
 * Decodes all base64 runs in a text, and leaves out the first `skip` characters of each run. Base64 can begin at any
 * character, so the caller tries four values of `skip` for the four possible alignments.
 */
function base64View(runs: readonly Run[], skip: number): View {
  const builder = builderFor(runs)
  for (const { text, index } of runs) {
    let bits = 0
    let count = 0
    let start = 0
    for (let n = 0, skipped = 0; n < text.length; n++) {
      const value = BASE64_VALUE[text.charCodeAt(n)]!
      if (value < 0 || skipped++ < skip) continue
      if (count++ % 4 === 0) start = index + n
      bits = ((bits << 6) | value) & 0xffffff
      if (count % 4 !== 0) continue
      builder.put(bits >> 16, start, index + n + 1)
      builder.put((bits >> 8) & 255, start, index + n + 1)
      builder.put(bits & 255, start, index + n + 1)
    }
    const end = index + text.length
    if (count % 4 === 2) builder.put((bits >> 4) & 255, start, end)
    if (count % 4 === 3) {
      builder.put((bits >> 10) & 255, start, end)
      builder.put((bits >> 2) & 255, start, end)
    }
    builder.put(GAP, end, end)
  }
  return builder.view()
}

/** Matches a pair of hexadecimal digits in a run of such digits, with or without a separator. */
const HEX_PAIR = /(?:0x)?([\da-f]{2})[ :,-]{0,2}/gi
const DECIMAL_BYTE = /(\d{1,3})/g

function numberView(runs: readonly Run[], item: RegExp, radix: number, skip: number): View {
  const builder = builderFor(runs)
  for (const { text, index } of runs) {
    for (const match of text.slice(skip).matchAll(item)) {
      const at = index + skip + match.index
      builder.put(Number.parseInt(match[1]!, radix) & 255, at, at + match[0].length)
    }
    builder.put(GAP, index + text.length, index + text.length)
  }
  return builder.view()
}

const WIDE: Unescape = { token: /\0+/g, decode: () => '' }

/** Reads ASCII from UTF-16 by removing the null bytes of the text. @returns null if the text has no null bytes. */
export const narrowed = (text: string): View | null => unescaped(text, WIDE)

/**
 * Yields one decoded text for each kind of escape in a text. In each decoded text, only the escapes of one kind are
 * decoded.
 */
export function* unescapedViews(text: string): Generator<View> {
  for (const kind of [PERCENT, BACKSLASH, HTML, QUOTED_PRINTABLE]) {
    const view = unescaped(text, kind)
    if (view !== null) yield view
  }
}

/** Finds and decodes the runs of a text that hold encoded bytes. */
export type RunDecoder = {
  /** Decodes every run of base64, hexadecimal digits or decimal bytes in a text. */
  decode(text: string): Generator<View>
  /**
   * Returns the parts of binary data that are valid UTF-8 text.
   * @returns null if most of the binary data is text already.
   */
  textOf(text: string): View | null
}

/**
 * Creates a decoder of encoded runs.
 * @param bytesMin is the length in bytes of the shortest text for which the caller searches. The decoder skips an
 * encoded run that decodes to fewer bytes.
 */
export function createRunDecoder(bytesMin: number): RunDecoder {
  // The pattern for base64 also matches base64 text that continues over several lines.
  const charactersMin = Math.ceil((bytesMin * 4) / 3)
  const base64 = new RegExp(`[\\w+/-](?:(?:\\r?\\n[ \\t]*)?[\\w+/-]){${charactersMin - 1},}`, 'g')
  const hexadecimal = new RegExp(`(?:(?:0x)?[\\da-f]{2}[ :,-]{0,2}){${bytesMin},}[\\da-f]?`, 'gi')
  const decimal = new RegExp(`\\d{1,3}(?:\\s{0,4},\\s{0,4}\\d{1,3}){${bytesMin - 1},}`, 'g')
  const utf8Run = new RegExp(
    `(?:[\\0\\t\\n\\r -~]|[\\xc2-\\xdf][\\x80-\\xbf]|[\\xe0-\\xef][\\x80-\\xbf]{2}|[\\xf0-\\xf4][\\x80-\\xbf]{3}){${bytesMin},}`,
    'g',
  )
  return {
    *decode(text) {
      const encoded = runsOf(text, base64)
      if (encoded.length > 0) for (const skip of [0, 1, 2, 3]) yield base64View(encoded, skip)
      const pairs = runsOf(text, hexadecimal)
      if (pairs.length > 0) for (const skip of [0, 1]) yield numberView(pairs, HEX_PAIR, 16, skip)
      const list = runsOf(text, decimal)
      if (list.length > 0) yield numberView(list, DECIMAL_BYTE, 10, 0)
    },
    textOf(text) {
      const runs = runsOf(text, utf8Run)
      if (runs.reduce((sum, run) => sum + run.text.length, 0) > text.length / 2) return null
      const builder = builderFor(runs)
      for (const run of runs) {
        const end = run.index + run.text.length
        builder.copy(text, run.index, end)
        builder.put(GAP, end, end)
      }
      return builder.view()
    },
  }
}
