/** Tests which words of a reviewed mail are marked. */
import { describe, expect, test } from 'bun:test'
import {
  markDifferences,
  markMatches,
  type Piece,
} from '../../../../shared/mail/review/differences.ts'

/** Writes marked pieces in brackets. */
const written = (pieces: Piece[]) =>
  pieces.map(({ text, mark }) => (mark === undefined ? text : `[${text}]`)).join('|')
const compared = (text: string, other: string) => written(markDifferences(text, other, 'other'))

describe('a word of a text', () => {
  test('is not marked if the other text says it beside the same word', () => {
    expect(compared('The tide is high.', 'The tide is high.')).toBe('The tide is high.')
    expect(compared('THE tide', 'the TIDE, twice')).toBe('THE tide')
    expect(compared('the, tide!', 'the tide')).toBe('the, tide!')
  })

  test('is marked if the other text lacks it', () => {
    expect(compared('The tide is very high.', 'The tide is high.')).toBe(
      'The tide is |[very]| high.',
    )
    expect(compared('pay now', '')).toBe('[pay now]')
    expect(compared('pay', 'pay more')).toBe('pay')
    expect(compared('more', 'pay more')).toBe('more')
    expect(compared('pay', 'to pay more')).toBe('[pay]')
  })

  test('is marked if it stands between other words', () => {
    expect(compared('a b c', 'c b a')).toBe('[a b c]')
  })

  test('is marked with its neighbours and the signs between them', () => {
    expect(compared('go to: 7, Pier! now', 'go to now')).toBe('go to: |[7, Pier]|! now')
    expect(compared('x a y b z', 'x a q y w b z')).toBe('x a |[y]| b z')
  })

  test('is known by the word before it or by the word behind it', () => {
    expect(compared('x b', 'a b')).toBe('[x]| b')
    expect(compared('a x', 'a b')).toBe('a |[x]')
  })

  test('is known in any case of its letters, a Turkish capital too', () => {
    expect(markDifferences('İSTANBUL İl', 'İstanbul İL', 'm')).toEqual([{ text: 'İSTANBUL İl' }])
  })

  test('may be of any script and hold digits', () => {
    expect(compared('für 42', 'für 43')).toBe('für |[42]')
    expect(compared('潮 が', '潮')).toBe('潮 |[が]')
  })
})

test('the pieces of a text hold each of its characters and the mark', () => {
  const text = ' - pay 7 USDC now! '
  const pieces = markDifferences(text, 'pay now', 'not in the text')
  expect(pieces.map((piece) => piece.text).join('')).toBe(text)
  expect(pieces.filter(({ mark }) => mark !== undefined)).toEqual([
    { text: '7 USDC', mark: 'not in the text' },
  ])
  expect(markDifferences('', 'x', 'other')).toEqual([])
  expect(markDifferences(' - ', 'x', 'other')).toEqual([{ text: ' - ' }])
})

test('the matches of a pattern are marked, and the rest is kept', () => {
  const matched = (text: string) => written(markMatches(text, /<[^>]*>/g, 'tag'))
  expect(matched('a<b>c<d>')).toBe('a|[<b>]|c|[<d>]')
  expect(matched('<b><d>e')).toBe('[<b>]|[<d>]|e')
  expect(matched('none')).toBe('none')
  expect(markMatches('', /x/g, 'tag')).toEqual([])
  expect(markMatches('x', /x/g, 'tag')).toEqual([{ text: 'x', mark: 'tag' }])
})
