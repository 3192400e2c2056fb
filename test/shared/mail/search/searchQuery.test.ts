/** Tests how the service reads a search query, and which parts of a text the query marks. */
import { describe, expect, test } from 'bun:test'
import {
  highlight,
  holdsIn,
  parseField,
  parseSearch,
  SearchQueryError,
  searchText,
} from '../../../../shared/mail/search/searchQuery.ts'
import { lexeme, searchKey } from '../../../../shared/mail/search/searchTerms.ts'

const PROJECT = 'prj_0123456789abcdef01234567'

/**
 * Writes a parsed query as clauses: `a b` for a phrase, `|` between choices, and `!` before a clause that excludes
 * messages.
 */
const read = (q: string) =>
  parseSearch(q).clauses.map(
    ({ anyOf, not }) =>
      (not ? '!' : '') +
      anyOf.map(({ terms, prefix }) => terms.join(' ') + (prefix ? '*' : '')).join('|'),
  )
const faultOf = (run: () => unknown) => {
  try {
    run()
  } catch (error) {
    return error instanceof SearchQueryError ? error.message : error
  }
  return 'read'
}
const words = (count: number, end = '') =>
  Array.from({ length: count }, (_one, n) => `word${n}${end}`).join(' ')

describe('a search query consists of words, phrases and excluded words', () => {
  test('a search query finds only messages that contain each of its words', () => {
    expect(read('Tide  tables')).toEqual(['tide', 'tables'])
    expect(read('tide-tables')).toEqual(['tide tables'])
  })

  test('a search query may contain a phrase in quotes, even if the last quote is missing', () => {
    expect(read('"tide tables" due')).toEqual(['tide tables', 'due'])
    expect(read('due "tide tables')).toEqual(['due', 'tide tables'])
    expect(read('due "" ---')).toEqual(['due'])
  })

  test('a word or phrase after a minus sign in a search query excludes messages that contain it', () => {
    expect(read('due -tide -"low water"')).toEqual(['due', '!tide', '!low water'])
  })

  test('a search query may join two words with OR', () => {
    expect(read('tide OR ebb due')).toEqual(['tide|ebb', 'due'])
    expect(read('tide OR "low water" OR ebb')).toEqual(['tide|low water|ebb'])
    expect(read('tide or ebb')).toEqual(['tide', 'or', 'ebb'])
    expect(read('"OR" tide')).toEqual(['or', 'tide'])
  })

  test('OR has no effect at the beginning or the end of a search query, or beside a word with a minus sign', () => {
    expect(read('OR tide OR')).toEqual(['tide'])
    expect(read('tide OR -ebb')).toEqual(['tide', '!ebb'])
    expect(read('due -ebb OR tide')).toEqual(['due', '!ebb', 'tide'])
    expect(read('due -OR')).toEqual(['due', '!or'])
  })

  test('if a star follows some letters, the search query finds words that begin with these letters', () => {
    expect(read('tid* "low wat*"')).toEqual(['tid*', 'low wat*'])
    expect(read('*tide')).toEqual(['tide'])
  })

  test('a search query with an email address finds the whole address, or its words one after another', () => {
    expect(read('Ada@Shop.Example')).toEqual(['ada shop example|ada@shop.example'])
  })

  test('in a script without spaces (such as Chinese), a single letter finds each pair of letters that begins with it', () => {
    expect(read('東')).toEqual(['東*'])
    expect(read('東京都')).toEqual(['東京 京都'])
  })

  test('a search query needs at least one word that the message must contain', () => {
    for (const q of ['', ' ', '-tide', '""', '***', 'OR']) {
      expect(faultOf(() => read(q))).toBe('hold at least one word to look for')
    }
  })

  test('a search query has at most 64 words, and an email address counts only as the words that it consists of', () => {
    expect(read(words(64))).toHaveLength(64)
    expect(faultOf(() => read(words(65)))).toBe('hold at most 64 words')
    expect(read(`${words(61)} a@b.example`)).toHaveLength(62)
    expect(faultOf(() => read(`due -"${words(64)}"`))).toBe('hold at most 64 words')
  })

  test('a search query has at most eight words with a star at the end', () => {
    expect(read(words(8, '*'))).toHaveLength(8)
    expect(faultOf(() => read(words(9, '*')))).toBe('hold at most 8 beginnings of words')
  })

  test('in a search query a star must follow at least three letters, unless the script has no spaces', () => {
    expect(read('abc* 東京* 東*')).toEqual(['abc*', '東京', '東*'])
    expect(faultOf(() => read('ab*'))).toBe('have at least 3 letters before *')
    expect(faultOf(() => read('"long ab*"'))).toBe('have at least 3 letters before *')
  })
})

describe('a query on one field (such as from) is read as one phrase', () => {
  test('a query on one field (such as from) is one phrase that the field must contain', () => {
    expect(parseField('from', 'Ada Shop').clauses).toEqual([
      { anyOf: [{ terms: ['ada', 'shop'], prefix: false }], not: false, field: 'from' },
    ])
  })

  test('a query on one field needs a letter or a digit, and has the same limits as a query on the whole message', () => {
    expect(faultOf(() => parseField('from', '@.-'))).toBe('hold at least one letter or digit')
    expect(faultOf(() => parseField('from', words(65)))).toBe('hold at most 64 words')
  })

  test('a query on one field finds matches only in this field', () => {
    const query = parseField('from', 'ada')
    expect(holdsIn(query, { from: ['Ada'], subject: ['x'] })).toBe(true)
    expect(holdsIn(query, { from: ['Bob'], subject: ['Ada'] })).toBe(false)
    expect(holdsIn(query, {})).toBe(false)
    expect(highlight('ada', query, 'from')).toHaveLength(1)
    expect(highlight('ada', query, 'subject')).toEqual([])
  })
})

describe('a message is found if its texts match every clause of the search query', () => {
  const holds = (q: string, ...texts: string[]) => holdsIn(parseSearch(q), { text: texts })

  test('a message matches a query if each clause of the query matches a text of the message', () => {
    expect(holds('tide due', 'the tide', 'is due')).toBe(true)
    expect(holds('tide due', 'the tide')).toBe(false)
    expect(holds('tide OR due', 'is due')).toBe(true)
    expect(holds('tide -due', 'the tide', 'is due')).toBe(false)
    expect(holds('tide -due', 'the tide')).toBe(true)
  })

  test('a message matches a phrase if the words of the phrase directly follow each other in a text of the message', () => {
    expect(holds('"low water"', 'at low, water')).toBe(true)
    expect(holds('"low water"', 'low', 'water')).toBe(false)
    expect(holds('"low water"', 'low low water')).toBe(true)
    expect(holds('"low water"', 'water low')).toBe(false)
    expect(holds('"low water"', 'low waters')).toBe(false)
  })

  test('only the last word of a phrase can match the beginning of a longer word', () => {
    expect(holds('tid*', 'tides')).toBe(true)
    expect(holds('tid*', 'ebbtide')).toBe(false)
    expect(holds('"low wat*"', 'low waters')).toBe(true)
    expect(holds('"low wat*"', 'lower waters')).toBe(false)
    expect(holds('"low wat*"', 'low')).toBe(false)
  })
})

test('the tsquery text for PostgreSQL combines the phrases, alternatives and clauses of a search query, and marks prefixes and the searched field', () => {
  const term = (word: string) => lexeme(searchKey(PROJECT), word)
  expect(searchText(PROJECT, parseSearch('"low wat*" OR ebb -due'))).toBe(
    `((${term('low')} <-> ${term('wat')}:*) | (${term('ebb')})) & !((${term('due')}))`,
  )
  const [, weight] = /:(\w)\)/.exec(searchText(PROJECT, parseField('from', 'ada')))!
  expect(searchText(PROJECT, parseField('from', 'low wat*'))).toBe(
    `((${term('low')}:${weight} <-> ${term('wat')}:*${weight}))`,
  )
})

describe('the service highlights only those words of a text that match the search query', () => {
  const marked = (text: string, q: string) =>
    highlight(text, parseSearch(q), 'text').map((piece) =>
      piece.ranges.map(([start, end]) => piece.text.slice(start, end)),
    )

  test('if several phrases of a search query match at one position of a text, the longest phrase is highlighted', () => {
    expect(marked('low water and low tide', '"low water" OR low')).toEqual([['low water', 'low']])
    expect(marked('low water low', '"low water" OR low')).toEqual([['low water', 'low']])
    expect(marked('low water', 'wat*')).toEqual([['water']])
  })

  test('the highlights of a search result mark no word that the search query excludes', () => {
    expect(marked('tide due', 'tide -due')).toEqual([['tide']])
    expect(highlight('ebb', parseSearch('tide'), 'text')).toEqual([])
  })

  test('a highlight shows at most 60 characters before and after its matches, and begins at the start of a word if one is near', () => {
    const [piece] = highlight(
      `${'abcd '.repeat(20)}tide ${'x'.repeat(99)}`,
      parseSearch('tide'),
      'text',
    )
    expect(piece!.text).toBe(`${'abcd '.repeat(11)}tide ${'x'.repeat(59)}`)
    expect(piece!.ranges).toEqual([[55, 59]])
    const [whole] = highlight(`${'x'.repeat(99)} tide`, parseSearch('tide'), 'text')
    expect(whole!.text).toBe(`${'x'.repeat(59)} tide`)
    const [near] = highlight(`${'x'.repeat(59)} tide`, parseSearch('tide'), 'text')
    expect(near!.ranges).toEqual([[60, 64]])
  })

  test('highlights of neighbouring search matches have no characters in common, and each highlight has at most 400 characters', () => {
    const text = Array.from({ length: 300 }, (_one, n) => `tide and ebb ${n}`).join(' ')
    const pieces = highlight(text, parseSearch('tide*'), 'text')
    expect(text.startsWith(pieces.map((piece) => piece.text).join(''))).toBe(true)
    expect(pieces.length).toBeGreaterThan(1)
    for (const piece of pieces) {
      expect(piece.text.length).toBeLessThanOrEqual(400)
      for (const [start, end] of piece.ranges) {
        expect(piece.text.slice(start, end)).toBe('tide')
      }
    }
  })

  test('a search result has at most three highlights for each text', () => {
    const far = `tide ${'x'.repeat(200)} `
    expect(marked(far.repeat(4), 'tide')).toEqual([['tide'], ['tide'], ['tide']])
  })

  test('only the first 65,536 characters of a text are searched for highlights', () => {
    const at = (index: number) => `${'x '.repeat(index / 2)}tide`
    expect(marked(at(65_532), 'tide')).toEqual([['tide']])
    expect(marked(at(65_534), 'tide')).toEqual([])
  })
})
