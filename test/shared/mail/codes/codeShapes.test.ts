/** Tests which parts of a text line could be a one-time code because of their form. */
import { describe, expect, test } from 'bun:test'
import {
  type Candidate,
  candidatesOf,
  plainForm,
  standsAlone,
} from '../../../../shared/mail/codes/codeShapes.ts'

const valuesOf = (line: string) => candidatesOf(plainForm(line)).map(({ value }) => value)
/** Returns the only candidate for a code in a line, without the value and the position of the candidate. */
function shapeOf(line: string) {
  const found = candidatesOf(plainForm(line))
  expect([line, found.length]).toEqual([line, 1])
  const { value: _, start: __, end: ___, ...shape } = found[0]!
  return shape
}
const traits = (line: string): string[] =>
  Object.entries(shapeOf(line)).flatMap(([name, value]) => (value === true ? [name] : []))

describe('a number of 4 to 10 digits may be a one-time code', () => {
  test('a numeric code has 4 to 8 digits, or 9 to 10 if the number is alone on its line or after a label', () => {
    expect(valuesOf('123')).toEqual([])
    for (const value of ['1234', '12345678', '123456789', '1234567890'])
      expect(valuesOf(value)).toEqual([value])
    expect(valuesOf('12345678901')).toEqual([])
    expect(valuesOf('Code: 1234567890')).toEqual(['1234567890'])
    expect(valuesOf('The code is "1234567890".')).toEqual(['1234567890'])
    expect(valuesOf('Call 1234567890 now')).toEqual([])
    expect(valuesOf('Type 12345678 now')).toEqual(['12345678'])
  })

  test('a numeric code may be written in groups of equal length, or in two groups of at least three digits', () => {
    expect(valuesOf('482 913')).toEqual(['482913'])
    expect(valuesOf('4829-1305')).toEqual(['48291305'])
    expect(valuesOf('4829 - 1305')).toEqual(['48291305'])
    expect(valuesOf('48 29 13')).toEqual(['482913'])
    expect(valuesOf('482 9130')).toEqual(['4829130'])
    expect(valuesOf('12 34 56 78 90')).toEqual([])
    expect(valuesOf('123 456 789')).toEqual(['123456789'])
    expect(valuesOf('12 34')).toEqual(['1234'])
    expect([traits('482 913'), traits('482 9130')]).toEqual([[], []])
    expect(traits('4829 13')).toEqual(['isWeak'])
    expect(traits('0916 3')).toEqual(['isWeak'])
  })

  test('the setup code of a smart home device has groups of three, two and three digits', () => {
    expect(candidatesOf('384-19-226')[0]).toMatchObject({ value: '38419226', isWeak: false })
    expect(candidatesOf('384 19 226')).toEqual([])
    expect(candidatesOf('384-19-2260')).toEqual([])
  })

  test('a number in groups of unusual lengths is only a weak candidate for a one-time code', () => {
    expect([valuesOf('40-66-1'), traits('40-66-1')]).toEqual([['40661'], ['isWeak']])
    expect(valuesOf('1-2-3')).toEqual([])
    expect(valuesOf('12 34-56')).toEqual([])
  })

  test('a one-time code may have a space after each digit', () => {
    expect(valuesOf('4 8 2 9 1 3')).toEqual(['482913'])
    expect(valuesOf('4 8 2 - 9 1 3')).toEqual(['482913'])
    expect(valuesOf('K 7 Q 2')).toEqual(['K7Q2'])
  })

  test('the digits of other scripts in a one-time code are converted to ASCII digits', () => {
    expect(valuesOf('٤٨٢٩١٣')).toEqual(['482913'])
    expect(valuesOf('۴۸۲۹۱۳')).toEqual(['482913'])
    expect(valuesOf('४८२९१३')).toEqual(['482913'])
    expect(valuesOf('৪৮২৯১৩')).toEqual(['482913'])
    expect(valuesOf('๔๘๒๙๑๓')).toEqual(['482913'])
    expect(valuesOf('４８２９１３')).toEqual(['482913'])
    expect(valuesOf('٠٩١٢')).toEqual(['0912'])
    expect(valuesOf('４８２９９０')).toEqual(['482990'])
    expect(valuesOf('48\u200b29\u00ad13')).toEqual(['482913'])
    expect(valuesOf('482\u00a0913')).toEqual(['482913'])
    expect(valuesOf('482–913')).toEqual(['482913'])
  })

  test('a number of four digits that may be a year is marked as a possible year', () => {
    expect(traits('1999')).toEqual(['isYear'])
    expect(traits('2026')).toEqual(['isYear'])
    expect(traits('1899')).toEqual([])
    expect(traits('2100')).toEqual([])
    expect(valuesOf('© 2026')).toEqual([])
    expect(valuesOf('(c) 2026')).toEqual([])
    expect(valuesOf('© 7426')).toEqual(['7426'])
  })

  test.each([
    '#4829',
    '@4829',
    '4829@',
    '=4829',
    '/4829',
    '4829/',
    '+4829',
    '$4829',
    '€ 4829',
    '4829 €',
    '4829%',
    '48.29',
    '4829.50',
    '1,4829',
    '4829,5',
    '4829:30',
    'a.4829',
    'x[4829]',
    '+49 4829',
    '(030) 4829',
    '4829 kr',
    '4829 min',
    '4829 km',
    'EUR 4829',
    'Rs. 4829',
    '4829円',
    '4829年',
    '〒4829',
    '-4829',
    '_4829',
    '4829_',
    '4829°',
    '~4829',
    '^4829',
  ])('a number inside the longer expression `%s` is no candidate for a one-time code', (line) => {
    expect(valuesOf(line)).toEqual([])
  })

  test('a number is a candidate for a one-time code if a long dash or the next sentence follows without a space', () => {
    for (const line of [
      'Your code\u2014482913',
      '482913\u2014your sign-in code',
      'Your OTP is 482913.Do not share it',
      'Your OTP is:-482913',
      'Your code is 482913,valid for 5 minutes',
      '482913,it expires soon',
      'OTP:-482913',
    ])
      expect([line, valuesOf(line)]).toEqual([line, ['482913']])
    expect(valuesOf('4829.Pdf')).toEqual([])
    expect(valuesOf('4829.com')).toEqual([])
  })

  test('a number is a candidate for a one-time code if a full stop, a comma or a bracket follows', () => {
    for (const line of [
      '4829.',
      '4829, ok',
      '(4829)',
      '[4829]',
      '«4829»',
      '4829!',
      'a: 4829',
      'Код4829'.replace('Код', 'コード'),
    ])
      expect([line, valuesOf(line)]).toEqual([line, ['4829']])
  })
})

describe('a word of letters and digits may be a one-time code', () => {
  test('a one-time code may have two groups of four hexadecimal digits, each group with at least one digit from 0 to 9', () => {
    expect(valuesOf('Code: 3fa8 91c2')).toEqual(['3fa891c2'])
    expect(traits('3fa8 91c2')).toEqual(['isWeak'])
    expect(valuesOf('cafe 91c2')).toEqual(['91c2'])
    expect(valuesOf('3fa8 91c2-77')).toEqual([])
    expect(valuesOf('3fa8 91c2d')).not.toContain('3fa891c2')
    expect(valuesOf('4829 1305')).toEqual(['48291305'])
  })

  test('a one-time code of groups that dashes join may contain a word, or end with one capital letter', () => {
    expect(valuesOf('atlas-7f41-drop')).toEqual(['atlas-7f41-drop'])
    expect(valuesOf('h7-drak-52')).toEqual(['h7-drak-52'])
    expect(valuesOf('MX-40718-Q')).toEqual(['MX-40718-Q'])
    expect(valuesOf('up-to-date-2')).toEqual([])
    expect(valuesOf('a 2-step-check')).toEqual([])
  })

  test('a one-time code of digits and capital letters has 4 to 10 characters, or up to 20 in groups', () => {
    expect(valuesOf('A1B')).toEqual([])
    expect(valuesOf('A1B2')).toEqual(['A1B2'])
    expect(valuesOf('A1B2C3D4E5')).toEqual(['A1B2C3D4E5'])
    expect(valuesOf('A1B2C3D4E5F')).toEqual([])
    expect(valuesOf('A1B2C-3D4E5-F6G7H-8J9K2')).toEqual(['A1B2C-3D4E5-F6G7H-8J9K2'])
    expect(traits('A1B2')).toEqual([])
  })

  test('a candidate for a one-time code with small letters is marked as weak, and in mixed case must have five characters and a digit', () => {
    expect(traits('a1b2')).toEqual(['isWeak'])
    expect(valuesOf('kT4wZq')).toEqual(['kT4wZq'])
    expect(valuesOf('Kodenya: kT4wZ')).toEqual(['kT4wZ'])
    expect(valuesOf('Use kT4wZ now')).toEqual([])
    expect(valuesOf('kT4w')).toEqual([])
    expect(valuesOf('Nb63-Ty08')).toEqual(['Nb63-Ty08'])
    expect(valuesOf('Nb-Ty08')).toEqual([])
    expect(valuesOf('iPhone15')).toEqual([])
    expect(valuesOf('Tb4XgQ9zLwY2')).toEqual(['Tb4XgQ9zLwY2'])
    expect(valuesOf('Tb4XgQ9zLwY2a')).toEqual([])
    expect(valuesOf('Use Tb4XgQ9zLwY2 now')).toEqual([])
  })

  test('a possible code that looks like a voucher is marked as weak, and one that looks like an issue number (ABC-123) is marked as an issue key', () => {
    expect(traits('WELCOME15')).toEqual(['isWeak'])
    expect(traits('OPS-4821')).toEqual(['isKey'])
    expect(valuesOf('ABC-4821')).toEqual(['ABC-4821'])
    expect(valuesOf('2-step')).toEqual([])
    expect(valuesOf('24-HOUR')).toEqual([])
  })

  test('the letters before the digits of a one-time code are dropped, but a document number keeps its letters', () => {
    expect([valuesOf('G-482913'), traits('G-482913')]).toEqual([['482913'], []])
    expect([valuesOf('GC-482913'), traits('GC-482913')]).toEqual([['482913'], ['isKey']])
    expect(valuesOf('INV-93174')).toEqual(['INV-93174'])
    expect(valuesOf('PIN1: 41907385')).toEqual(['41907385'])
    expect(valuesOf('PIN1')).toEqual(['PIN1'])
    expect(valuesOf('A1B2C3: ok')).toEqual(['A1B2C3'])
  })
})

describe('a word of letters without digits may be a one-time code', () => {
  test('a one-time code of capital letters has at least six characters, and few of them are vowels', () => {
    expect(traits('XKQPTZ')).toEqual(['isWeak'])
    expect(valuesOf('XKQPT')).toEqual([])
    expect(traits('MSIAMJTL')).toEqual(['isWeak', 'isWord'])
    expect(valuesOf('AEIOUX')).toEqual([])
    expect(valuesOf('AEIXKQ')).toEqual(['AEIXKQ'])
    expect(traits('AXKQZTPLMR')).toEqual(['isWeak'])
    expect(traits('AEKQZTPLMR')).toEqual(['isWeak'])
  })

  test('random letters in mixed case are a one-time code if they are alone on a line or follow a label', () => {
    expect(traits('zlQEWh')).toEqual(['isWeak', 'isJumble'])
    expect(valuesOf('Code: zlQEWh')).toEqual(['zlQEWh'])
    expect(valuesOf('Take zlQEWh now')).toEqual([])
    for (const name of ['GitHub', 'PayPal', 'LinkedIn', 'zlQEW', 'zlQEWhzlQEW', 'Zlqewh'])
      expect([name, valuesOf(name)]).toEqual([name, []])
  })
})

describe('words that are joined by dashes may be a one-time code', () => {
  test('a one-time code of words has three or more words of 3 to 10 letters, and may end with a number', () => {
    expect(valuesOf('correct-horse-battery')).toEqual(['correct-horse-battery'])
    expect(valuesOf('apple-tree-42')).toEqual(['apple-tree-42'])
    expect(shapeOf('correct-horse-battery').kind).toBe('words')
    expect(valuesOf('well-known')).toEqual([])
    expect(valuesOf('one-to-one')).toEqual([])
  })
})

test('the service finds at most 20 candidates for one-time codes in a line, each with its position in the line', () => {
  const line = Array.from({ length: 30 }, (_, n) => `a ${7000 + n}`).join('; ')
  const found = candidatesOf(line)
  expect(found).toHaveLength(20)
  const [first] = found as [Candidate]
  expect(line.slice(first.start, first.end)).toBe('7000')
})

test.each([
  '12 Harbour Street',
  'Suite 4829',
  'San Francisco, CA 94103',
  'Wien, 1010 Wien',
  'Hauptstraße 4829',
  'rue de la Paix, 4829',
  'ul. Długa 4829',
  '4829 Main Ave',
  'Postfach 4829',
])('the number in the postal address `%s` is marked as part of an address', (line) => {
  expect(candidatesOf(line).every(({ isPlace }) => isPlace)).toBe(true)
})

test('only the number inside a postal address is marked as a part of the address, and not the numbers beside the address', () => {
  const places = candidatesOf('1234 at Suite 4829, 7391').map(({ value, isPlace }) => [
    value,
    isPlace,
  ])
  expect(places).toEqual([
    ['1234', false],
    ['4829', true],
    ['7391', false],
  ])
})

test('a candidate for a one-time code counts as alone if its line has no other letter or digit', () => {
  const alone = (line: string) => standsAlone(line, candidatesOf(line)[0]!)
  expect([alone('4829'), alone('** 4829 **'), alone('Code 4829'), alone('4829 x')]).toEqual([
    ...[true, true, false, false],
  ])
})
