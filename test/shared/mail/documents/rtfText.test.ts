/** Tests how the service turns the control words of a Rich Text Format (RTF) file into text. */
import { describe, expect, test } from 'bun:test'
import { readRtf } from '../../../../shared/mail/documents/rtfText.ts'

const read = (rtf: string) => readRtf(Buffer.from(`{\\rtf1 ${rtf}}`, 'latin1'))
const textOf = (rtf: string): string => read(rtf).text
/** Returns the extracted text, and the reasons for which words were left out. */
const seen = (rtf: string): string[] => {
  const { text, omitted } = read(rtf)
  return [text, ...omitted]
}

describe('the text of an RTF file has its paragraphs as lines and its symbols as characters', () => {
  test('the text of an RTF file has one line for each paragraph, and ignores the line ends of the file itself', () => {
    expect(textOf('a\r\nb\\par c\\line d\\sect e\\page f')).toBe('ab\nc\nd\ne\nf')
  })

  test('a backslash before a line end of an RTF file ends a paragraph', () => {
    expect(textOf('a\\\nb\\\r\nc\\\rd')).toBe('a\nb\nc\nd')
  })

  test('the reader replaces RTF control words for symbols by the symbols', () => {
    expect(textOf('a\\tab b\\emdash c\\endash d\\bullet e\\emspace f')).toBe('a\tb—c–d•e f')
    expect(textOf('\\lquote a\\rquote\\ldblquote b\\rdblquote')).toBe('‘a’“b”')
    expect(textOf('a\\~b\\_c\\-d\\:e')).toBe('a b-cde')
    expect(textOf('\\{a\\}\\\\b')).toBe('{a}\\b')
  })

  test('the text of an RTF file leaves out the blank that ends a control word, and leaves out unknown control words', () => {
    expect(textOf('a\\b  b\\b0 c\\unknown-7 d')).toBe('a bcd')
  })

  test('an RTF control word with the name of a built-in JavaScript property counts as unknown', () => {
    expect(textOf('a\\constructor b\\v\\toString ')).toBe('ab')
  })

  test('the text of an RTF file is cut at a million characters', () => {
    const { text, omitted } = read(`${'x'.repeat(999_999)}\\par y${'\\par y'.repeat(9)}`)
    expect(text).toBe('x'.repeat(999_999))
    expect([...omitted]).toEqual(['truncated'])
    expect([...read('x'.repeat(1_000_000)).omitted]).toEqual([])
    expect([...read('x'.repeat(1_000_001)).omitted]).toEqual(['truncated'])
  })

  test('if the RTF file is a part of a larger buffer, the other bytes of the buffer are ignored', () => {
    const bytes = Buffer.from('no{\\rtf1 a}no', 'latin1')
    expect(readRtf(new Uint8Array(bytes).subarray(2, -2)).text).toBe('a')
  })
})

describe('a letter of an RTF file that is not ASCII is decoded from its code page or its Unicode number', () => {
  test('an RTF file may write a non-ASCII letter as a byte of its code page', () => {
    expect(textOf("\\'fc")).toBe('ü')
    for (const [page, bytes, letter] of [
      [1251, "\\'e6", 'ж'],
      [65001, "\\'c3\\'bc", 'ü'],
      [932, "\\'82\\'a0", 'あ'],
      [936, "\\'c4\\'e3", '你'],
      [949, "\\'b0\\'a1", '가'],
      [950, "\\'a4\\'a4", '中'],
      [10000, "\\'9f", 'ü'],
      [99999, "\\'fc", 'ü'],
    ])
      expect([page, textOf(`\\ansicpg${page} ${bytes}`)]).toEqual([page, letter] as never)
    expect(textOf("\\ansicpg1251\\ansicpg \\'fc")).toBe('ü')
  })

  test('an RTF file may write a non-ASCII letter as a byte of the code page of the current font', () => {
    const fonts = '{\\fonttbl{\\f0\\fnil\\fcharset0 Arial;}{\\f1\\fnil\\fcharset204 Arial;}}'
    const word = "\\'cf\\'f0\\'e8\\'e2\\'e5\\'f2"
    expect(textOf(`\\ansicpg1252${fonts}\\f1 ${word}\\f0  gr\\'fcn`)).toBe('Привет grün')
    expect(textOf(`\\ansicpg1252${fonts}{\\f1 ${word}} gr\\'fcn`)).toBe('Привет grün')
    expect(textOf(`\\ansicpg1252\\deff1${fonts}${word}\\f0\\'fc\\plain ${word}`)).toBe(
      'ПриветüПривет',
    )
    for (const [charset, bytes, letter] of [
      [0, "\\'e6", 'æ'],
      [77, "\\'9f", 'ü'],
      [128, "\\'82\\'a0", 'あ'],
      [129, "\\'b0\\'a1", '가'],
      [134, "\\'c4\\'e3", '你'],
      [136, "\\'a4\\'a4", '中'],
      [161, "\\'e1", 'α'],
      [177, "\\'e0", 'א'],
      [178, "\\'c7", 'ا'],
      [222, "\\'a1", 'ก'],
      [238, "\\'b3", 'ł'],
    ])
      expect([charset, textOf(`{\\fonttbl{\\f2\\fcharset${charset} x;}}\\f2 ${bytes}`)]).toEqual([
        charset,
        letter,
      ] as never)
  })

  test('if a letter in an RTF file has two bytes, the second byte may be an ASCII character', () => {
    expect(textOf("\\ansicpg932 \\'83e\\'83X\\'83g")).toBe('テスト')
    expect(textOf("\\ansicpg932 \\'83\\\\a")).toBe('ソa')
    expect(textOf('\\u92\\\\a')).toBe('\\a')
  })

  test('an RTF file may contain a non-ASCII letter without an escape', () => {
    expect(textOf('gr\u00fcn')).toBe('grün')
  })

  test('an RTF file may write a letter as its Unicode number, and the fallback characters after the number are omitted', () => {
    expect(textOf('\\u8364?a')).toBe('€a')
    expect(textOf("\\u8364\\'80a")).toBe('€a')
    expect(textOf("\\u8364\\'80\\'80")).toBe('€€')
    expect(textOf('\\u-10178?\\u-8930?')).toBe('\u{1f91e}')
    expect(textOf('a\\u ?b')).toBe('ab')
  })

  test('after a Unicode number in an RTF file, as many fallback characters are omitted as the RTF group states', () => {
    expect(textOf('\\uc2\\u8364??a')).toBe('€a')
    expect(textOf('\\uc0\\u8364?a')).toBe('€?a')
    expect(textOf('\\uc3\\u8364???a')).toBe('€a')
    expect(textOf('{\\uc0 }\\u8364?a')).toBe('€a')
    expect(textOf('\\uc0\\uc\\u8364?a')).toBe('€a')
  })

  test('the fallback characters of a Unicode number end at a brace, and are at most 16', () => {
    expect(textOf('{\\b\\u8364}1500 due')).toBe('€1500 due')
    expect(textOf('{\\u8364}{\\b 1500} due')).toBe('€1500 due')
    expect(textOf('\\uc3\\u8364?{??}a')).toBe('€??a')
    expect(textOf('{\\uc1000\\u8364}Cancel the order.')).toBe('€Cancel the order.')
    expect(textOf(`\\uc1000\\u8364${'?'.repeat(16)}Cancel`)).toBe('€Cancel')
    expect(textOf(`\\uc1000\\u8364${'?'.repeat(17)}Cancel`)).toBe('€?Cancel')
  })
})

describe('the control word of an RTF group decides whether its words are read, and whether the result reports omitted words', () => {
  test('an RTF group with fonts, styles or facts about the file is not read as text', () => {
    expect(seen('{\\fonttbl Arial;}{\\stylesheet Normal;}{\\info{\\title x}}{\\pict 00}a')).toEqual(
      ['a'],
    )
  })

  test('an RTF group that older programs skip is read if it contains words of the page', () => {
    expect(textOf('{\\*\\unheard no}a')).toBe('a')
    expect(textOf('{\\unheard b}')).toBe('b')
    expect(textOf('{\\*\\shptxt a}{\\*\\footnote b}{\\*\\fldrslt c}')).toBe('abc')
    expect(textOf('{\\*\\unheard no}{\\unheard a}')).toBe('a')
  })

  test('an RTF group with a comment is omitted, and the result says so', () => {
    for (const word of ['annotation', 'atnid', 'atnauthor', 'atndate', 'atnref'])
      expect(seen(`a{\\*\\${word} no}`)).toEqual(['a', 'comments'])
    expect(seen('a{\\*\\annotation }')).toEqual(['a'])
  })

  test('properties that an RTF group sets end with the group', () => {
    expect(seen('{\\v no}a')).toEqual(['a', 'hidden-text'])
    expect(seen('}}}a')).toEqual(['a'])
  })

  test('RTF groups with properties may be nested up to 1,000 levels', () => {
    // The whole RTF file is the outermost group and the first level, so the test opens one group fewer than the tested
    // number of levels.
    const nested = (levels: number) =>
      seen(`${'{'.repeat(levels - 2)}{\\v no}a${'}'.repeat(levels - 2)}b`)
    expect(nested(1_000)).toEqual(['ab', 'hidden-text'])
    expect(nested(1_001)).toEqual(['b', 'hidden-text'])
    expect(nested(1_200)).toEqual(['b', 'hidden-text'])
    expect(seen(`${'{'.repeat(997)}{\\deleted{}no}a`)).toEqual(['a', 'deleted-text'])
    const deep = `${'{'.repeat(1_000)}${'}'.repeat(1_000)}`
    expect(seen(`{\\deleted${deep}no}a`)).toEqual(['a', 'deleted-text'])
  })
})

describe('the extracted text of an RTF file leaves out words that a person does not see', () => {
  const TABLE = '{\\colortbl;\\red255\\green255\\blue255;\\red1\\green2\\blue3;}'

  test('words of an RTF file are omitted until the control word that hides or deletes them is switched off', () => {
    expect(seen('\\v no\\v0 a')).toEqual(['a', 'hidden-text'])
    expect(seen('\\v1 no\\v0 a')).toEqual(['a', 'hidden-text'])
    expect(seen('\\deleted no\\deleted0 a')).toEqual(['a', 'deleted-text'])
    expect(seen('\\v no\\plain a')).toEqual(['a', 'hidden-text'])
    expect(seen('\\deleted\\v no')).toEqual(['', 'deleted-text'])
  })

  test('hidden words of an RTF file are reported only if they contain a letter, and the blanks between words are kept', () => {
    expect(seen('a{\\v  }b')).toEqual(['a b'])
    expect(seen('a{\\v\\tab}b')).toEqual(['a\tb'])
    expect(seen('a{\\deleted  }b')).toEqual(['ab'])
  })

  test('words in an RTF file count as hidden text if their letters are smaller than three points', () => {
    expect(seen('\\fs5 no\\fs6 a')).toEqual(['a', 'tiny-text'])
    expect(seen('\\fs5 no\\fs a')).toEqual(['a', 'tiny-text'])
  })

  test('words of an RTF file in the colour of their background are hidden', () => {
    expect(seen(`${TABLE}\\cf1 no\\cf2 a`)).toEqual(['a', 'invisible-text'])
    expect(seen(`${TABLE}\\cf1\\cf0 a`)).toEqual(['a'])
    expect(seen(`${TABLE}\\cf1\\cf a`)).toEqual(['a'])
    for (const word of ['cb', 'highlight', 'chcbpat']) {
      expect(seen(`${TABLE}\\cf2\\${word}2 no`)).toEqual(['', 'invisible-text'])
      expect(seen(`${TABLE}\\cf1\\${word}2 a`)).toEqual(['a'])
      expect(seen(`${TABLE}\\cf1\\${word}9 no`)).toEqual(['', 'invisible-text'])
      expect(seen(`${TABLE}\\cf1\\${word}0 no`)).toEqual(['', 'invisible-text'])
    }
    expect(seen(`${TABLE}\\cf9 a`)).toEqual(['a'])
  })

  test('a colour in an RTF file has three components, and a missing component counts as 0', () => {
    const white = (colour: string) => seen(`{\\colortbl;${colour};}\\cf1 a`)
    expect(white('\\red255\\green255')).toEqual(['a'])
    expect(white('\\green255\\blue255')).toEqual(['a'])
    expect(white('\\red255\\blue255')).toEqual(['a'])
    expect(white('\\red511\\green255\\blue255')).toEqual(['', 'invisible-text'])
    expect(seen('{\\colortbl;\\red255\\green255\\blue255;\\red;}\\cf2 a')).toEqual(['a'])
    expect(white(' \\red255\\green255 \\blue255')).toEqual(['', 'invisible-text'])
    const black = '{\\colortbl;\\red;}'
    expect(seen(`${black}\\cf1\\cb1 no`)).toEqual(['', 'invisible-text'])
  })

  test('words inside the colour table of an RTF file are not part of the text', () => {
    expect(seen('a{\\colortbl;\\par no;}b')).toEqual(['ab'])
  })
})

describe('the text of an RTF table has rows as lines and tabs between the cells', () => {
  test('the text of an RTF table has a line for each row, and a tab between cells', () => {
    expect(textOf('a\\par\\trowd b\\cell c\\cell\\row\\trowd d\\cell e\\cell\\row f')).toBe(
      'a\nb\tc\nd\te\nf',
    )
  })

  test('each cell of an RTF table is written on one line', () => {
    expect(textOf('\\trowd a\\b b\\cell\\row')).toBe('ab')
    expect(textOf('\\trowd a\\par b\\line c\\cell d\\cell\\row')).toBe('a b c\td')
  })

  test('an RTF table is read even if it lacks the control word that begins a row', () => {
    expect(textOf('a\\par\\cell b\\cell\\row c')).toBe('a\n\tb\nc')
    expect(textOf('a\\row\\par b')).toBe('a\nb')
  })

  test('an RTF table is read even if the file ends inside the table', () => {
    expect(textOf('\\trowd a\\cell b\\cell')).toBe('a\tb')
  })
})

describe('a field of an RTF file is read as its result text, and its link is kept', () => {
  const URL = 'https://a.example/'
  const linksOf = (rtf: string) => read(rtf).links

  test('an RTF field shows its result as text, and keeps the link in its instruction', () => {
    const rtf = `{\\field{\\*\\fldinst{HYPERLINK "${URL}"}}{\\fldrslt here}}`
    expect(textOf(rtf)).toBe('here')
    expect(linksOf(rtf)).toEqual([{ href: URL, text: '' }])
  })

  test('the first 200 web links of an RTF file are kept, and no other link', () => {
    const hrefs = Array.from({ length: 201 }, (_, n) => `https://a.example/${n}`)
    const fields = ['mailto:a@b.example', ...hrefs].map(
      (href) => `{\\field{\\*\\fldinst{HYPERLINK "${href}"}}{\\fldrslt x}}`,
    )
    expect(linksOf(fields.join('')).map(({ href }) => href)).toEqual(hrefs.slice(0, 200))
  })

  test('an RTF field has no link if its instruction lacks the word HYPERLINK', () => {
    expect(linksOf(`{\\field{\\*\\fldinst PAGE "${URL}"}{\\fldrslt 1}}`)).toEqual([])
    expect(linksOf(`HYPERLINK "${URL}"{\\fldrslt a}`)).toEqual([])
    expect(linksOf(`{\\*\\unheard HYPERLINK "${URL}"}{\\fldrslt a}`)).toEqual([])
  })

  test('an RTF field has a link only if its own instruction contains the link', () => {
    const inst = `{\\*\\fldinst HYPERLINK "${URL}"}`
    expect(linksOf(`{\\field${inst}{\\fldrslt a}}{\\field{\\fldrslt b}}`)).toHaveLength(1)
    expect(linksOf(`{\\field{\\fldinst no}${inst}{\\fldrslt a}}`)).toHaveLength(1)
    expect(linksOf(inst)).toEqual([])
  })
})
