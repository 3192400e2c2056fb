/** Tests how the service turns the sheets of an Excel workbook into lines of text. */
import { describe, expect, test } from 'bun:test'
import { strToU8, zipSync } from 'fflate'
import { DocumentError } from '../../../../../shared/mail/documents/document.ts'
import { readSheets } from '../../../../../shared/mail/documents/office/sheetText.ts'
import { ZipArchive } from '../../../../../shared/mail/documents/office/zipArchive.ts'
import '../../../../support/long.ts'

const MAIN = 'xl/workbook.xml'
const relations = (list: [id: string, type: string, target: string, more?: string][]) =>
  `<Relationships>${list
    .map(
      ([id, type, target, more = '']) =>
        `<Relationship Id="${id}" Type="http://o.example/${type}" Target="${target}" ${more}/>`,
    )
    .join('')}</Relationships>`

type Parts = { strings?: string; styles?: string; own?: string; workbook?: string }

/** Reads a workbook with one sheet, which consists of the given XML. */
function read(sheet: string, { strings, styles, own, workbook = '' }: Parts = {}) {
  const files: Record<string, string> = {
    [MAIN]: `<workbook>${workbook}<sheets><sheet name="One" r:id="r1"/></sheets></workbook>`,
    'xl/_rels/workbook.xml.rels': relations([
      ['r1', 'worksheet', 'worksheets/sheet1.xml'],
      ['r2', 'sharedStrings', 'strings.xml'],
      ['r3', 'styles', 'styles.xml'],
    ]),
    'xl/worksheets/sheet1.xml': `<worksheet>${sheet}</worksheet>`,
    ...(strings === undefined ? {} : { 'xl/strings.xml': `<sst>${strings}</sst>` }),
    ...(styles === undefined ? {} : { 'xl/styles.xml': `<styleSheet>${styles}</styleSheet>` }),
    ...(own === undefined ? {} : { 'xl/worksheets/_rels/sheet1.xml.rels': own }),
  }
  return readFiles(files)
}
const readFiles = (files: Record<string, string>) =>
  readSheets(
    new ZipArchive(
      zipSync(
        Object.fromEntries(Object.entries(files).map(([name, text]) => [name, strToU8(text)])),
      ),
    ),
    MAIN,
  )
/** Returns the rows of the only sheet, without the line that has the sheet's name. */
const rowsOf = (sheet: string, parts: Parts = {}) => read(sheet, parts).text.split('\n').slice(1)
const row = (cells: string, attributes = '') => `<row ${attributes}>${cells}</row>`
const cell = (value: string, attributes = '') => `<c ${attributes}><v>${value}</v></c>`

/** Returns the reason of the error that a call throws. */
function reasonOf(call: () => unknown): string | null {
  try {
    call()
    return null
  } catch (error) {
    if (error instanceof DocumentError) return error.reason
    throw error
  }
}

describe('the text of an Excel sheet has a line for each row, and each cell in its column', () => {
  test('the text of an Excel sheet begins with the sheet’s name, and has a line for each row that has a value', () => {
    expect(read(row(cell('1') + cell('2')) + row('') + row(cell('3'))).text).toBe('One\n1\t2\n3')
  })

  test('a cell of a sheet belongs to the column that the cell names, or to the column after the previous cell', () => {
    expect(rowsOf(row(cell('1', 'r="B1"') + cell('2') + cell('3', 'r="E1"')))).toEqual([
      '\t1\t2\t\t3',
    ])
    expect(rowsOf(row(cell('1', 'r="1"') + cell('2', 'r="aa1"')))).toEqual(['1\t2'])
    const [line] = rowsOf(row(cell('1', 'r="AB12"')))
    expect(line).toBe(`${'\t'.repeat(27)}1`)
  })

  test('an empty cell of a sheet keeps its position in the row', () => {
    expect(rowsOf(row(`<c/>${cell('2')}`))).toEqual(['\t2'])
  })

  test('the text of a sheet shows the first thousand columns, and the result says whether there are more', () => {
    const last = read(row(cell('1', 'r="ALL1"')))
    expect(last.text).toEndWith('\t1')
    expect([...last.omitted]).toEqual([])
    const beyond = read(row(cell('1') + cell('2', 'r="ALM1"')))
    expect(beyond.text).toBe('One\n1')
    expect([...beyond.omitted]).toEqual(['truncated'])
  })

  test('a workbook can be read even if one of its sheets is missing in the archive', () => {
    const files = {
      [MAIN]: '<workbook><sheets><sheet r:id="r9"/><sheet name="Two  x"/></sheets></workbook>',
    }
    expect(readFiles(files).text).toBe('Two x')
  })
})

describe('the text of an Excel workbook has all visible sheets in order', () => {
  const two = (state: string) =>
    readFiles({
      [MAIN]: `<workbook><sheets><sheet name="One" r:id="r1" ${state}/><sheet name="Two" r:id="r2"/></sheets></workbook>`,
      'xl/_rels/workbook.xml.rels': relations([
        ['r1', 'worksheet', 'a.xml'],
        ['r2', 'worksheet', '/xl/b.xml'],
      ]),
      'xl/a.xml': row(cell('1')),
      'xl/b.xml': row(cell('2')),
    })

  test('the text of a workbook has its sheets in order, with an empty line between them', () => {
    expect(two('').text).toBe('One\n1\n\nTwo\n2')
    expect(two('state="visible"').text).toStartWith('One')
    expect([...two('').omitted]).toEqual([])
  })

  test('the text of a workbook omits a hidden sheet, and the result says so', () => {
    for (const state of ['hidden', 'veryHidden']) {
      const { text, omitted } = two(`state="${state}"`)
      expect([text, [...omitted]]).toEqual(['Two\n2', ['hidden-sheets']])
    }
  })

  test('a workbook without its main part is reported as malformed', () => {
    expect(reasonOf(() => readFiles({ a: '' }))).toBe('malformed')
  })

  test('a workbook with more than 500,000 cells is refused as too large', () => {
    const cells = (count: number) => () => read(row('<c/>'.repeat(count)))
    expect(reasonOf(cells(500_000))).toBeNull()
    expect(reasonOf(cells(500_001))).toBe('too_large')
  })

  test('a workbook’s dates count from 1904 if the workbook says so', () => {
    const styles = '<cellXfs><xf numFmtId="14"/></cellXfs>'
    const shown = (workbook: string) => rowsOf(row(cell('0')), { styles, workbook })
    expect(shown('<workbookPr date1904="1"/>')).toEqual(['1904-01-01'])
    expect(shown('<workbookPr date1904="0"/>')).toEqual(['1899-12-30'])
    expect(shown('<workbookPr/>')).toEqual(['1899-12-30'])
    expect(shown('<other date1904="1"/>')).toEqual(['1899-12-30'])
  })
})

describe('a cell of an Excel sheet is written as a person sees it', () => {
  test('a cell can show a text from the workbook’s list of texts (shared strings)', () => {
    const strings =
      '<si><t>no</t></si><si><r><t>a </t>no</r><x>!</x><r><t>b\n c</t></r><rPh><t>p</t><t>h</t></rPh><r><t>d</t></r></si>'
    expect(rowsOf(row(cell('1', 't="s"') + cell('0', 't="s"')), { strings })).toEqual([
      'a b cd\tno',
    ])
    expect(read(row(cell('7', 't="s"')), { strings }).text).toBe('One')
  })

  test('a cell of an Excel sheet can contain its text directly, without a reference to the workbook’s list of texts', () => {
    expect(rowsOf(row('<c t="inlineStr"><is><t>a</t></is><x>b</x></c>'))).toEqual(['a'])
    expect(rowsOf(row(cell('1.50', 't="str"')))).toEqual(['1.50'])
    expect(rowsOf(row('<c><f>A1+1</f><v>2</v></c>'))).toEqual(['2'])
    expect(rowsOf(row('<c><v>2</v>no</c><c t="inlineStr"><t>a</t>no</c>'))).toEqual(['2\ta'])
  })

  test('a cell with a true or false value shows TRUE or FALSE', () => {
    expect(rowsOf(row(cell('1', 't="b"') + cell('0', 't="b"')))).toEqual(['TRUE\tFALSE'])
  })

  test('a cell shows its number in the cell’s number format', () => {
    const styles = '<cellXfs><xf/><xf numFmtId="9"/></cellXfs>'
    const numbers = row(cell('0.5', 's="1"') + cell('0.50') + cell('0.5', 's="7"'))
    expect(rowsOf(numbers, { styles })).toEqual(['50%\t0.5\t0.5'])
    expect(read(row(cell('', 's="1"')), { styles }).text).toBe('One')
    expect(rowsOf(row(cell('0.50', 't="n"')))).toEqual(['0.5'])
  })
})

describe('the extracted text of a workbook leaves out values that a person does not see', () => {
  const seen = (sheet: string, parts: Parts = {}) => {
    const { text, omitted } = read(sheet, parts)
    return [text.slice(4), ...omitted]
  }

  test('the text of a workbook omits a value in a hidden column, or in a column with the width 0', () => {
    const cells = row(cell('1') + cell('2') + cell('3') + cell('4'))
    const columns = (attributes: string) => seen(`<cols><col ${attributes}/></cols>${cells}`)
    for (const hidden of ['hidden="1"', 'hidden="true"', 'width="0"', 'hidden="0" width="0.0"'])
      expect(columns(`min="2" max="3" ${hidden}`)).toEqual(['1\t\t\t4', 'hidden-cells'])
    for (const shown of ['', 'hidden="0"', 'width="9"', 'hidden="x"'])
      expect(columns(`min="2" max="3" ${shown}`)).toEqual(['1\t2\t3\t4'])
    expect(columns('max="1" hidden="1"')).toEqual(['\t2\t3\t4', 'hidden-cells'])
    expect(columns('min="1" hidden="1"')).toEqual(['1\t2\t3\t4'])
  })

  test('the text of a workbook omits a value in a hidden row, or in a row with the height 0', () => {
    for (const hidden of ['hidden="1"', 'hidden="true"', 'ht="0"'])
      expect(seen(row(cell('1'), hidden) + row(cell('2')))).toEqual(['2', 'hidden-cells'])
    expect(seen(row(cell('1'), 'ht="9" hidden="0"'))).toEqual(['1'])
    expect(seen(row('<c/>', 'hidden="1"'))).toEqual([''])
    expect(seen(row(cell('1')) + row('', 'hidden="1"'))).toEqual(['1'])
  })

  test('the text of a workbook omits a value if its number format shows nothing, or if the value has its background’s colour', () => {
    const styles =
      '<numFmts><numFmt numFmtId="164" formatCode=";;;"/></numFmts>' +
      '<fonts><font/><font><color rgb="FFFFFFFF"/></font><font><sz val="2"/></font></fonts>' +
      '<cellXfs><xf/><xf numFmtId="164"/><xf fontId="1"/><xf fontId="2"/></cellXfs>'
    const styled = (style: number) => seen(row(cell('1', `s="${style}"`)), { styles })
    expect(styled(0)).toEqual(['1'])
    expect(styled(1)).toEqual(['', 'hidden-text'])
    expect(styled(2)).toEqual(['', 'invisible-text'])
    expect(styled(3)).toEqual(['', 'tiny-text'])
  })

  test('the text of a workbook omits comments on cells', () => {
    for (const type of ['comments', 'threadedComment'])
      expect(seen(row(cell('1')), { own: relations([['r1', type, 'c.xml']]) })).toEqual([
        '1',
        'comments',
      ])
    expect(seen(row(cell('1')), { own: relations([['r1', 'drawing', 'd.xml']]) })).toEqual(['1'])
  })
})

test('the links of a sheet are its hyperlinks to addresses outside of the workbook', () => {
  const url = 'https://a.example/'
  const own = relations([
    ['r1', 'hyperlink', url, 'TargetMode="External"'],
    ['r2', 'hyperlink', 'https://b.example/'],
    ['r3', 'image', 'https://c.example/', 'TargetMode="External"'],
  ])
  expect(read(row(cell('1')), { own }).links).toEqual([{ href: url, text: '' }])
})

test('a workbook is read up to a million characters of text', () => {
  const strings = `<si><t>${'x'.repeat(600_000)}</t></si>`
  const { text, omitted } = read(row(cell('0', 't="s"')) + row(cell('0', 't="s"')), { strings })
  expect(text).toHaveLength(1_000_000)
  expect([...omitted]).toEqual(['truncated'])
})

test('a workbook is refused as too large if its list of texts has more than 16,000,000 characters', () => {
  const strings = (more: number) => () =>
    read('', {
      strings: `<si><t>${'x'.repeat(8_000_000)}</t></si><si><t>${'x'.repeat(8_000_000 + more)}</t></si>`,
    })
  expect(reasonOf(strings(0))).toBeNull()
  expect(reasonOf(strings(1))).toBe('too_large')
})
