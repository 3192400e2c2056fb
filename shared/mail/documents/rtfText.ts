import { type DocumentText, TextWriter } from './document.ts'
import { type Colour, type Ink, unseenInk } from './ink.ts'
import { decoderOf } from './plainText.ts'
import { TextFlow } from './textFlow.ts'

const GROUPS_MAX = 1_000
/**
 * Sets the maximum number of fallback bytes that the RTF reader skips after one Unicode character. With a greater
 * number, the author of a file could hide the words after the character.
 */
const FALLBACK_MAX = 16
/** Lists the destinations (groups with a name) of RTF 1.9.1 that do not appear on a page. */
const UNREAD = new Set(
  'fonttbl stylesheet info pict object objdata themedata colorschememapping latentstyles datastore xmlnstbl listtable listoverridetable rsidtbl generator filetbl revtbl bkmkstart bkmkend template shpinst shprslt nonshppict mmathPr pgdsctbl'.split(
    ' ',
  ),
)
const NOTES = new Set(['annotation', 'atnid', 'atnauthor', 'atndate', 'atnref'])
const SYMBOLS = new Map<string, string>(
  Object.entries({
    ...{ par: '\n', line: '\n', sect: '\n', page: '\n', tab: '\t', emdash: '—', endash: '–' },
    ...{ lquote: '‘', rquote: '’', ldblquote: '“', rdblquote: '”', bullet: '•', '~': ' ', _: '-' },
    ...{ emspace: ' ', enspace: ' ', qmspace: ' ' },
    // A backslash before a line end marks the end of a paragraph (RTF 1.9.1). Apple's programs write paragraphs in this
    // way.
    ...{ '\n': '\n', '\r': '\n' },
  }),
)
/**
 * Maps the character set of a font to its Windows code page (RTF 1.9.1, `\fcharset`). For all other character sets, the
 * code page of the file applies.
 */
const PAGES: Readonly<Record<number, number>> = {
  ...{ 77: 10000, 128: 932, 129: 949, 134: 936, 136: 950, 161: 1253, 162: 1254, 163: 1258 },
  ...{ 177: 1255, 178: 1256, 186: 1257, 204: 1251, 222: 874, 238: 1250 },
}
const FIELD_MAX_CHARS = 4_000
const LINK = /^\s{0,9}HYPERLINK\s{1,9}"([^"]{1,2000})"/
const TOKEN = /\\([a-z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-f]{2})|\\([^a-z])|[{}]|[^\\{}\r\n]+/gi

type Group = {
  ink: Ink
  isDeleted: boolean
  /** Holds the number of fallback characters that follow each `\u` escape in the RTF text. */
  fallback: number
  unread: 'no' | 'yes' | 'comments' | 'field'
  isColours: boolean
  isFonts: boolean
  /** Holds the number of the current font. Null means the default font of the file. */
  font: number | null
}

/** Reads the text of a file in Rich Text Format. */
export function readRtf(bytes: Uint8Array): DocumentText {
  const out = new TextWriter()
  new RtfReader(out).read(
    Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1'),
  )
  return out.done()
}

class RtfReader {
  readonly #out: TextWriter
  readonly #flow: TextFlow
  readonly #groups: Group[] = []
  readonly #colours: Colour[] = []
  #colour = { red: 0, green: 0, blue: 0, isSet: false }
  #group: Group = {
    ink: {},
    isDeleted: false,
    fallback: 1,
    unread: 'no',
    isColours: false,
    isFonts: false,
    font: null,
  }
  #charset = 1252
  #defaultFont = 0
  /** Holds the number of the font that the font table describes at the RTF reader's position. */
  #describedFont = 0
  /** Maps the number of a font to the code page of its bytes. */
  readonly #pages = new Map<number, number>()
  #bytes: number[] = []
  #skipped = 0
  #depth = 0
  #isInTable = false
  /** Holds the instruction of the current RTF field, such as `HYPERLINK "…"`. */
  #field = ''

  constructor(out: TextWriter) {
    this.#out = out
    this.#flow = new TextFlow(out)
  }

  read(source: string): void {
    let isStarred = false
    for (const [token, word, number, hex, symbol] of source.matchAll(TOKEN)) {
      if (this.#out.isFull) break
      if (hex !== undefined) {
        this.#byte(Number.parseInt(hex, 16))
        continue
      }
      // In an encoding with two bytes for each letter, an escaped backslash or brace may be the second byte of a
      // letter. Therefore the RTF reader passes an escaped backslash or brace to the decoder as a byte.
      if (symbol !== undefined && /[\\{}]/.test(symbol)) {
        this.#byte(symbol.charCodeAt(0))
        continue
      }
      const isWords = word === undefined && symbol === undefined && !/^[{}]$/.test(token)
      if (!isWords) this.#flush()
      if (token === '{') this.#openGroup()
      else if (token === '}') this.#closeGroup()
      else if (symbol === '*') isStarred = true
      else if (symbol !== undefined) this.#put(SYMBOLS.get(symbol) ?? '')
      else if (word !== undefined) {
        this.#word(word, number === undefined ? undefined : Number(number), isStarred)
        isStarred = false
      } else this.#plain(token)
    }
    this.#flush()
    if (this.#isInTable) this.#flow.closeRow()
  }

  #openGroup(): void {
    // A brace ends the fallback text of a Unicode character (RTF 1.9.1, "Unicode RTF"). After it, the RTF reader skips
    // no more bytes.
    this.#skipped = 0
    this.#depth++
    if (this.#depth > GROUPS_MAX) return
    this.#groups.push(this.#group)
    this.#group = { ...this.#group, ink: { ...this.#group.ink }, isColours: false }
  }

  #closeGroup(): void {
    this.#skipped = 0
    if (this.#depth-- <= GROUPS_MAX) this.#group = this.#groups.pop() ?? this.#group
  }

  #word(word: string, number: number | undefined, isStarred: boolean): void {
    const group = this.#group
    const isOn = number !== 0
    if (group.isColours) {
      this.#readColour(word, number ?? 0)
      return
    }
    if (group.isFonts) {
      const page = word === 'fcharset' ? PAGES[number ?? 0] : undefined
      if (word === 'f') this.#describedFont = number ?? 0
      if (page !== undefined) this.#pages.set(this.#describedFont, page)
      return
    }
    if (word === 'fldinst') this.#field = ''
    if (word === 'fonttbl') group.isFonts = true
    if (NOTES.has(word)) group.unread = 'comments'
    else if (word === 'fldinst') group.unread = 'field'
    else if (word === 'fldrslt') this.#endField()
    else if (UNREAD.has(word)) group.unread = 'yes'
    else if (word === 'colortbl') group.isColours = true
    else if (isStarred && !['shptxt', 'footnote', 'fldrslt'].includes(word)) group.unread = 'yes'
    else if (word === 'ansicpg') this.#charset = number ?? 1252
    else if (word === 'deff') this.#defaultFont = number ?? 0
    else if (word === 'f') group.font = number ?? 0
    else if (word === 'uc') group.fallback = Math.min(Math.max(number ?? 1, 0), FALLBACK_MAX)
    else if (word === 'u') this.#unicode(number ?? 0)
    else if (word === 'v') group.ink.isHidden = isOn
    else if (word === 'deleted') group.isDeleted = isOn
    else if (word === 'fs') group.ink.sizePt = (number ?? 24) / 2
    else if (word === 'cf') group.ink = { ...group.ink, ...this.#named('colour', number) }
    else if (word === 'cb' || word === 'highlight' || word === 'chcbpat') {
      group.ink = { ...group.ink, ...this.#named('ground', number) }
    } else if (word === 'plain') {
      group.ink = {}
      group.font = null
    } else if (word === 'trowd') this.#openRow()
    else if (word === 'cell') this.#endCell()
    else if (word === 'row') this.#endRow()
    else if (word === 'par' && this.#isInTable) this.#put(' ')
    else this.#put(SYMBOLS.get(word) ?? '')
  }

  #named(part: 'colour' | 'ground', number: number | undefined): Ink {
    const colour = this.#colours[number ?? 0]
    return { [part]: colour ?? (part === 'colour' ? null : 'ffffff') }
  }

  #readColour(word: string, value: number): void {
    if (word === 'red' || word === 'green' || word === 'blue') {
      this.#colour = { ...this.#colour, [word]: value, isSet: true }
    }
  }

  /**
   * Reads the colour table of an RTF file, in which a semicolon ends each colour. The first colour is often empty,
   * which means the automatic colour.
   */
  #endColours(text: string): void {
    for (const letter of text) {
      if (letter !== ';') continue
      const { red, green, blue, isSet } = this.#colour
      const digits = [red, green, blue].map((one) => (one & 255).toString(16).padStart(2, '0'))
      this.#colours.push(isSet ? digits.join('') : null)
      this.#colour = { red: 0, green: 0, blue: 0, isSet: false }
    }
  }

  #openRow(): void {
    if (!this.#isInTable) {
      this.#flow.openTable()
      this.#flow.openRow()
      this.#flow.openCell()
    }
    this.#isInTable = true
  }

  #endCell(): void {
    this.#openRow()
    this.#flow.closeCell()
  }

  #endField(): void {
    const href = LINK.exec(this.#field)?.[1]
    if (href !== undefined) this.#out.link(href, '')
    this.#field = ''
  }

  #endRow(): void {
    if (!this.#isInTable) return
    this.#flow.closeRow()
    this.#flow.closeTable({ ends: false })
    this.#isInTable = false
  }

  #byte(byte: number): void {
    if (this.#skipped > 0) this.#skipped--
    else this.#bytes.push(byte)
  }

  #unicode(number: number): void {
    this.#put(String.fromCharCode(number & 0xffff))
    this.#skipped = this.#group.fallback
  }

  #plain(text: string): void {
    if (this.#group.isColours) {
      this.#flush()
      this.#endColours(text)
      return
    }
    const own = text.slice(this.#skipped)
    this.#skipped = Math.max(0, this.#skipped - text.length)
    for (const letter of own) this.#bytes.push(letter.charCodeAt(0))
    this.#flush()
  }

  #flush(): void {
    if (this.#bytes.length === 0) return
    const bytes = new Uint8Array(this.#bytes)
    this.#bytes = []
    const font = this.#group.font ?? this.#defaultFont
    this.#put(decoded(bytes, this.#pages.get(font) ?? this.#charset))
  }

  #put(text: string): void {
    const { unread, isDeleted, ink } = this.#group
    if (unread === 'comments') {
      this.#flow.omit('comments', text)
      return
    }
    if (unread === 'field' && this.#field.length < FIELD_MAX_CHARS) this.#field += text
    if (unread !== 'no') return
    const why = unseenInk(ink)
    if (isDeleted) this.#flow.omit('deleted-text', text)
    else if (why !== null && text.trim() !== '') this.#flow.omit(why, text)
    else this.#flow.text(text)
  }
}

function decoded(bytes: Uint8Array, page: number): string {
  const label =
    page === 65001
      ? 'utf-8'
      : page === 932
        ? 'shift_jis'
        : page === 936
          ? 'gbk'
          : page === 949
            ? 'euc-kr'
            : page === 950
              ? 'big5'
              : page === 10000
                ? 'macintosh'
                : `windows-${page}`
  try {
    return decoderOf(label).decode(bytes)
  } catch {
    return Buffer.from(bytes).toString('latin1')
  }
}
