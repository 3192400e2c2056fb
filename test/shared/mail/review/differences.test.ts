/** Tests which words the approval page marks in a mail that a person reviews. */
import { describe, expect, test } from 'bun:test'
import {
  markDifferences,
  markMatches,
  type Piece,
} from '../../../../shared/mail/review/differences.ts'

/** Writes the marked parts of a text in brackets. */
const written = (pieces: Piece[]) =>
  pieces.map(({ text, mark }) => (mark === undefined ? text : `[${text}]`)).join('|')
const compared = (text: string, other: string) => written(markDifferences(text, other, 'other'))

describe('the approval page marks a word of one part of a mail (text or HTML), unless the other part has the word beside the same neighbouring word', () => {
  test('the approval page does not mark a word if the word beside it is the same in the text part and in the HTML part of the mail', () => {
    expect(compared('The tide is high.', 'The tide is high.')).toBe('The tide is high.')
    expect(compared('THE tide', 'the TIDE, twice')).toBe('THE tide')
    expect(compared('the, tide!', 'the tide')).toBe('the, tide!')
  })

  test('the approval page marks a word of the text part or HTML part if the other part lacks this word', () => {
    expect(compared('The tide is very high.', 'The tide is high.')).toBe(
      'The tide is |[very]| high.',
    )
    expect(compared('pay now', '')).toBe('[pay now]')
    expect(compared('pay', 'pay more')).toBe('pay')
    expect(compared('more', 'pay more')).toBe('more')
    expect(compared('pay', 'to pay more')).toBe('[pay]')
  })

  test('the approval page marks a word if its neighbouring words in the other part of the mail are different', () => {
    expect(compared('a b c', 'c b a')).toBe('[a b c]')
  })

  test('the approval page marks words that directly follow each other as one piece, with the punctuation between them', () => {
    expect(compared('go to: 7, Pier! now', 'go to now')).toBe('go to: |[7, Pier]|! now')
    expect(compared('x a y b z', 'x a q y w b z')).toBe('x a |[y]| b z')
  })

  test('for the approval page, a word is the same in both parts of a mail if the word before or after it is also the same', () => {
    expect(compared('x b', 'a b')).toBe('[x]| b')
    expect(compared('a x', 'a b')).toBe('a |[x]')
  })

  test('the approval page compares words without regard to letter case, even with a Turkish capital letter', () => {
    expect(markDifferences('İSTANBUL İl', 'İstanbul İL', 'm')).toEqual([{ text: 'İSTANBUL İl' }])
  })

  test('a word on the approval page may be in any script, and may contain digits', () => {
    expect(compared('für 42', 'für 43')).toBe('für |[42]')
    expect(compared('潮 が', '潮')).toBe('潮 |[が]')
  })
})

test('the approval page cuts a text into marked and unmarked pieces, which together contain every character of the text', () => {
  const text = ' - pay 7 USDC now! '
  const pieces = markDifferences(text, 'pay now', 'not in the text')
  expect(pieces.map((piece) => piece.text).join('')).toBe(text)
  expect(pieces.filter(({ mark }) => mark !== undefined)).toEqual([
    { text: '7 USDC', mark: 'not in the text' },
  ])
  expect(markDifferences('', 'x', 'other')).toEqual([])
  expect(markDifferences(' - ', 'x', 'other')).toEqual([{ text: ' - ' }])
})

test('the approval page marks each match of a pattern in a text, and leaves all other text unchanged', () => {
  const matched = (text: string) => written(markMatches(text, /<[^>]*>/g, 'tag'))
  expect(matched('a<b>c<d>')).toBe('a|[<b>]|c|[<d>]')
  expect(matched('<b><d>e')).toBe('[<b>]|[<d>]|e')
  expect(matched('none')).toBe('none')
  expect(markMatches('', /x/g, 'tag')).toEqual([])
  expect(markMatches('x', /x/g, 'tag')).toEqual([{ text: 'x', mark: 'tag' }])
})
