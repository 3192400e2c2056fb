/**
 * Tests how escapes and encoded parts of a text are decoded, and which source characters each decoded byte has.
 */
import { describe, expect, test } from 'bun:test'
import {
  createRunDecoder,
  narrowed,
  unescapedViews,
  type View,
} from '../../../shared/vault/decodedViews.ts'

/** Returns the UTF-8 encoding of a text as a binary string, in which each character is one byte. */
const bytes = (text: string) => Buffer.from(text).toString('latin1')
/** Returns each decoded character together with the piece of the source text from which the character comes. */
const origins = (source: string, { text, from, to }: View) =>
  [...text].map((character, n) => [character, source.slice(from[n], to[n])])
/**
 * Returns one text for each type of escape (such as percent-encoding). In each text, only the escapes of this type are
 * decoded.
 */
const unescaped = (text: string) => [...unescapedViews(text)].map((view) => view.text)
const only = (text: string) => {
  const [view, ...others] = unescapedViews(text)
  expect(others).toEqual([])
  return view!
}

const decoder = createRunDecoder(4)
const decoded = (text: string, bytesMin = 4) => [...createRunDecoder(bytesMin).decode(text)]
const texts = (text: string, bytesMin = 4) => decoded(text, bytesMin).map((view) => view.text)

describe('the service decodes escapes in a text, and knows the source characters of each decoded byte', () => {
  test('a text without escape sequences gives no decoded text', () => {
    for (const text of ['', 'plain', '100 %', 'a & b', '&;', 'a = b', '%u12', '&#x;'])
      expect([text, unescaped(text)]).toEqual([text, []])
  })

  test('a percent escape consists of two hexadecimal digits, or of the letter u and four hexadecimal digits', () => {
    expect(unescaped('a%41%e9b%')).toEqual([`aA\xe9b%`])
    expect(unescaped('%4a%4A%u0041%u20AC')).toEqual([`JJA${bytes('€')}`])
    expect(unescaped('%41%4g%u123')).toEqual(['A%4g%u123'])
  })

  test.each([
    ['\\u{41}\\u{1f989}', `A${bytes('🦉')}`],
    ['\\u00fc', bytes('ü')],
    ['\\ud83e\\udd89', bytes('🦉')],
    ['\\uD800\\uDC00', bytes('\u{10000}')],
    ['\\udbff\\udfff', bytes('\u{10ffff}')],
    ['\\ud83ex', `${bytes('\ufffd')}x`],
    ['\\u{110000}', bytes('\ufffd')],
    ['\\u{10ffff}', bytes('\u{10ffff}')],
    ['\\u007f\\u0080', `\x7f${bytes('\x80')}`],
    ['\\x41\\xE9', 'A\xe9'],
    ['\\101\\377\\0', 'A\xff0'],
    ['\\b\\f\\n\\r\\t', '\b\f\n\r\t'],
    ['\\"\\\\\\/\\q', '"\\/q'],
    ['\\\n', '\n'],
  ])('backslash escapes in a text are decoded: %p', (text, wanted) => {
    expect(unescaped(text)).toEqual([wanted])
  })

  test.each([
    ['&#65;&#x42;&#X43;&#0068;', 'ABCD'],
    ['&#65&#x42', 'AB'],
    ['&#x1f989;&#128521;', bytes('🦉😉')],
    ['&#xd800;&#9999999;', bytes('\ufffd\ufffd')],
    ['&amp;&LT;&gt;&quot;&apos;', `&<>"'`],
    ['&uuml;&Uuml;&nbsp;&yuml;&frac34;', bytes('üÜ\u00a0ÿ¾')],
    ['&plus;&sol;&equals;&commat;&lowbar;', '+/=@_'],
    ['&euro;&hellip;&OElig;&pi;&Pi;&thetasym;&ne;&diams;', bytes('€…ŒπΠϑ≠♦')],
    ['&unknown;&amp', '&unknown;&amp'],
  ])('HTML entities in a text are decoded: %p', (text, wanted) => {
    expect(unescaped(text)).toEqual([wanted])
  })

  test('a quoted-printable escape consists of an equals sign with two hexadecimal digits, or with the end of a line', () => {
    expect(unescaped('a=41=e9=3d')).toEqual(['aA\xe9='])
    expect(unescaped('ab=\r\ncd= \t\nef=g')).toEqual(['abcdef=g'])
  })

  test('the service decodes each type of escape (such as percent-encoding) separately, and returns one text for each type', () => {
    expect(unescaped('%41\\x42&#67;=44')).toEqual([
      ...['A\\x42&#67;=44', '%41B&#67;=44', '%41\\x42C=44', '%41\\x42&#67;D'],
    ])
  })

  test('each byte of a decoded escape keeps the position of its source characters', () => {
    const text = 'a%41b%u20ACc'
    expect(origins(text, only(text))).toEqual([
      ...[
        ['a', 'a'],
        ['A', '%41'],
        ['b', 'b'],
      ],
      ...[...bytes('€')].map((byte) => [byte, '%u20AC']),
      ['c', 'c'],
    ])
  })
})

describe('the service removes null bytes, so that it finds secrets in UTF-16 text', () => {
  test('null bytes are removed from a text, so that UTF-16 becomes ASCII', () => {
    const text = '\0a\0bc\0\0'
    const view = narrowed(text)!
    expect(origins(text, view)).toEqual([
      ['a', 'a'],
      ['b', 'b'],
      ['c', 'c'],
    ])
  })

  test('a text without null bytes is not changed', () => {
    expect(narrowed('abc')).toBeNull()
    expect(narrowed('')).toBeNull()
  })
})

describe('the service decodes base64 in a text, and knows the source characters of each decoded byte', () => {
  const SECRET = 'tomato-soup~~?>'
  const encoded = Buffer.from(SECRET).toString('base64')

  test('base64 in a text is decoded four times, once for each possible start of a group of four characters', () => {
    for (const before of ['', 'x', 'xy', 'xyz']) {
      const found = texts(`"${before}${encoded}"`)
      expect(found).toHaveLength(4)
      expect([before, found[before.length]?.includes(SECRET)]).toEqual([before, true])
    }
  })

  test('base64 in a text may have any length, the URL-safe alphabet, and line breaks', () => {
    for (const secret of [
      'tomato',
      'tomato-',
      'tomato-s',
      SECRET,
      '\xff\xfe\xfd\xfb\xef\xbe',
      '\0\x10\x83\x10',
    ]) {
      const run = Buffer.from(secret, 'latin1')
      for (const form of [run.toString('base64'), run.toString('base64url')])
        expect([form, texts(form)[0]?.slice(0, -1)]).toEqual([form, secret])
    }
    const lines = `${encoded.slice(0, 4)}\r\n \t${encoded.slice(4, 8)}\n${encoded.slice(8)}`
    expect(texts(lines)[0]).toStartWith(SECRET)
  })

  test('base64 in a text is decoded only if it gives at least the requested number of bytes', () => {
    const run = (length: number) => `!${'QUJD'.repeat(4).slice(0, length)}!`
    expect(texts(run(6), 4)).toHaveLength(4)
    expect(texts(run(5), 4)).toEqual([])
    expect(texts(run(8), 6)).toHaveLength(4)
    expect(texts(run(7), 6)).toEqual([])
  })

  test('each byte that was decoded from base64 keeps the position of its group of four characters', () => {
    const text = '!QUJDREVG!'
    expect(origins(text, decoded(text)[0]!).slice(0, 6)).toEqual([
      ...['A', 'B', 'C'].map((byte) => [byte, 'QUJD']),
      ...['D', 'E', 'F'].map((byte) => [byte, 'REVG']),
    ])
    const [, shifted] = decoded('!xQUJDREVG!')
    expect(origins('!xQUJDREVG!', shifted!)[0]).toEqual(['A', 'QUJD'])
  })

  test('if base64 in a text is cut off at its end, each decoded byte still keeps the position of its source characters', () => {
    const text = '!QUJDREVGR0g!'
    expect(origins(text, decoded(text)[0]!).slice(6, 8)).toEqual([
      ...[
        ['G', 'R0g'],
        ['H', 'R0g'],
      ],
    ])
    const one = '!QUJDREVGRw!'
    expect(origins(one, decoded(one)[0]!).slice(6, 7)).toEqual([['G', 'Rw']])
  })

  test('two separate pieces of base64 in a text are decoded separately', () => {
    const [view] = decoded('!QUJDREVG! !SElKS0xN!')
    expect(view!.text).toHaveLength(14)
    expect([view!.text.slice(0, 6), view!.text.slice(7, 13)]).toEqual(['ABCDEF', 'HIJKLM'])
    expect([view!.from[6], view!.to[6]]).toEqual([9, 9])
  })
})

describe('the service decodes hexadecimal digits in a text, and knows the source digits of each decoded byte', () => {
  /**
   * Returns the texts that are decoded from hexadecimal digits, and leaves out the texts that are decoded from base64.
   */
  const hexTexts = (text: string, bytesMin = 4) =>
    texts(text, bytesMin).slice(/[\w+/-]{6}/.test(text) ? 4 : 0)

  test.each([
    ['41424344'],
    ['41 42 43 44'],
    ['41:42:43:44'],
    ['41-42-43-44'],
    ['0x41, 0x42, 0x43, 0x44'],
    ['0x410x420x430x44'],
  ])('hexadecimal digits in a text may have separators: %p', (text) => {
    expect(hexTexts(text)[0]).toStartWith('ABCD')
  })

  test('hexadecimal digits in a text are decoded twice, once from the first digit and once from the second digit', () => {
    const [first, second] = hexTexts('!f414243444!')
    expect(first).toStartWith('\xf4')
    expect(second).toStartWith('ABCD')
  })

  test('hexadecimal digits in a text are decoded only if they give at least the requested number of bytes', () => {
    expect(hexTexts('!41 42 43 44!')).toHaveLength(2)
    expect(hexTexts('!41 42 43!')).toEqual([])
    expect(hexTexts('!41 42 43!', 3)).toHaveLength(2)
  })

  test('each byte that was decoded from hexadecimal digits keeps the position of its digits', () => {
    const text = '!41 42:43 4A!'
    const [first, second] = decoded(text)
    expect(origins(text, first!).slice(0, 4)).toEqual([
      ...[
        ['A', '41 '],
        ['B', '42:'],
        ['C', '43 '],
        ['J', '4A'],
      ],
    ])
    expect([first!.from[4], first!.to[4]]).toEqual([12, 12])
    expect(second!.from[0]).toBeGreaterThan(1)
  })
})

describe('the service decodes a list of bytes that are written as decimal numbers', () => {
  test('each byte that was decoded from a list of decimal numbers keeps the position of its number', () => {
    const text = '[65, 66,67 ,   300]'
    const [view, ...others] = decoded(text)
    expect(others).toEqual([])
    expect(origins(text, view!).slice(0, 4)).toEqual([
      ...[
        ['A', '65'],
        ['B', '66'],
        ['C', '67'],
        [',', '300'],
      ],
    ])
    expect([view!.from[4], view!.to[4]]).toEqual([18, 18])
  })

  test('a list of decimal byte values is decoded only if it gives at least the requested number of bytes', () => {
    expect(texts('[7,8,9,10]')).toHaveLength(1)
    expect(texts('[7,8,9]')).toEqual([])
    expect(texts('[7,8,9]', 3)).toHaveLength(1)
  })
})

test('a text without encoded parts gives no decoded text', () => {
  for (const text of ['', 'a b c d', '1, 2']) expect([text, texts(text)]).toEqual([text, []])
})

describe('the service finds the readable texts in binary data', () => {
  test('each readable part of binary data is returned separately, and each byte keeps its position', () => {
    const text = `\xff\xfe\xfd\xfcabcd\xff\xfe\xfd\xfc${bytes('üüüü')}\xff\xfe\xfd\xfc`
    const view = decoder.textOf(text)!
    expect(view.text).toHaveLength('abcd'.length + 1 + 8 + 1)
    expect(origins(text, view).slice(0, 4)).toEqual([...'abcd'].map((one) => [one, one]))
    expect([view.from[4], view.to[4]]).toEqual([8, 8])
    expect(view.text.slice(5, 13)).toBe(bytes('üüüü'))
  })

  test('a readable part of binary data must have at least the requested number of characters', () => {
    const around = (text: string) => `\xff\xff\xff\xff\xff${text}\xff\xff\xff\xff\xff`
    expect(decoder.textOf(around('abcd'))?.text).toStartWith('abcd')
    expect(decoder.textOf(around('abc'))?.text).toBe('')
    expect(decoder.textOf(around('\0\t\n\r~ '))?.text).toStartWith('\0\t\n\r~ ')
    for (const text of ['abc\x1f', 'abc\x7f', 'abc\xc3', 'abc\xe2\x82', 'abc\xf0\x9f\xa6'])
      expect([text, decoder.textOf(around(text))?.text]).toEqual([text, ''])
    const wide = bytes('a€🦉ü')
    expect(decoder.textOf(`${around(wide)}`)?.text).toStartWith(wide)
  })

  test('data count as text, and not as binary data, if more than half of them is readable', () => {
    expect(decoder.textOf('abcd\xff\xff\xff\xff')?.text).toStartWith('abcd')
    expect(decoder.textOf('abcd\xff\xff\xff')).toBeNull()
    expect(decoder.textOf('')?.text).toBe('')
  })
})
