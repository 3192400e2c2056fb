/** Tests how the service reads the styles of an Excel workbook, and how it writes the number of a cell. */
import { describe, expect, test } from 'bun:test'
import { strToU8, zipSync } from 'fflate'
import {
  readSheetStyles,
  shownValue,
} from '../../../../../shared/mail/documents/office/sheetStyles.ts'
import { ZipArchive } from '../../../../../shared/mail/documents/office/zipArchive.ts'

const stylesOf = (xml: string) => {
  const archive = new ZipArchive(
    zipSync({ 'xl/styles.xml': strToU8(`<styleSheet>${xml}</styleSheet>`) }),
  )
  return readSheetStyles(archive, 'xl/styles.xml')
}
const XF = '<cellXfs><xf/></cellXfs>'
const fontOf = (xml: string) => stylesOf(`<fonts><font>${xml}</font></fonts>${XF}`)[0]?.ink
const groundOf = (xml: string) => stylesOf(`<fills><fill>${xml}</fill></fills>${XF}`)[0]?.ink.ground

describe('each cell of a workbook gets the font, fill and number format of its style', () => {
  test('the service reads only the cell formats of an Excel workbook as styles, in their order', () => {
    const styles = stylesOf(
      '<cellStyleXfs><xf numFmtId="9"/></cellStyleXfs><cellXfs><xf numFmtId="14"/><xf numFmtId="18"/></cellXfs><dxfs><xf numFmtId="9"/></dxfs>',
    )
    expect(styles.map(({ format }) => format)).toEqual(['yyyy-mm-dd', 'h:mm'])
  })

  test('an Excel workbook without a styles part has no styles', () => {
    const archive = new ZipArchive(zipSync({ a: strToU8('a') }))
    expect(readSheetStyles(archive, 'xl/styles.xml')).toEqual([])
  })

  test('at most 70,000 styles of an Excel workbook are read', () => {
    const many = (count: number) => stylesOf(`<cellXfs>${'<xf/>'.repeat(count)}</cellXfs>`).length
    expect(many(70_000)).toBe(70_000)
    expect(many(70_001)).toBe(70_000)
  })

  test('a cell style of a workbook refers to a font and a fill by number, and uses the first font and fill if it states no number', () => {
    const [first, second, third] = stylesOf(
      '<fonts><font><sz val="8"/></font><font><sz val="12"/></font></fonts>' +
        '<fills><fill><fgColor rgb="FF00FF00"/></fill><fill><fgColor rgb="FFFF0000"/></fill></fills>' +
        '<borders><border><color rgb="FF0000FF"/></border></borders>' +
        '<cellXfs><xf/><xf fontId="1" fillId="1"/><xf fontId="7" fillId="7"/></cellXfs>',
    )
    expect(first?.ink).toEqual({ sizePt: 8, ground: '00ff00' })
    expect(second?.ink).toEqual({ sizePt: 12, ground: 'ff0000' })
    expect(third?.ink).toEqual({})
  })

  test('a cell style of a workbook has no font and no fill if their numbers are unknown', () => {
    expect(stylesOf(`<dxfs><font><sz val="8"/></font><fill/></dxfs>${XF}`)[0]?.ink).toEqual({})
    expect(fontOf('')).toEqual({})
    expect(
      stylesOf(`<fonts><sz val="8"/></fonts><fills><gradientFill/></fills>${XF}`)[0]?.ink,
    ).toEqual({})
  })

  test('a cell style names its number format by an id, which means a format of the workbook or, if there is none, a built-in format', () => {
    const styles = stylesOf(
      '<numFmts><numFmt numFmtId="14" formatCode="0.0"/><numFmt numFmtId="164" formatCode="h"/><numFmt numFmtId="165"/></numFmts>' +
        '<cellXfs><xf numFmtId="14"/><xf numFmtId="164"/><xf numFmtId="165"/><xf numFmtId="1"/></cellXfs>',
    )
    expect(styles.map(({ format }) => format)).toEqual(['0.0', 'h', '', ''])
  })

  test('a cell style never uses the number format of a conditional style', () => {
    const [style] = stylesOf(
      '<dxfs><numFmt numFmtId="14" formatCode="0.0"/></dxfs><cellXfs><xf numFmtId="14"/></cellXfs>',
    )
    expect(style?.format).toBe('yyyy-mm-dd')
  })

  test('a cell style hides a cell if its number format is empty for positive numbers, negative numbers and zero', () => {
    const isHidden = (code: string) =>
      stylesOf(
        `<numFmts><numFmt numFmtId="164" formatCode="${code}"/></numFmts><cellXfs><xf numFmtId="164"/></cellXfs>`,
      )[0]?.isHidden
    for (const code of [';;', ';;;', ' ; ; ; '])
      expect([code, isHidden(code)]).toEqual([code, true])
    for (const code of ['', ';', ';;;;', ';;@', '0;;;'])
      expect([code, isHidden(code)]).toEqual([code, false])
  })
})

describe('the service finds the colour of a font in a workbook, or treats it as unknown', () => {
  test('a font’s colour is read from its hexadecimal digits, or is the theme’s white or black', () => {
    expect(fontOf('<color rgb="FF12AB34"/>')).toEqual({ colour: '12ab34' })
    expect(fontOf('<color theme="0"/>')).toEqual({ colour: 'ffffff' })
    expect(fontOf('<color theme="1"/>')).toEqual({ colour: '000000' })
  })

  test('a font’s colour may be white or black of the indexed palette, or the theme’s black made lighter or white made darker', () => {
    for (const [color, colour] of [
      ['indexed="1"', 'ffffff'],
      ['indexed="9"', 'ffffff'],
      ['indexed="65"', 'ffffff'],
      ['indexed="8"', '000000'],
      ['theme="0" tint="-0.5"', '808080'],
      ['theme="1" tint="0.2"', '333333'],
      ['rgb="FFFFFFFF" tint="0"', 'ffffff'],
    ] as const)
      expect([color, fontOf(`<color ${color}/>`)]).toEqual([color, { colour }])
  })

  test('a font’s colour is unknown if it is a theme or palette colour other than black and white, or if its tint is not supported', () => {
    for (const color of [
      'theme="4"',
      'theme="4" tint="-0.5"',
      'theme="0" tint="0.5"',
      'theme="0" tint="-2"',
      'theme="0" tint="x"',
      'indexed="10"',
      'indexed="constructor"',
      'theme="constructor"',
    ])
      expect([color, fontOf(`<color ${color}/>`)]).toEqual([color, { colour: null }])
  })
})

describe('the service finds the background colour of a cell in a workbook, or treats it as unknown', () => {
  test('a cell’s background is the first colour of a solid pattern', () => {
    expect(
      groundOf('<patternFill patternType="solid"><fgColor rgb="FFFF0000"/></patternFill>'),
    ).toBe('ff0000')
    expect(
      groundOf('<patternFill><fgColor rgb="FFFF0000"/><bgColor rgb="FF00FF00"/></patternFill>'),
    ).toBe('ff0000')
    expect(groundOf('<fgColor rgb="FFFF0000"/><fgColor rgb="FF00FF00"/>')).toBe('ff0000')
  })

  test('a cell without a fill pattern has a white background, even if the fill names a pattern colour', () => {
    expect(
      groundOf('<patternFill patternType="none"><fgColor rgb="FF000000"/></patternFill>'),
    ).toBe('ffffff')
  })

  test('the fill of a cell states no background if its solid pattern has no foreground colour', () => {
    expect(
      groundOf('<patternFill patternType="solid"><bgColor rgb="FFFF0000"/></patternFill>'),
    ).toBeUndefined()
  })

  test('a cell’s background is unknown if the fill is a mixed pattern or a gradient', () => {
    const colour = '<fgColor rgb="FFFF0000"/>'
    expect(groundOf(`<patternFill patternType="gray125">${colour}</patternFill>`)).toBeNull()
    expect(groundOf(`<gradientFill>${colour}</gradientFill>`)).toBeNull()
  })
})

describe('the number of a cell is written as its number format shows it', () => {
  const shown = (value: number, format: string, is1904 = false) => shownValue(value, format, is1904)

  test('a number in a cell without a number format is written with at most 15 digits', () => {
    expect(shown(0.1 + 0.2, '')).toBe('0.3')
    expect(shown(1234.5, '#,##0.00')).toBe('1234.5')
    expect(shown(-7, 'General')).toBe('-7')
  })

  test('a cell with an infinite number has an empty text', () => {
    expect([shown(Number.NaN, ''), shown(Number.POSITIVE_INFINITY, '0%')]).toEqual(['', ''])
  })

  test('a number with a percentage format is written as a percentage, with the decimals of its format', () => {
    expect(shown(0.726, '0.0%')).toBe('72.6%')
    expect(shown(0.726, '0%')).toBe('73%')
    expect(shown(0.12345, '0.?#%')).toBe('12.35%')
    expect(shown(0.0123456789012345, `0.${'0'.repeat(13)}%`)).toBe('1.234567890123%')
  })

  test('a number in a cell is written as a date if its format shows days', () => {
    expect(shown(45_000, 'yyyy-mm-dd')).toBe('2023-03-15')
    expect(shown(45_000.75, 'D')).toBe('2023-03-15')
    expect(shown(45_000, 'mmm')).toBe('2023-03-15')
    expect(shown(45_000, 'mm')).toBe('45000')
  })

  test('a number in a cell is written as a time of day if its format shows times, with seconds unless they are zero', () => {
    expect(shown(0.4375, 'h:mm')).toBe('10:30')
    expect(shown(45_000.5 + 1 / 86_400, 'mm:ss')).toBe('12:00:01')
    expect(shown(0.5 - 1 / 864_000_000, 'h:mm:ss')).toBe('12:00')
  })

  test('a number in a cell is written as a duration if its format counts hours, minutes or seconds', () => {
    expect(shown(1.5, '[h]:mm:ss')).toBe('36:00')
    expect(shown(1.5 + 5 / 86_400, '[hh]:mm:ss')).toBe('36:00:05')
    expect(shown(41.25, '[H]:mm;@')).toBe('990:00')
    expect(shown(0.05, '[h]:mm')).toBe('1:12')
    expect(shown(0.0625, '[mm]:ss')).toBe('90:00')
    expect(shown(0.0625, '[s]')).toBe('5400')
    const [style] = stylesOf('<cellXfs><xf numFmtId="46"/></cellXfs>')
    expect(shown(1.5, style!.format)).toBe('36:00')
    expect(shown(-1.5, '[h]:mm')).toBe('-1.5')
    expect(shown(3_000_000, '[h]:mm')).toBe('3000000')
    expect(shown(1.5, '0 "[h]"')).toBe('1.5')
  })

  test('a number in a cell is written as a date and a time if its format shows both', () => {
    expect(shown(45_000.4375, 'd.m.yy h:mm')).toBe('2023-03-15 10:30')
  })

  test('a number that means a date counts days from 1899-12-30, or from 1904-01-01 if the workbook uses 1904 dates', () => {
    expect(shown(0, 'yyyy')).toBe('1899-12-30')
    expect(shown(0, 'yyyy', true)).toBe('1904-01-01')
    expect(shown(2_958_465, 'yyyy')).toBe('9999-12-31')
  })

  test('a number outside of the calendar’s range is not written as a date', () => {
    expect(shown(-1, 'yyyy')).toBe('-1')
    for (const day of [2_958_466, 2_958_467, 2_958_465.999_999_9])
      expect(shown(day, 'yyyy')).toBe(String(day))
    expect(shown(2_957_003, 'yyyy', true)).toBe('9999-12-31')
    expect(shown(2_957_004, 'yyyy', true)).toBe('2957004')
  })

  test('only the first section of a number format decides how a number is written, and its quoted words, escapes and colours are ignored', () => {
    for (const format of ['0 "days"', '\\d0', '[Red]0', '_d0', '*d0', '0;yyyy', '"h"0'])
      expect([format, shown(45_000, format)]).toEqual([format, '45000'])
    expect(shown(45_000, '"x"yyyy"%"')).toBe('2023-03-15')
  })
})
