/** Tests how the service turns the words of a PDF page into lines, columns and paragraphs. */
import { describe, expect, test } from 'bun:test'
import { layOut } from '../../../../../shared/mail/documents/pdf/pdfLayout.ts'
import type { Run } from '../../../../../shared/mail/documents/pdf/pdfRuns.ts'

/** Returns words on the base line `y` that extend from `x` to `end`, in letters of ten points. */
const run = (text: string, x: number, end: number, y = 100, size = 10): Run => ({
  ...{ text, x, end, y, size },
  unseen: null,
})
const row = (...texts: [text: string, x: number, end: number][]) =>
  layOut(texts.map(([text, x, end]) => run(text, x, end)))

test('a PDF page without words has no text', () => {
  expect(layOut([])).toBe('')
  expect(layOut([run('', 0, 10), run(' ', 0, 10, 50)])).toBe('')
})

describe('words of a PDF page that are at the same height form one line', () => {
  test('words of a PDF page belong to one line if their base lines differ by less than 0.45 of the letter size', () => {
    const at = (y: number, size = 10) => layOut([run('a', 0, 10), run('b', 10, 20, y, size)])
    expect([at(104.4), at(95.6)]).toEqual(['ab\n', 'ab\n'])
    expect([at(104.5), at(95.5)]).toEqual(['a\nb\n', 'a\nb\n'])
    expect([at(108.9, 20), at(109, 20)]).toEqual(['ab\n', 'a\nb\n'])
    expect(layOut([run('a', 0, 10, 100, 20), run('b', 10, 20, 108.9)])).toBe('ab\n')
  })

  test('the largest words of a line on a PDF page decide how high the line is', () => {
    const three = (size: number) =>
      layOut([run('a', 0, 10), run('b', 10, 20, 100, size), run('c', 20, 30, 108)])
    expect([three(20), three(10)]).toEqual(['abc\n', 'ab\nc\n'])
    const empty = run('', 10, 20, 100, 20)
    expect(layOut([run('a', 0, 10), empty, run('c', 20, 30, 108)])).toBe('a\nc\n')
  })

  test('the words of a line on a PDF page are sorted from left to right', () => {
    expect(row(['b', 10, 20], ['a', 0, 10])).toBe('ab\n')
    expect(row(['b', 20, 10], ['a', 10, 0])).toBe('ab\n')
  })

  test('a word of a PDF page joins an earlier line at the same height only if the word begins to the right of that line', () => {
    const later = (x: number) =>
      layOut([run('a', 0, 50), run('b', 61, 80), run('c', 0, 50, 88), run('d', x, 200)])
    expect(later(80)).toBe('a\tbd\nc\n')
    expect(later(79)).toBe('a\tb\nc\nd\n')
    const shorter = layOut([
      run('a', 61, 80),
      run('b', 0, 50),
      run('c', 0, 50, 88),
      run('d', 79, 99),
    ])
    expect(shorter).toBe('b\ta\nc\nd\n')
  })

  test('a word of a PDF page joins an earlier line at the same height only if at most seven lines are between them', () => {
    const after = (count: number) =>
      layOut([
        run('a', 0, 10),
        ...Array.from({ length: count }, (_, n) => run(`${n}`, 0, 10, 88 - 12 * n)),
        run('b', 10, 20),
      ]).split('\n')[0]
    expect([after(7), after(8)]).toEqual(['ab', 'a'])
  })

  test('a line on a PDF page without letters is omitted', () => {
    expect(layOut([run('a', 0, 10), run('  ', 0, 10, 88), run('b', 0, 10, 82)])).toBe('a\nb\n')
    expect(layOut([run(' ', 0, 5), run('a', 5, 10)])).toBe(' a\n')
  })
})

describe('the size of a gap between words of a PDF page decides whether it becomes a space or a tab', () => {
  test('a gap on a PDF page counts as a space from 0.15 of the letter size, and as a tab above the full letter size', () => {
    const gap = (width: number) => row(['a', 0, 10], ['b', 10 + width, 40])
    expect([gap(0), gap(1.5), gap(1.6), gap(10), gap(10.1)]).toEqual([
      'ab\n',
      'ab\n',
      'a b\n',
      'a b\n',
      'a\tb\n',
    ])
  })

  test('if a PDF page already has a space character, a gap beside it adds no second space', () => {
    expect(row(['a ', 0, 10], ['b', 14, 20])).toBe('a b\n')
    expect(row(['a ', 0, 10], [' b', 25, 30])).toBe('a\tb\n')
    expect(row(['a', 0, 10], ['  b', 10, 20])).toBe('a b\n')
  })

  test('a gap before the first words of a line on a PDF page is ignored', () => {
    expect(row(['a', 500, 510])).toBe('a\n')
  })

  test('on a PDF page, the gap before a word begins at the rightmost end of all words to its left', () => {
    expect(row(['a', 0, 30], ['b', 5, 10], ['c', 31, 40])).toBe('abc\n')
    expect(row(['a', 30, 0], ['c', 31, 40])).toBe('ac\n')
    expect(row(['a', 0, 10], ['b', 20, 10])).toBe('ab\n')
  })
})

describe('a large distance between two lines of a PDF page begins a new paragraph', () => {
  test('a new paragraph of a PDF page begins if a line is lower than the line before by more than 1.9 of the letter size', () => {
    const next = (y: number, size = 10) => layOut([run('a', 0, 10), run('b', 0, 10, y, size)])
    expect([next(81), next(80.9), next(119), next(119.1)]).toEqual([
      'a\nb\n',
      'a\n\nb\n',
      'a\nb\n',
      'a\n\nb\n',
    ])
    expect([next(62, 20), next(61.9, 20)]).toEqual(['a\nb\n', 'a\n\nb\n'])
    expect(layOut([run('a', 0, 10, 100, 20), run('b', 0, 10, 62)])).toBe('a\nb\n')
  })
})

describe('the letters of a PDF page are put into reading order', () => {
  test('the letters of Hebrew and Arabic words on a PDF page are put into reading order', () => {
    expect(row(['םולש', 0, 40])).toBe('שלום\n')
    expect(row(['12.5 םולש', 0, 40])).toBe('שלום 12.5\n')
    expect(row(['abc', 0, 40])).toBe('abc\n')
    expect(row(['12 34', 0, 40])).toBe('12 34\n')
  })

  test('Hebrew words within a text in another language are put into reading order word by word', () => {
    expect(row(['hello all םולש end', 0, 40])).toBe('hello all שלום end\n')
    expect(row(['hello all רקוב בוט', 0, 40])).toBe('hello all טוב בוקר\n')
  })

  test('a line on a PDF page counts as right-to-left if at least half of its letters are right-to-left', () => {
    expect(row(['ab םא', 0, 40])).toBe('אם ab\n')
    expect(row(['abc םא', 0, 40])).toBe('abc אם\n')
  })

  test('typographic letters such as ligatures become ordinary letters', () => {
    expect(row(['ﬁn', 0, 10])).toBe('fin\n')
  })
})
