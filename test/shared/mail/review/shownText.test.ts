/** Tests that the approval page makes hidden characters of a text visible. */
import { describe, expect, test } from 'bun:test'
import { shownText } from '../../../../shared/mail/review/shownText.ts'

describe('the approval page shows the code number of an invisible character', () => {
  test.each([
    [0x00, 0x08],
    [0x0b, 0x1f],
    [0x7f, 0x9f],
    [0xad, 0xad],
    [0x34f, 0x34f],
    [0x61c, 0x61c],
    [0x115f, 0x1160],
    [0x17b4, 0x17b5],
    [0x180b, 0x180f],
    [0x200b, 0x200f],
    [0x2028, 0x202e],
    [0x2060, 0x206f],
    [0x2800, 0x2800],
    [0x3164, 0x3164],
    [0xfe00, 0xfe0e],
    [0xfeff, 0xfeff],
    [0xffa0, 0xffa0],
    [0xfff0, 0xfffb],
    [0x1bca0, 0x1bca3],
    [0x1d173, 0x1d17a],
    [0xe0000, 0xe0fff],
  ])(
    'the approval page shows an invisible character from %i to %i as its code number',
    (from, to) => {
      for (const code of [from, to]) {
        const name = code.toString(16).toUpperCase().padStart(4, '0')
        expect(shownText(`a${String.fromCodePoint(code)}b`)).toBe(`a⟨U+${name}⟩b`)
      }
    },
  )

  test('characters just outside of the ranges of invisible characters are shown unchanged', () => {
    const beside = [
      ...[0x09, 0x0a, 0x20, 0x7e, 0xa0, 0xac, 0xae, 0x34e, 0x350, 0x61b, 0x61d, 0x115e, 0x1161],
      ...[0x17b3, 0x17b6, 0x180a, 0x1810, 0x200a, 0x2010, 0x2027, 0x202f, 0x205f, 0x2070, 0x27ff],
      ...[0x2801, 0x3163, 0x3165, 0xfdff, 0xfe0f, 0xfefe, 0xff00, 0xff9f, 0xffa1, 0xffef, 0xfffc],
      ...[0x1bc9f, 0x1bca4, 0x1d172, 0x1d17b, 0xe1000],
    ]
    for (const code of beside) {
      const text = `a${String.fromCodePoint(code)}b`
      expect(shownText(text)).toBe(text)
    }
  })

  test('if several invisible characters follow each other, the approval page shows the code number of each of them', () => {
    expect(shownText('\u200b\u202e')).toBe('⟨U+200B⟩⟨U+202E⟩')
  })
})

test('letters, punctuation and emoji are shown unchanged', () => {
  const text = 'Zoë 鍵 ~ \u00a0 \u00ae ❤\ufe0f 👩\u{1f3fd} \t\n⟨x⟩'
  expect(shownText(text)).toBe(text)
})

test('the approval page counts CRLF as one line end, and shows a single CR as a hidden character', () => {
  expect(shownText('a\r\nb\rc')).toBe('a\nb⟨U+000D⟩c')
})

describe('the approval page replaces a long run of blanks by the number of blanks', () => {
  test('the approval page replaces 200 or more blanks in a row by their number', () => {
    const run = (length: number) => `a${' '.repeat(length)}b`
    expect(shownText(run(199))).toBe(run(199))
    expect(shownText(run(200))).toBe('a⟨200 blanks⟩b')
    expect(shownText(`a${' \t\u00a0\u3000'.repeat(60)}b`)).toBe('a⟨240 blanks⟩b')
  })

  test('a run of blanks on the approval page ends at the end of its line', () => {
    const half = ' '.repeat(150)
    expect(shownText(`a${half}\n${half}b`)).toBe(`a${half}\n${half}b`)
  })
})

describe('the approval page replaces a long run of empty lines by the number of lines', () => {
  test('the approval page replaces 20 or more empty lines in a row by their number', () => {
    const run = (lines: number) => `a${'\n'.repeat(lines + 1)}b`
    expect(shownText(run(19))).toBe(run(19))
    expect(shownText(run(20))).toBe('a\n⟨20 empty lines⟩\nb')
  })

  test('lines that contain only blanks count as empty lines on the approval page', () => {
    expect(shownText(`a\n${' \t\n'.repeat(25)}b`)).toBe('a\n⟨25 empty lines⟩\nb')
    expect(shownText(`a\r\n${'\r\n'.repeat(25)}b`)).toBe('a\n⟨25 empty lines⟩\nb')
  })

  test('a run of empty lines on the approval page ends at a line with words', () => {
    const text = `a\n${'\n'.repeat(15)}b\n${'\n'.repeat(15)}c`
    expect(shownText(text)).toBe(text)
  })
})
