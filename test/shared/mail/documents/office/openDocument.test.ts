/** Tests how the service turns the texts, sheets and slides of OpenDocument files into text. */
import { describe, expect, test } from 'bun:test'
import { strToU8, zipSync } from 'fflate'
import { DocumentError } from '../../../../../shared/mail/documents/document.ts'
import { readOpenDocument } from '../../../../../shared/mail/documents/office/openDocument.ts'
import { ZipArchive } from '../../../../../shared/mail/documents/office/zipArchive.ts'

type Kind = Parameters<typeof readOpenDocument>[1]

const readFiles = (kind: Kind, files: Record<string, string>) =>
  readOpenDocument(
    new ZipArchive(
      zipSync(
        Object.fromEntries(Object.entries(files).map(([name, xml]) => [name, strToU8(xml)])),
        { level: 0 },
      ),
    ),
    kind,
  )

/** Reads a document that is built from the given XML of its body and its styles. */
const read = (kind: Kind, body: string, styles = '') =>
  readFiles(kind, {
    'content.xml': `<office:document-content><office:automatic-styles>${styles}</office:automatic-styles><office:body>${body}</office:body></office:document-content>`,
  })
/** Returns the extracted text, and the reasons for which words were left out. */
function seen(...given: Parameters<typeof read>): string[] {
  const { text, omitted } = read(...given)
  return [text, ...omitted]
}
const p = (content: string, style = '') => `<text:p text:style-name="${style}">${content}</text:p>`
const span = (content: string, style: string) =>
  `<text:span text:style-name="${style}">${content}</text:span>`
const cell = (content: string, attributes = '') =>
  `<table:table-cell ${attributes}>${content === '' ? '' : p(content)}</table:table-cell>`
const row = (cells: string, attributes = '') =>
  `<table:table-row ${attributes}>${cells}</table:table-row>`
const table = (rows: string, attributes = '') => `<table:table ${attributes}>${rows}</table:table>`
const repeated = (count: number | string) => `table:number-columns-repeated="${count}"`
const style = (name: string, properties: string) =>
  `<style:style style:name="${name}">${properties}</style:style>`
const WHITE = style('white', '<style:text-properties fo:color="#ffffff"/>')
const DARK = style('dark', '<style:paragraph-properties fo:background-color="#000000"/>')

describe('the text of an OpenDocument file has its paragraphs, links and footnotes', () => {
  test('the text of an OpenDocument file has a line for each paragraph and heading', () => {
    expect(read('odt', `no<text:h>a</text:h>no${p('b')}no`).text).toBe('a\nb')
  })

  test('in an OpenDocument text, white space becomes one blank, but elements for blanks, tabs and line breaks become these characters', () => {
    expect(
      read('odt', p('a \n b<text:s/>c<text:s text:c="3"/>d<text:tab/>e<text:line-break/>f')).text,
    ).toBe('a b c   d\te\nf')
  })

  test('the OpenDocument element for repeated blanks gives at most 100 blanks', () => {
    const blanks = (count: string) =>
      read('odt', p(`a<text:s text:c="${count}"/>b`)).text.length - 2
    expect([blanks('100'), blanks('101'), blanks('0'), blanks('-3')]).toEqual([100, 100, 1, 1])
    expect([blanks('x'), blanks('1.5')]).toEqual([1, 1])
  })

  test('the text of an OpenDocument file keeps links that lead to other documents', () => {
    const { text, links } = read(
      'odt',
      p('<text:a xlink:href="https://a.example/">a</text:a><text:a>b</text:a>'),
    )
    expect(text).toBe('ab')
    expect(links).toEqual([{ href: 'https://a.example/', text: '' }])
  })

  test('the text of an OpenDocument file has each footnote in brackets inside its sentence', () => {
    const note = `<text:note><text:note-citation>1</text:note-citation><text:note-body>${p('b')}${p('c')}</text:note-body></text:note>`
    expect(read('odt', p(`a${note}d`) + p('e')).text).toBe('a [bc]d\ne')
  })

  test('the text of an OpenDocument file omits titles, descriptions and scripts, and the result does not report this', () => {
    for (const name of ['svg:title', 'svg:desc', 'office:scripts', 'office:settings'])
      expect(seen('odt', p(`a<${name}>no<${name}>no</${name}>no</${name}>b`))).toEqual(['ab'])
  })

  test('the result of an extraction states which parts of an OpenDocument file were omitted', () => {
    for (const [name, why] of [
      ['office:annotation', 'comments'],
      ['text:tracked-changes', 'deleted-text'],
      ['presentation:notes', 'speaker-notes'],
      ['office:forms', 'hidden-text'],
      ['text:hidden-text', 'hidden-text'],
      ['text:hidden-paragraph', 'hidden-text'],
    ] as const) {
      expect(seen('odt', p(`a<${name}>no<${name}>no</${name}>no</${name}>b`))).toEqual(['ab', why])
      expect(seen('odt', p(`a<${name}> </${name}>b`))).toEqual(['ab'])
    }
  })

  test('the text of an OpenDocument file omits a hidden section', () => {
    const section = (display: string) =>
      seen('odt', `<text:section ${display}>${p('b')}</text:section>${p('a')}`)
    expect(section('text:display="none"')).toEqual(['a', 'hidden-text'])
    expect(section('text:display="true"')).toEqual(['b\na'])
    expect(section('')).toEqual(['b\na'])
    expect(seen('odt', `<text:p text:display="none">a</text:p>`)).toEqual(['a'])
  })

  test('headers and footers are read from the styles of an OpenDocument text file, but not of slides or sheets', () => {
    const files = {
      'styles.xml': `<office:styles>${p('no')}</office:styles><office:master-styles><style:header>${p('h')}</style:header></office:master-styles>`,
      'content.xml': `<office:body>${p('a')}</office:body>`,
    }
    expect(readFiles('odt', files).text).toBe('h\na')
    expect(readFiles('odp', files).text).toBe('a')
  })

  test('an OpenDocument text is read up to a million characters', () => {
    const { text, omitted } = read('odt', p('x'.repeat(999_999)) + p('y'))
    expect(text).toBe('x'.repeat(999_999))
    expect([...omitted]).toEqual(['truncated'])
    expect([...read('odt', p('x'.repeat(999_999))).omitted]).toEqual([])
  })
})

describe('an OpenDocument file that cannot be read is refused with the reason', () => {
  const reason = (files: Record<string, string>) => {
    try {
      return readFiles('odt', files).text
    } catch (error) {
      if (error instanceof DocumentError) return error.reason
      throw error
    }
  }

  test('an OpenDocument file with a password is reported as encrypted', () => {
    const manifest = (name: string) =>
      reason({
        'META-INF/manifest.xml': `<m><${name}/></m>`,
        'content.xml': `<body>${p('a')}</body>`,
      })
    expect(manifest('manifest:encryption-data')).toBe('encrypted')
    expect(manifest('manifest:file-entry')).toBe('a')
  })

  test('an OpenDocument file without its content is reported as malformed', () => {
    expect(reason({ 'styles.xml': '<a/>' })).toBe('malformed')
  })
})

describe('the extracted text of an OpenDocument file leaves out words that a person does not see', () => {
  test('words in the colour of their background are omitted from the extracted text', () => {
    const styles = WHITE + DARK
    expect(seen('odt', p(`a${span('no', 'white')}b`), styles)).toEqual(['ab', 'invisible-text'])
    expect(seen('odt', p('no', 'white') + p('a'), styles)).toEqual(['a', 'invisible-text'])
    expect(seen('odt', p(span('a', 'white'), 'dark'), styles)).toEqual(['a'])
    expect(seen('odt', p(`<text:a>b</text:a>${span('a', 'white')}`, 'dark'), styles)).toEqual([
      'ba',
    ])
    expect(seen('odt', p(span('a', 'dark') + span('no', 'white')), styles)).toEqual([
      'a',
      'invisible-text',
    ])
  })

  test('if words are omitted because of their colour, the extracted text still has their line break', () => {
    expect(read('odt', p('a') + p('no', 'white') + p('b'), WHITE).text).toBe('a\n\nb')
  })

  test.each(['frame', 'custom-shape', 'rect', 'text-box'])(
    'words are omitted if they have the same colour as the %s around them',
    (name) => {
      const drawn = `<draw:${name} draw:style-name="dark">${p(span('a', 'white'))}</draw:${name}>${p(span('no', 'white'))}`
      expect(seen('odt', drawn, WHITE + DARK)).toEqual(['a', 'invisible-text'])
    },
  )
})

describe('the text of a table in an OpenDocument file has rows as lines and tabs between the cells', () => {
  test('the text of a table in an OpenDocument file has a line for each row, and a tab between cells', () => {
    const rows = row(cell('a') + cell('b<text:tab/>c')) + row(cell('d'))
    expect(read('odt', p('x') + table(rows) + p('y')).text).toBe('x\na\tb c\nd\n\ny')
  })

  test('if a cell of an OpenDocument table is repeated, the text contains it at most 200 times', () => {
    const count = (n: number) =>
      read('odt', table(row(cell('a', repeated(n))))).text.split('\t').length
    expect([count(2), count(200), count(201)]).toEqual([2, 200, 200])
    const covered = `${cell('a')}<table:covered-table-cell ${repeated(2)}/>${cell('b')}`
    expect(read('odt', table(row(covered))).text).toBe('a\t\t\tb')
  })

  test('a background colour of one table cell applies only to this cell', () => {
    const cells = cell('a', 'table:style-name="dark"') + cell(span('no', 'white'))
    expect(seen('odt', table(row(cells)), WHITE + DARK)).toEqual(['a', 'invisible-text'])
    const covered = `<table:covered-table-cell table:style-name="dark">${p(span('a', 'white'))}</table:covered-table-cell>`
    expect(seen('odt', table(row(covered + cell(span('no', 'white')))), WHITE + DARK)).toEqual([
      'a',
      'invisible-text',
    ])
  })

  test('the text of an OpenDocument table omits hidden rows', () => {
    const hidden = (visibility: string) =>
      seen('odt', table(row(cell('no'), `table:visibility="${visibility}"`) + row(cell('a'))))
    expect(hidden('collapse')).toEqual(['a', 'hidden-cells'])
    expect(hidden('filter')).toEqual(['a', 'hidden-cells'])
    expect(hidden('visible')).toEqual(['no\na'])
    expect(seen('odt', table(row(cell('a', 'table:visibility="collapse"'))))).toEqual(['a'])
  })
})

describe('the text of an OpenDocument sheet begins with the name of the sheet, and has a line for each row', () => {
  const sheet = (rows: string) => read('ods', table(rows, 'table:name="One"')).text.slice(4)
  const column = (attributes: string) => `<table:table-column ${attributes}/>`

  test('the text of an OpenDocument sheet begins with the sheet’s name, and has a line for each row with a value', () => {
    const first = table(
      row(cell('1') + cell('') + cell('2')) + row(cell('')) + row(cell('3')),
      'table:name="One"',
    )
    expect(read('ods', first + table(row(cell('4')))).text).toBe('One\n1\t\t2\n3\n\n\n4')
  })

  test('the text of an OpenDocument sheet has each cell on one line', () => {
    const two = `<table:table-cell>${p(' a<text:tab/>b<text:line-break/>')}${p('c')}</table:table-cell>`
    expect(sheet(row(two + cell('d')))).toBe('a b c\td')
  })

  test('a repeated cell with words appears at most 200 times in the text, and the next cell keeps its column', () => {
    const count = (n: number) => sheet(row(cell('a', repeated(n)))).split('\t').length
    expect([count(1), count(200), count(201)]).toEqual([1, 200, 200])
    const cells = (n: number) => sheet(row(cell('', repeated(n)) + cell('a'))).length
    expect([cells(3), cells(999)]).toEqual([4, 1_000])
    expect(cells(1_000)).toBe(0)
    const covered = `<table:covered-table-cell ${repeated(2)}/>`
    expect(sheet(row(covered + cell('a')))).toBe('\t\ta')
  })

  test('a repeated row with words appears at most 200 times in the text, and a repeated empty row does not appear', () => {
    const rows = (count: number, content: string) =>
      sheet(row(cell(content), `table:number-rows-repeated="${count}"`) + row(cell('z'))).split(
        '\n',
      )
    expect(rows(2, 'a')).toEqual(['a', 'a', 'z'])
    expect([rows(200, 'a').length, rows(201, 'a').length]).toEqual([201, 201])
    expect(rows(1_000_000, '')).toEqual(['z'])
  })

  test('the text of an OpenDocument sheet omits hidden columns', () => {
    const hidden = (columns: string) =>
      seen('ods', table(columns + row(cell('1') + cell('2') + cell('3') + cell('4'))))
    const gone = 'table:visibility="collapse"'
    expect(hidden(column('') + column(`${gone} ${repeated(2)}`))).toEqual([
      '1\t\t\t4',
      'hidden-cells',
    ])
    expect(hidden(column(repeated(3)) + column(`${gone} ${repeated(99_999)}`))).toEqual([
      '1\t2\t3',
      'hidden-cells',
    ])
    expect(hidden(column('table:visibility="visible"'))).toEqual(['1\t2\t3\t4'])
    expect(seen('ods', table(column(`${gone}`) + row(cell('a', repeated(2)))))).toEqual([
      '\ta',
      'hidden-cells',
    ])
    const next = table(column(gone)) + table(row(cell('a')))
    expect(seen('ods', next)).toEqual(['a'])
    expect(seen('ods', table(column(`${gone}`) + row(cell('') + cell('a'))))).toEqual(['\ta'])
  })

  test('the text of an OpenDocument file omits hidden rows and hidden sheets', () => {
    const rows = row(cell('no'), 'table:visibility="filter"') + row(cell('a'))
    expect(seen('ods', table(rows))).toEqual(['a', 'hidden-cells'])
    const styles = style('gone', '<style:table-properties table:display="false"/>')
    const sheets = table(row(cell('no')), 'table:style-name="gone"') + table(row(cell('a')))
    expect(seen('ods', sheets, styles)).toEqual(['a', 'hidden-sheets'])
    expect(seen('ods', table(row(cell('a', 'table:style-name="gone"'))), styles)).toEqual(['a'])
  })

  test('a background colour of one sheet cell applies only to this cell', () => {
    const white = (first: string) =>
      seen('ods', table(row(first + cell(span('no', 'white')))), WHITE + DARK)
    expect(
      white(
        `<table:table-cell table:style-name="dark">${p(span('a', 'white'))}</table:table-cell>`,
      ),
    ).toEqual(['a', 'invisible-text'])
    expect(
      white(
        `<table:covered-table-cell table:style-name="dark">${p(span('a', 'white'))}</table:covered-table-cell>`,
      ),
    ).toEqual(['a', 'invisible-text'])
  })
})

describe('the text of an OpenDocument presentation has the number and the words of each slide', () => {
  const page = (content: string, attributes = '') =>
    `<draw:page ${attributes}>${content}</draw:page>`
  const frame = (content: string, place = '') => `<draw:frame ${place}>${p(content)}</draw:frame>`

  test('the text of a slide begins with the slide’s number, and hidden slides are counted too', () => {
    const styles = style(
      'gone',
      '<style:drawing-page-properties presentation:visibility="hidden"/>',
    )
    expect(read('odp', page(frame('a')) + page(frame('b'))).text).toBe('Slide 1\na\n\nSlide 2\nb')
    const pages = page(frame('no'), 'draw:style-name="gone"') + page(frame('a'))
    expect(seen('odp', pages, styles)).toEqual(['Slide 2\na', 'hidden-slides'])
    expect(
      seen('odp', page(`<draw:frame draw:style-name="gone">${p('a')}</draw:frame>`), styles),
    ).toEqual(['Slide 1\na'])
  })

  test('a slide’s own background colour applies only to this slide', () => {
    const styles = `${WHITE}${style('night', '<style:drawing-page-properties draw:fill="solid" draw:fill-color="#000000"/>')}`
    const pages =
      page(frame(span('a', 'white')), 'draw:style-name="night"') + page(frame(span('no', 'white')))
    expect(seen('odp', pages, styles)).toEqual(['Slide 1\na\n\nSlide 2', 'invisible-text'])
  })

  test('the text of a table on a slide has tabs between the cells', () => {
    expect(read('odp', page(table(row(cell('a') + cell('b'))))).text).toBe('Slide 1\na\tb')
  })

  test('the text of a slide omits shapes that are outside of the page', () => {
    const size = '<style:page-layout-properties fo:page-width="100pt" fo:page-height="50pt"/>'
    const at = (x: number, y: number, more = '') =>
      seen('odp', page(frame('a', `svg:x="${x}pt" svg:y="${y}pt" ${more}`)), size).slice(1)
    const box = 'svg:width="10pt" svg:height="10pt"'
    for (const [x, y] of [
      [99, 49],
      [0, 0],
      [-10, 0],
      [0, -10],
    ] as const)
      expect([x, y, ...at(x, y, box)]).toEqual([x, y])
    for (const [x, y] of [
      [100, 0],
      [0, 50],
      [-11, 0],
      [0, -11],
    ] as const)
      expect([x, y, ...at(x, y, box)]).toEqual([x, y, 'off-page-text'])
    expect(at(-1, 0)).toEqual(['off-page-text'])
    expect(at(0, -1)).toEqual(['off-page-text'])
    expect(seen('odp', page(frame('a', 'svg:x="200pt"')), size)).toHaveLength(1)
    expect(seen('odp', page(frame('a', 'svg:y="200pt"')), size)).toHaveLength(1)
    expect(seen('odt', frame('a', 'svg:x="200pt" svg:y="0pt"'), size)).toEqual(['a'])
    expect(seen('odp', page(`<text:p svg:x="200pt" svg:y="0pt">a</text:p>`), size)).toHaveLength(1)
  })
})

test('an element with the name of a built-in JavaScript property is read like any unknown element', () => {
  expect(seen('odt', p('a<x:constructor>b</x:constructor><x:__proto__/>c'))).toEqual(['abc'])
})
