/** Tests how the service turns a table in a text file into lines with tabs between the cells. */
import { describe, expect, test } from 'bun:test'
import { readCsv } from '../../../../shared/mail/documents/csvText.ts'

const textOf = (csv: string): string => readCsv(Buffer.from(csv)).text

describe('the text of a CSV file has its rows as lines and tabs between the cells', () => {
  test('the text of a CSV file has a line for each row and a tab between two cells', () => {
    expect(textOf('a,b\nc,d\n')).toBe('a\tb\nc\td')
    expect(textOf('a,b\r\nc,d')).toBe('a\tb\nc\td')
    expect(textOf('a,,b\n,c')).toBe('a\t\tb\n\tc')
  })

  test('the text of a CSV file keeps the last row and its last cell, even without a line end', () => {
    expect(textOf('a')).toBe('a')
    expect(textOf('a,b')).toBe('a\tb')
  })

  test('an empty CSV file has an empty text', () => {
    expect(textOf('')).toBe('')
  })

  test('the text of a CSV file has each cell on one line, without blanks around the cell', () => {
    expect(textOf(' a  b ,\tc\n')).toBe('a b\tc')
  })

  test('a quoted cell of a CSV file may contain delimiters and line ends', () => {
    expect(textOf('"a,b",c\n"d\ne",f')).toBe('a,b\tc\nd e\tf')
    expect(textOf('x, "a,b" ,c')).toBe('x\ta,b\tc')
  })

  test('two quotes inside a quoted cell of a CSV file mean one quote', () => {
    expect(textOf('"a ""b"" c",d')).toBe('a "b" c\td')
    expect(textOf('"""",d')).toBe('"\td')
    expect(textOf('"",d')).toBe('\td')
  })

  test('a quote in a CSV cell stays in the text if it is not at the beginning of the cell', () => {
    expect(textOf('5" pipe,x')).toBe('5" pipe\tx')
    expect(textOf('"a" "b",c')).toBe('a "b"\tc')
    expect(textOf('x "a,b" c')).toBe('x "a\tb" c')
  })

  test('text after a closing quote in a CSV file belongs to the same cell', () => {
    expect(textOf('"a"b,c')).toBe('ab\tc')
  })

  test('a quoted cell without a closing quote ends at the end of the CSV file', () => {
    expect(textOf('a,"b,c\nd')).toBe('a\tb,c d')
  })

  test('the text of a CSV file is cut at a million characters, and the result says that it was cut', () => {
    const { text, omitted } = readCsv(Buffer.from(`${'x'.repeat(999_999)}y\nz`))
    expect(text.slice(-2)).toBe('xy')
    expect(text).toHaveLength(1_000_000)
    expect([...omitted]).toEqual(['truncated'])
    expect([...readCsv(Buffer.from(`${'x'.repeat(999_999)}\nz`)).omitted]).toEqual(['truncated'])
    expect([...readCsv(Buffer.from('x'.repeat(999_999))).omitted]).toEqual([])
  })
})

describe('the service detects the delimiter of a CSV file', () => {
  test.each([',', ';', '\t', '|'])('a CSV file may use %p as delimiter', (delimiter) => {
    expect(textOf(`a${delimiter}b\nc${delimiter}d`)).toBe('a\tb\nc\td')
  })

  test('if a CSV file has only one line, its delimiter is the most frequent possible delimiter', () => {
    expect(textOf('1,5;2,5;3;4')).toBe('1,5\t2,5\t3\t4')
    expect(textOf('a;b|c|d,e')).toBe('a;b\tc\td,e')
  })

  test('if the comma and another possible delimiter of a CSV file occur equally often, the comma is used', () => {
    expect(textOf('a;b,c')).toBe('a;b\tc')
  })

  test('the service prefers a delimiter that occurs in every line of a CSV file, so that decimal commas do not count', () => {
    expect(textOf('Preis;Menge\n1,50;2,00\n\n3,20;4,10\n')).toBe(
      'Preis\tMenge\n1,50\t2,00\n\n3,20\t4,10',
    )
    expect(textOf('Betrag\tSaldo\r\n1,50\t2,00\r\n')).toBe('Betrag\tSaldo\n1,50\t2,00')
    const long = `a;b\n${'1,5;2,5\n'.repeat(600)}`
    expect(textOf(long).split('\n').slice(0, 2)).toEqual(['a\tb', '1,5\t2,5'])
    expect(textOf('Report\na,b\nc,d;e\n')).toBe('Report\na\tb\nc\td;e')
  })

  test('possible delimiters of a CSV file are counted only outside of quotes', () => {
    expect(textOf('"a,b,c,d";e')).toBe('a,b,c,d\te')
    expect(textOf('"a";",,,";b')).toBe('a\t,,,\tb')
  })

  test('possible delimiters of a CSV file are also counted in a last line without a line end', () => {
    expect(textOf('a,b;c\nd;e')).toBe('a,b\tc\nd\te')
  })

  test('possible delimiters of a CSV file are counted only in the first 4,000 characters', () => {
    const row = (chars: number) => `${'x'.repeat(chars)};,,`
    expect(textOf(row(3_999)).slice(-4)).toBe('x\t,,')
    expect(textOf(row(3_998)).slice(-2)).toBe('x;')
  })
})
