/** Tests how the service turns the paragraphs, tables and links of a Word document into text. */
import { describe, expect, test } from 'bun:test'
import { strToU8, zipSync } from 'fflate'
import { readWord } from '../../../../../shared/mail/documents/office/wordText.ts'
import { ZipArchive } from '../../../../../shared/mail/documents/office/zipArchive.ts'

type Relation = [id: string, type: string, target: string, more?: string]
const relations = (list: Relation[]) =>
  `<Relationships>${list
    .map(
      ([id, type, target, more = '']) =>
        `<Relationship Id="${id}" Type="http://o.example/${type}" Target="${target}" ${more}/>`,
    )
    .join('')}</Relationships>`
const EXTERNAL = 'TargetMode="External"'
const URL = 'https://a.example/'

/** Reads a document that is given as the XML of its body, its styles and its other parts. */
function read(
  body: string,
  {
    styles = '',
    parts = {},
    links = [],
  }: { styles?: string; parts?: Record<string, string>; links?: Relation[] } = {},
) {
  const files = {
    'word/document.xml': `<w:document><w:body>${body}</w:body></w:document>`,
    'word/_rels/document.xml.rels': relations([['s', 'styles', 'styles.xml'], ...links]),
    'word/styles.xml': `<w:styles>${styles}</w:styles>`,
    ...parts,
  }
  const zip = Object.fromEntries(Object.entries(files).map(([name, xml]) => [name, strToU8(xml)]))
  return readWord(new ZipArchive(zipSync(zip)), 'word/document.xml')
}
/** Returns the extracted text, followed by the reasons for which words were left out. */
function seen(...given: Parameters<typeof read>): string[] {
  const { text, omitted } = read(...given)
  return [text, ...omitted]
}
const run = (text: string, properties = '') =>
  `<w:r><w:rPr>${properties}</w:rPr><w:t>${text}</w:t></w:r>`
const p = (content: string, properties = '') => `<w:p><w:pPr>${properties}</w:pPr>${content}</w:p>`
const cell = (content: string, properties = '') =>
  `<w:tc><w:tcPr>${properties}</w:tcPr>${p(content)}</w:tc>`
const row = (cells: string, properties = '') =>
  `<w:tr><w:trPr>${properties}</w:trPr>${cells}</w:tr>`
const WHITE = '<w:color w:val="FFFFFF"/>'

describe('the fill of letters in a Word document decides whether the letters can be seen', () => {
  const fill = (content: string) => `<w14:textFill>${content}</w14:textFill>`
  const solid = (colour: string, more = '') =>
    fill(`<w14:solidFill><w14:srgbClr w14:val="${colour}">${more}</w14:srgbClr></w14:solidFill>`)
  const alpha = (n: number) => `<w14:alpha w14:val="${n}"/>`

  test('the text of a Word document omits letters without a fill, with a transparent fill or with a white fill', () => {
    for (const properties of [
      fill('<w14:noFill/>'),
      solid('000000', alpha(100_000)),
      solid('000000', alpha(91_000)),
      `<w:color w:val="000000"/>${solid('FFFFFF')}`,
    ])
      expect([properties, seen(p(run('no', properties)))]).toEqual([
        properties,
        ['', 'invisible-text'],
      ])
  })

  test('the text of a Word document contains letters with a half transparent fill or without an outline', () => {
    for (const properties of [
      solid('000000', alpha(60_000)),
      solid('FF0000'),
      fill('<w14:solidFill><w14:schemeClr w14:val="tx1"/></w14:solidFill>'),
      '<w14:textOutline><w14:noFill/></w14:textOutline>',
    ])
      expect([properties, seen(p(run('a', properties)))]).toEqual([properties, ['a']])
  })

  test('the fill of letters in a Word document applies only to their own run of text', () => {
    expect(seen(p(run('no', fill('<w14:noFill/>')) + run('a')))).toEqual(['a', 'invisible-text'])
  })
})

describe('the text of a Word document has its paragraphs, headers, footers and notes', () => {
  test('a Word element with the name of a built-in JavaScript property is ignored', () => {
    const odd = '<w:constructor/><w:__proto__/><w:__defineGetter__></w:__defineGetter__>'
    expect(read(p(`${odd}${run('a')}`)).text).toBe('a')
  })

  test('the text of a Word document has a line for each paragraph', () => {
    expect(read(p(run('a') + run(' b')) + p(run('c'))).text).toBe('a b\nc')
  })

  test('the text of a Word document contains only the words inside text elements', () => {
    expect(read(`no<w:p>no<w:r><w:instrText>no</w:instrText><w:t>a</w:t>no</w:r></w:p>`).text).toBe(
      'a',
    )
  })

  test('tabs, line breaks and hyphens that are XML elements appear in the text of a Word document', () => {
    expect(
      read(
        p(
          '<w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t><w:cr/><w:t>d</w:t><w:noBreakHyphen/><w:t>e</w:t></w:r>',
        ),
      ).text,
    ).toBe('a\tb\nc\nd-e')
  })

  test('a tab stop (position for tabs) in a Word document adds no tab to the text', () => {
    expect(read(`${p(run('a'), '<w:tabs><w:tab w:val="left"/></w:tabs>')}<w:tab/>b`).text).toBe('a')
    expect(read(`<w:p><w:pPr/><w:r><w:tab/><w:t>a</w:t></w:r></w:p>`).text).toBe('\ta')
  })

  test('if a drawing in a Word document exists in two versions, the text contains only one version', () => {
    const choice = `<mc:Choice>${run('a')}</mc:Choice>`
    const fallback = `<mc:Fallback>${run('no')}<mc:Fallback>${run('no')}</mc:Fallback><w:br/></mc:Fallback>`
    expect(read(p(`${choice}${fallback}${run('b')}`)).text).toBe('ab')
    expect(read(p(run('a<mc:Fallback>no</mc:Fallback>'))).text).toBe('a')
  })

  test('the text of a Word document has headers first, and footers and notes last', () => {
    const links: Relation[] = [
      ['e', 'endnotes', 'e.xml'],
      ['n', 'footnotes', 'n.xml'],
      ['f', 'footer', 'f.xml'],
      ['h', 'header', 'h.xml'],
    ]
    const parts = Object.fromEntries(
      ['e', 'n', 'f', 'h'].map((name) => [`word/${name}.xml`, p(run(name))]),
    )
    expect(read(p(run('a')), { links, parts }).text).toBe('h\n\na\n\nf\n\nn\n\ne')
  })

  test('a Word document without its main part is reported as malformed', () => {
    const archive = new ZipArchive(zipSync({ a: strToU8('a') }))
    expect(() => readWord(archive, 'word/document.xml')).toThrow('malformed')
  })

  test('a Word document can be read even if it has no styles part', () => {
    const archive = new ZipArchive(zipSync({ 'a.xml': strToU8(p(run('a'))) }))
    expect(readWord(archive, 'a.xml').text).toBe('a')
  })

  test('if a comment of a Word document contains a letter, the result of the extraction states that comments were omitted', () => {
    const comment = (text: string) =>
      seen(p(run('a')), {
        links: [['c', 'comments', 'c.xml']],
        parts: { 'word/c.xml': `<w:comments><w:t>${text}</w:t></w:comments>` },
      })
    expect(comment('x')).toEqual(['a', 'comments'])
    expect(comment('1')).toEqual(['a'])
  })
})

describe('the text of a Word document keeps links that lead out of the document', () => {
  const link = (id: string, text: string) => `<w:hyperlink r:id="${id}">${run(text)}</w:hyperlink>`

  test('a link in a Word document is kept with its words if the link leads out of the document', () => {
    const links: Relation[] = [
      ['r1', 'hyperlink', URL, EXTERNAL],
      ['r2', 'hyperlink', 'https://b.example/'],
    ]
    const body = p(`${run('a')}${link('r1', 'b')}${run('c')}${link('r2', 'd')}${link('r9', 'e')}`)
    const { text, links: found } = read(body, { links })
    expect(text).toBe('abcde')
    expect(found).toEqual([{ href: URL, text: 'b' }])
  })

  test('the words of a link in a Word document do not include words that a person cannot see', () => {
    const body = p(`<w:hyperlink r:id="r1">${run('no', WHITE)}${run('a')}</w:hyperlink>`)
    expect(read(body, { links: [['r1', 'hyperlink', URL, EXTERNAL]] }).links[0]?.text).toBe('a')
  })

  test('a link in the footer of a Word document is looked up in the footer’s own list of link targets', () => {
    const { links } = read(p(link('r1', 'no')), {
      links: [['f', 'footer', 'f.xml']],
      parts: {
        'word/f.xml': p(link('r1', 'a')),
        'word/_rels/f.xml.rels': relations([['r1', 'hyperlink', URL, EXTERNAL]]),
      },
    })
    expect(links).toEqual([{ href: URL, text: 'a' }])
  })
})

describe('the text of a table in a Word document has rows as lines and tabs between the cells', () => {
  const table = (rows: string, properties = '') =>
    `<w:tbl><w:tblPr>${properties}</w:tblPr>${rows}</w:tbl>`

  test('the text of a table in a Word document has a line for each row, and a tab between cells', () => {
    const rows = row(cell(run('a')) + cell(`${run('b')}<w:tab/>${run('c')}`)) + row(cell(run('d')))
    expect(read(p(run('x')) + table(rows) + p(run('y'))).text).toBe('x\na\tb c\nd\n\ny')
  })

  test('if a table cell covers several columns, the text has an empty cell for each of these columns after the first', () => {
    const wide = (span: string) => read(table(row(cell(run('a'), span) + cell(run('b'))))).text
    expect(wide('<w:gridSpan w:val="3"/>')).toBe('a\t\t\tb')
    expect(wide('<w:gridSpan/>')).toBe('a\tb')
    const inner = table(row(cell(run('a'), '<w:gridSpan w:val="3"/>')))
    const outer = `<w:tc><w:tcPr><w:gridSpan w:val="2"/></w:tcPr>${inner}</w:tc>`
    expect(read(table(row(outer + cell(run('b'))))).text).toBe('a\t\tb')
    expect(
      read(table(row(cell(run('a')) + cell(run('b')))) + p('<w:gridSpan w:val="3"/>')).text,
    ).toBe('a\tb')
    expect(
      read(table(row(`<w:tc>${p(`<w:gridSpan w:val="3"/>${run('a')}`)}</w:tc>${cell(run('b'))}`)))
        .text,
    ).toBe('a\tb')
  })

  test('a hidden table row in a Word document is omitted from the text, and the result says so', () => {
    const rows = (hidden: string) => seen(table(row(cell(run('no')), hidden) + row(cell(run('a')))))
    expect(rows('<w:hidden/>')).toEqual(['a', 'hidden-cells'])
    expect(rows('<w:hidden w:val="0"/>')).toEqual(['no\na'])
    expect(rows('<w:other/>')).toEqual(['no\na'])
    expect(seen(table(row(cell(`<w:hidden/>${run('a')}`))))).toEqual(['a'])
  })

  test('a background colour of one table cell in a Word document applies only to this cell', () => {
    const dark = '<w:shd w:fill="000000"/>'
    expect(seen(table(row(cell(run('a', WHITE), dark))))).toEqual(['a'])
    expect(seen(table(row(cell(run('a'), dark) + cell(run('no', WHITE)))))).toEqual([
      'a',
      'invisible-text',
    ])
    expect(seen(table(row(cell(run('a'), dark))) + p(run('no', WHITE)))).toEqual([
      'a',
      'invisible-text',
    ])
    expect(seen(table(row(cell(run('no', '<w:color w:val="000000"/>'), dark))))).toEqual([
      '',
      'invisible-text',
    ])
  })

  test('the background of a table inside a cell of a Word document ends with that table, and the background of the outer cell ends with the cell', () => {
    const dark = '<w:shd w:fill="000000"/>'
    const inner = table(row(cell(run('in'), '<w:shd w:fill="FFFF00"/>')))
    const black = '<w:color w:val="000000"/>'
    const outer = (next: string) => table(row(cell(run('a', WHITE) + inner, dark) + cell(next)))
    expect(seen(outer(run('no', WHITE))).slice(1)).toEqual(['invisible-text'])
    expect(seen(outer(run('TOTAL', black)))[0]).toContain('TOTAL')
    const styles = '<w:style w:styleId="Dark"><w:shd w:fill="000000"/></w:style>'
    const styled = table(`<w:tblPr><w:tblStyle w:val="Dark"/></w:tblPr>${row(cell(run('b')))}`)
    expect(seen(table(row(cell(styled + p(run('no', WHITE))))), { styles }).slice(1)).toEqual([
      'invisible-text',
    ])
  })

  test('if the style of a Word table has a background colour, the background of its cells counts as unknown', () => {
    const styles =
      '<w:style w:styleId="Dark"><w:shd w:fill="000000"/></w:style><w:style w:styleId="Plain"><w:shd w:fill="auto"/></w:style>'
    const styled = (name: string) =>
      seen(table(row(cell(run('a', WHITE))), `<w:tblStyle w:val="${name}"/>`), { styles })
    expect(styled('Dark')).toEqual(['a'])
    expect(styled('Plain')).toEqual(['', 'invisible-text'])
    expect(styled('Other')).toEqual(['', 'invisible-text'])
    const after = table(row(cell(run('a'))), '<w:tblStyle w:val="Dark"/>') + p(run('no', WHITE))
    expect(seen(after, { styles })).toEqual(['a', 'invisible-text'])
    const inner = table(row(cell(run('b'))))
    const nested = row(`<w:tc>${inner}${p(run('a', WHITE))}</w:tc>`)
    expect(seen(table(nested, '<w:tblStyle w:val="Dark"/>'), { styles })).toEqual(['b a'])
  })

  test('a Word document with thirty nested tables is read, and so is the text after the tables', () => {
    let tables = p(run('deep'))
    for (let n = 0; n < 30; n++) tables = table(row(cell(tables)))
    expect(seen(tables + p(run('after')))[0]).toMatch(/deep[\s\S]*after/)
  })
})

describe('the extracted text of a Word document leaves out words that a person does not see', () => {
  const styled = (properties: string) => seen(p(run('a', properties)))

  test.each(['vanish', 'webHidden', 'specVanish'])(
    'the text of a Word document omits words with the property %s',
    (name) => {
      expect(styled(`<w:${name}/>`)).toEqual(['', 'hidden-text'])
      expect(styled(`<w:${name} w:val="false"/>`)).toEqual(['a'])
    },
  )

  test('the text of a Word document omits words smaller than three points', () => {
    expect(styled('<w:sz w:val="5"/>')).toEqual(['', 'tiny-text'])
    expect(styled('<w:sz w:val="6"/>')).toEqual(['a'])
  })

  test('the text of a Word document omits words in the colour of the page, or in the colour of a highlighter or a shading behind them', () => {
    expect(styled(WHITE)).toEqual(['', 'invisible-text'])
    expect(styled('<w:color w:val="auto"/>')).toEqual(['a'])
    expect(styled(`${WHITE}<w:highlight w:val="yellow"/>`)).toEqual(['a'])
    expect(styled(`${WHITE}<w:highlight w:val="white"/>`)).toEqual(['', 'invisible-text'])
    expect(styled(`${WHITE}<w:highlight w:val="none"/>`)).toEqual(['', 'invisible-text'])
    expect(styled(`${WHITE}<w:shd w:fill="000000"/>`)).toEqual(['a'])
    expect(styled(`${WHITE}<w:shd w:fill="FFFFFF"/>`)).toEqual(['', 'invisible-text'])
    expect(styled(`${WHITE}<w:shd w:fill="auto"/>`)).toEqual(['', 'invisible-text'])
    expect(styled(`${WHITE}<w:shd/>`)).toEqual(['', 'invisible-text'])
  })

  test('the properties that hide words in a Word document apply only to one run of text or one paragraph', () => {
    expect(seen(p(run('no', '<w:vanish/>') + run('a')))).toEqual(['a', 'hidden-text'])
    expect(seen(p(run('a', WHITE), '<w:shd w:fill="000000"/>'))).toEqual(['a'])
    expect(seen(p(run('a'), '<w:shd w:fill="000000"/>') + p(run('no', WHITE)))).toEqual([
      'a',
      'invisible-text',
    ])
    expect(seen(p(run('a'), '<w:rPr><w:vanish/></w:rPr>'))).toEqual(['a'])
    expect(seen(`<w:p><w:shd w:fill="000000"/>${run('a')}</w:p>`)).toEqual(['a'])
  })

  test('the text of a Word document omits words that were deleted or moved to another place', () => {
    expect(seen(p(`<w:del><w:r><w:delText>no</w:delText></w:r></w:del>${run('a')}`))).toEqual([
      'a',
      'deleted-text',
    ])
    expect(seen(p(`<w:moveFrom>${run('no')}</w:moveFrom>${run('a')}`))).toEqual([
      'a',
      'deleted-text',
    ])
    expect(seen(p(`<w:r><w:delText> </w:delText></w:r>`))).toEqual([''])
  })
})

describe('the styles of a Word document decide which words are hidden', () => {
  const style = (id: string, content: string, base = '') =>
    `<w:style w:styleId="${id}">${base === '' ? '' : `<w:basedOn w:val="${base}"/>`}${content}</w:style>`
  const hidden = '<w:rPr><w:vanish/></w:rPr>'

  test('a style in a Word document can hide the words of a paragraph or of a run of text', () => {
    const styles = style('H', hidden) + style('N', '<w:rPr><w:b/></w:rPr>')
    expect(seen(p(run('a'), '<w:pStyle w:val="H"/>'), { styles })).toEqual(['', 'hidden-text'])
    expect(seen(p(run('a', '<w:rStyle w:val="H"/>')), { styles })).toEqual(['', 'hidden-text'])
    expect(seen(p(run('a', '<w:pStyle w:val="H"/>'), '<w:rStyle w:val="H"/>'), { styles })).toEqual(
      ['a'],
    )
    expect(seen(p(run('a', '<w:rStyle w:val="N"/>'), '<w:pStyle w:val="X"/>'), { styles })).toEqual(
      ['a'],
    )
  })

  test('a style named Normal applies to each paragraph of a Word document', () => {
    expect(seen(p(run('a')), { styles: style('Normal', hidden) })).toEqual(['', 'hidden-text'])
  })

  test('a Word style inherits the properties of its base style, and may override them', () => {
    const styles =
      style('A', hidden) +
      style('B', '', 'A') +
      style('C', '<w:rPr><w:vanish w:val="0"/></w:rPr>', 'B')
    const styled = (name: string) => seen(p(run('a'), `<w:pStyle w:val="${name}"/>`), { styles })
    expect(styled('B')).toEqual(['', 'hidden-text'])
    expect(styled('C')).toEqual(['a'])
  })

  test('at most 20 base styles of a Word style are followed, so that styles that refer to each other in a circle do no harm', () => {
    const chain = (length: number) =>
      Array.from({ length }, (_, n) =>
        style(`s${n}`, n === length - 1 ? hidden : '', `s${n + 1}`),
      ).join('')
    const styled = (length: number) =>
      seen(p(run('a'), '<w:pStyle w:val="s0"/>'), { styles: chain(length) })
    expect(styled(20)).toEqual(['', 'hidden-text'])
    expect(styled(21)).toEqual(['a'])
    expect(seen(p(run('a'), '<w:pStyle w:val="o"/>'), { styles: style('o', '', 'o') })).toEqual([
      'a',
    ])
  })

  test('a Word style’s background colour counts anywhere in the style, but properties such as hidden text count only inside w:rPr', () => {
    const styles = style('W', `<w:pPr><w:shd w:fill="000000"/></w:pPr>`) + style('V', '<w:vanish/>')
    expect(seen(p(run('a', WHITE), '<w:pStyle w:val="W"/>'), { styles })).toEqual(['a'])
    expect(seen(p(run('a'), '<w:pStyle w:val="V"/>'), { styles })).toEqual(['a'])
    const after = style('R', '<w:rPr/><w:vanish/>')
    expect(seen(p(run('a'), '<w:pStyle w:val="R"/>'), { styles: after })).toEqual(['a'])
  })

  test('XML elements after the end of a Word style do not change the style', () => {
    const styles = `${style('A', '')}<w:rPr><w:vanish/></w:rPr>`
    expect(seen(p(run('a'), '<w:pStyle w:val="A"/>'), { styles })).toEqual(['a'])
  })
})

test('a Word document is read up to a million characters', () => {
  const { text, omitted } = read(p(run('x'.repeat(1_000_000))) + p(run('y')))
  expect(text).toBe('x'.repeat(1_000_000))
  expect([...omitted]).toEqual(['truncated'])
})

test('words inside a coloured shape of a Word document have an unknown background, and words after the shape have the page as background', () => {
  const fill = '<a:solidFill><a:srgbClr val="0000FF"/></a:solidFill>'
  const box = (properties: string, style = '') =>
    p(
      `<w:r><wps:wsp><wps:spPr>${properties}</wps:spPr><wps:style>${style}</wps:style><wps:txbx><w:txbxContent>${p(run('a', WHITE))}</w:txbxContent></wps:txbx></wps:wsp></w:r>`,
    )
  const styled = '<a:fillRef idx="1"><a:schemeClr val="accent1"/></a:fillRef>'
  expect(seen(box(fill))).toEqual(['a'])
  expect(seen(box('', styled))).toEqual(['a'])
  expect(seen(box('<a:ln><a:noFill/></a:ln>', styled))).toEqual(['a'])
  const unfilled = [
    ...[box(''), box(`<a:ln>${fill}</a:ln>`), box('<a:noFill/>', styled)],
    box(fill.replace('0000FF', 'FFFFFF')),
    box(`${fill.replace('0000FF', 'FFFFFF')}<a:prstGeom/>`),
    box('', styled.replace('1', '0')),
  ]
  for (const body of unfilled) expect(seen(body)).toEqual(['', 'invisible-text'])
  expect(seen(box(fill) + p(run('no', WHITE)))).toEqual(['a', 'invisible-text'])
})
