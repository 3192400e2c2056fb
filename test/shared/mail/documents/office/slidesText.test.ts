/** Tests how the service turns the shapes and tables of PowerPoint slides into text. */
import { describe, expect, test } from 'bun:test'
import { strToU8, zipSync } from 'fflate'
import { readSlides } from '../../../../../shared/mail/documents/office/slidesText.ts'
import { ZipArchive } from '../../../../../shared/mail/documents/office/zipArchive.ts'

type Relation = [id: string, type: string, target: string, more?: string]
const relations = (list: Relation[]) =>
  `<Relationships>${list
    .map(
      ([id, type, target, more = '']) =>
        `<Relationship Id="${id}" Type="http://o.example/${type}" Target="${target}" ${more}/>`,
    )
    .join('')}</Relationships>`
const MAIN = 'ppt/presentation.xml'
const SIZE = '<p:sldSz cx="1000" cy="500"/>'
const WHITE = '<a:srgbClr val="FFFFFF"/>'
const BLACK = '<a:srgbClr val="000000"/>'

const readFiles = (files: Record<string, string>) =>
  readSlides(
    new ZipArchive(
      zipSync(
        Object.fromEntries(Object.entries(files).map(([name, xml]) => [name, strToU8(xml)])),
        { level: 0 },
      ),
    ),
    MAIN,
  )

/** Reads slides that are given as the XML of their shapes, or as the whole XML of a slide. */
function read(slides: string[], parts: Record<string, string> = {}, size = SIZE) {
  const ids = slides.map((_, n) => `<p:sldId r:id="r${n}"/>`).join('')
  return readFiles({
    [MAIN]: `<p:presentation>${size}<p:sldIdLst>${ids}</p:sldIdLst></p:presentation>`,
    'ppt/_rels/presentation.xml.rels': relations(
      slides.map((_, n) => [`r${n}`, 'slide', `slides/s${n}.xml`]),
    ),
    ...Object.fromEntries(
      slides.map((xml, n) => [
        `ppt/slides/s${n}.xml`,
        xml.startsWith('<p:sld') ? xml : `<p:sld><p:spTree>${xml}</p:spTree></p:sld>`,
      ]),
    ),
    ...parts,
  })
}
/** Returns the words of the only slide, and the reasons for which other words were left out. */
function seen(slide: string, parts: Record<string, string> = {}, size = SIZE): string[] {
  const { text, omitted } = read([slide], parts, size)
  return [text.replace(/^Slide 1\n?/, ''), ...omitted]
}
const run = (text: string, colour = '', attributes = '') =>
  `<a:r><a:rPr ${attributes}>${colour}</a:rPr><a:t>${text}</a:t></a:r>`
const p = (content: string) => `<a:p>${content}</a:p>`
const place = (x: number, y: number, width: number, height: number) =>
  `<a:xfrm><a:off x="${x}" y="${y}"/><a:ext cx="${width}" cy="${height}"/></a:xfrm>`
const shape = (content: string, properties = '', own = '') =>
  `<p:sp><p:nvSpPr><p:cNvPr ${own}/></p:nvSpPr><p:spPr>${properties}</p:spPr><p:txBody>${content}</p:txBody></p:sp>`
const HERE = place(100, 100, 200, 100)

describe('the text of a PowerPoint presentation has all visible slides in order', () => {
  test('the text of a presentation has its slides in order, each with its number', () => {
    expect(read([shape(p(run('a'))), shape(p(run('b')))]).text).toBe('Slide 1\na\n\nSlide 2\nb')
  })

  test('the text of a presentation omits a hidden slide, but counts it in the numbers of later slides', () => {
    for (const value of ['0', 'false']) {
      const hidden = `<p:sld show="${value}"><p:spTree>${shape(p(run('no')))}</p:spTree></p:sld>`
      const { text, omitted } = read([hidden, shape(p(run('a')))])
      expect([text, ...omitted]).toEqual(['Slide 2\na', 'hidden-slides'])
    }
    expect(seen(`<p:sld show="1"><x show="0"/>${shape(p(run('a')))}</p:sld>`)).toEqual(['a'])
  })

  test('a presentation is read up to a thousand slides', () => {
    const numbered = (count: number) => {
      const { text, omitted } = read(Array(count).fill(shape('')))
      return [text.split('\n').at(-1), ...omitted]
    }
    expect(numbered(1_000)).toEqual(['Slide 1000'])
    expect(numbered(1_001)).toEqual(['Slide 1000', 'truncated'])
  })

  test('a presentation is read up to a million characters', () => {
    const slides = (chars: number) => {
      const { text, omitted } = read([shape(p(run('x'.repeat(chars)))), '<p:sld show="0"></p:sld>'])
      return [text.length, ...omitted]
    }
    expect(slides(999_989)).toEqual([999_997, 'hidden-slides'])
    expect(slides(999_990)).toEqual([999_998, 'hidden-slides'])
    expect(slides(999_991)).toEqual([999_999, 'truncated'])
    expect(read([shape(p(run('x'.repeat(999_992))) + p(run('y')))]).text).toEndWith('x')
  })

  test('a presentation without its main part is malformed, but a presentation with a missing slide can be read', () => {
    expect(() => readFiles({ a: '' })).toThrow('malformed')
    expect(readFiles({ [MAIN]: '<p:sldId r:id="r9"/><p:sldId/>' }).text).toBe('Slide 1\n\nSlide 2')
  })

  test('the result of the extraction states that comments were omitted, and also speaker notes if they contain a letter', () => {
    const own = (type: string) => ({
      'ppt/slides/_rels/s0.xml.rels': relations([['r1', type, '../n.xml']]),
    })
    const notes = (text: string) =>
      seen(shape(p(run('a'))), { ...own('notesSlide'), 'ppt/n.xml': `<a:t>${text}</a:t>` })
    expect(notes('x')).toEqual(['a', 'speaker-notes'])
    expect(notes('1')).toEqual(['a'])
    expect(seen(shape(p(run('a'))), own('comments'))).toEqual(['a', 'comments'])
    expect(seen(shape(p(run('a'))), own('image'))).toEqual(['a'])
  })

  test('the text of a presentation keeps links that lead out of the presentation', () => {
    const click = (id: string) => run(`to ${id}`, `<a:hlinkClick r:id="${id}"/>`)
    const { text, links } = read([shape(p(click('r1') + click('r2') + click('r9')))], {
      'ppt/slides/_rels/s0.xml.rels': relations([
        ['r1', 'hyperlink', 'https://a.example/', 'TargetMode="External"'],
        ['r2', 'slide', 'https://b.example/'],
      ]),
    })
    expect(text).toBe('Slide 1\nto r1to r2to r9')
    expect(links).toEqual([{ href: 'https://a.example/', text: '' }])
  })
})

describe('the text of a slide has its paragraphs and tables as lines', () => {
  test('the text of a slide has a line for each paragraph and each line break', () => {
    expect(seen(shape(p(`${run('a')}<a:br/>${run('b')}`) + p(run('c'))))).toEqual(['a\nb\nc'])
  })

  test('the text of a slide contains only the words inside text elements', () => {
    expect(seen(shape(p('no<a:r>no<a:t>a</a:t>no</a:r><a:fld><a:t>b</a:t></a:fld>')))).toEqual([
      'ab',
    ])
  })

  test('if a shape exists in two versions, the text of a slide contains one version', () => {
    const both = `<mc:Choice>${shape(p(run('a')))}</mc:Choice><mc:Fallback>${shape(p(run('no')))}<mc:Fallback>${shape(p('<a:br/>'))}</mc:Fallback>${shape(p(run('no')))}</mc:Fallback>`
    expect(seen(both + shape(p(run('b'))))).toEqual(['a\nb'])
    expect(seen(shape(p(run('a<mc:Fallback>no</mc:Fallback>b'))))).toEqual(['ab'])
  })

  test('the text of a slide has a line for each row of a table, and a tab between cells', () => {
    const cell = (text: string, attributes = '') => `<a:tc ${attributes}>${p(run(text))}</a:tc>`
    const row = (cells: string) => `<a:tr>${cells}</a:tr>`
    const table = (rows: string) => `<p:graphicFrame><a:tbl>${rows}</a:tbl></p:graphicFrame>`
    expect(seen(table(row(cell('a') + cell('b')) + row(cell('c'))))).toEqual(['a\tb\nc'])
    const merged = cell('a', 'gridSpan="2"') + cell('', 'hMerge="1"') + cell('b')
    expect(seen(table(row(merged)))).toEqual(['a\t\tb'])
    expect(seen(table(row(`<a:tc>${p(run('a', WHITE))}</a:tc>`)))).toEqual(['a'])
    expect(seen(table(row(cell('a'))) + shape(p(run('no', WHITE))))).toEqual([
      'a',
      'invisible-text',
    ])
  })
})

describe('the text of a slide leaves out words that a person does not see', () => {
  test('the text of a slide omits words in a hidden shape', () => {
    expect(seen(shape(p(run('no')), '', 'hidden="1"') + shape(p(run('a'))))).toEqual([
      '\na',
      'hidden-text',
    ])
    expect(seen(shape(p(run('a')), '', 'hidden="0"'))).toEqual(['a'])
    expect(seen(`<p:cNvPr hidden="1"/>${shape(p(run('a')))}`)).toEqual(['a'])
  })

  test('the text of a slide omits words smaller than three points', () => {
    const sized = (sz: number) => seen(shape(p(run('a', '', `sz="${sz}"`))))
    expect(sized(299)).toEqual(['', 'tiny-text'])
    expect(sized(300)).toEqual(['a'])
    expect(seen(shape(p(`${run('no', '', 'sz="100"')}<a:r><a:t>a</a:t></a:r>`)))).toEqual([
      'a',
      'tiny-text',
    ])
    expect(seen(shape(p(`${run('no', '', 'sz="100"')}<a:fld><a:t>a</a:t></a:fld>`)))[0]).toBe('a')
  })

  test.each([
    [place(1_000, 0, 10, 10), place(999, 0, 10, 10)],
    [place(0, 500, 10, 10), place(0, 499, 10, 10)],
    [place(-10, 0, 10, 10), place(-9, 0, 10, 10)],
    [place(0, -10, 10, 10), place(0, -9, 10, 10)],
  ])('words count as outside of the slide at the position %s, and not at %s', (off, on) => {
    expect(seen(shape(p(run('no')), off))).toEqual(['', 'off-page-text'])
    expect(seen(shape(p(run('a')), on))).toEqual(['a'])
    expect(seen(`<p:grpSp>${shape(p(run('a')), off)}</p:grpSp>`)).toEqual(['a'])
    expect(seen(`<p:grpSp/>${shape(p(run('no')), off)}`)).toEqual(['', 'off-page-text'])
  })

  test('if the page size is unknown, no words count as outside of the page', () => {
    expect(seen(shape(p(run('a')), place(9_999, 9_999, 9, 9)), {}, '')).toEqual(['a'])
  })

  test('words count as outside of the page only if the drawn shape around them states both its position and its size', () => {
    const off = '<a:off x="5000" y="0"/>'
    expect(seen(shape(p(run('a')), off))).toEqual(['a'])
    expect(seen(shape(p(run('a')), '<a:ext cx="1" cy="1"/>'))).toEqual(['a'])
    expect(seen(shape(p(run('a')), `${off}<a:ext uri="x"/>`))).toEqual(['a'])
    expect(seen(`${off}<a:ext cx="1" cy="1"/>${shape(p(run('a')))}`)).toEqual(['a'])
    const twice = `${HERE}<a:ext cx="-5000" cy="1"/>`
    expect(seen(shape(p(run('a')), twice))).toEqual(['a'])
  })

  test('the text of a slide omits words in the colour of the page', () => {
    expect(seen(shape(p(run('a', BLACK))))).toEqual(['a'])
    for (const colour of [
      WHITE,
      '<a:sysClr val="window" lastClr="FFFFFF"/>',
      '<a:schemeClr val="bg1"/>',
      '<a:schemeClr val="lt1"/>',
    ])
      expect([colour, seen(shape(p(run('no', colour))))]).toEqual([colour, ['', 'invisible-text']])
    for (const colour of [
      '<a:schemeClr val="tx1"/>',
      '<a:schemeClr val="accent1"/>',
      '<a:schemeClr/>',
      '<a:prstClr val="white"/>',
      '<a:prstClr val="bg1"/>',
      '<a:sysClr val="window"/>',
    ])
      expect([colour, seen(shape(p(run('a', colour))))]).toEqual([colour, ['a']])
  })

  test('words on a slide have the colour that their own element names, and not the colour of another element', () => {
    expect(seen(shape(p(`<a:endParaRPr>${WHITE}</a:endParaRPr>${run('a')}`)))).toEqual(['a'])
    expect(seen(shape(p(`${run('a')}${WHITE}${run('b')}`)))).toEqual(['ab'])
    expect(seen(shape(p(`<a:r><a:rPr/>${WHITE}<a:t>a</a:t></a:r>`)))).toEqual(['a'])
    expect(seen(shape(p(`<a:r><a:endParaRPr/>${WHITE}<a:t>a</a:t></a:r>`)))).toEqual(['a'])
    expect(seen(WHITE + shape(p(run('a'))))).toEqual(['a'])
  })

  test('the text of a slide omits words in the colour of their shape', () => {
    expect(seen(shape(p(run('a', WHITE)), BLACK))).toEqual(['a'])
    expect(seen(shape(p(run('no', BLACK)), BLACK))).toEqual(['', 'invisible-text'])
    expect(seen(shape(p(run('no', WHITE)), `<a:ln>${BLACK}</a:ln>`))).toEqual([
      '',
      'invisible-text',
    ])
    expect(seen(shape(`${BLACK}${p(run('no', WHITE))}`))).toEqual(['', 'invisible-text'])
    for (const fill of ['gradFill', 'blipFill', 'pattFill']) {
      expect(seen(shape(p(run('a', WHITE)), `<a:${fill}/>`))).toEqual(['a'])
      expect(seen(shape(`<a:${fill}/>${p(run('no', WHITE))}`))[0]).toBe('')
    }
    expect(seen(`<p:spPr><a:gradFill/>${BLACK}</p:spPr>${shape(p(run('no', WHITE)))}`)[0]).toBe('')
  })
})

describe('the service finds the background colour of the words in a shape, or treats it as unknown', () => {
  const white = (x: number, y: number) => shape(p(run('a', WHITE)), place(x, y, 20, 20))

  test('the background of a shape is unknown if a coloured shape or a picture is behind it', () => {
    for (const below of [shape('', HERE + BLACK), `<p:pic><p:spPr>${HERE}</p:spPr></p:pic>`]) {
      expect(seen(below + white(150, 150))).toEqual(['a'])
      for (const [x, y] of [
        [91, 91],
        [289, 189],
      ] as const)
        expect(seen(below + white(x, y))).toEqual(['a'])
      for (const [x, y] of [
        [90, 150],
        [290, 150],
        [150, 90],
        [150, 190],
      ] as const)
        expect([x, y, ...seen(below + white(x, y))]).toEqual([x, y, '', 'invisible-text'])
    }
  })

  test('the background of a shape is the page’s colour if only lines and shapes without colour are behind it', () => {
    expect(seen(shape('', HERE) + white(150, 150))[0]).toBe('')
    expect(seen(`<p:cxnSp><p:spPr>${HERE}${BLACK}</p:spPr></p:cxnSp>${white(150, 150)}`)[0]).toBe(
      '',
    )
    expect(seen(`<p:graphicFrame>${HERE}</p:graphicFrame>${white(150, 150)}`)[0]).toBe('')
    expect(seen(shape('', BLACK) + white(150, 150))[0]).toBe('')
    expect(seen(`<p:pic/>${white(150, 150)}`)[0]).toBe('')
    expect(seen(white(150, 150) + shape('', HERE + BLACK))[0]).toBe('')
  })

  test('the background of a shape is unknown if the shape has no known position and a shape before it on the slide is coloured', () => {
    expect(seen(shape('', HERE + BLACK) + shape(p(run('a', WHITE))))).toEqual(['a'])
  })
})

describe('the service finds the page colour of a slide, or treats it as unknown', () => {
  const bg = (colour: string) => `<p:bg><p:bgPr>${colour}</p:bgPr></p:bg>`
  const parts = (layout: string, master: string) => ({
    'ppt/slides/_rels/s0.xml.rels': relations([['r1', 'slideLayout', '../layout.xml']]),
    'ppt/_rels/layout.xml.rels': relations([['r1', 'slideMaster', 'master.xml']]),
    'ppt/layout.xml': `<p:sldLayout>${layout}<p:spTree/></p:sldLayout>`,
    'ppt/master.xml': `<p:sldMaster>${master}<p:spTree/></p:sldMaster>`,
  })
  const onPage = (own: string, layout = '', master = '') =>
    seen(
      `<p:sld>${own}<p:spTree>${shape(p(run('a', WHITE)))}</p:spTree></p:sld>`,
      parts(layout, master),
    )[0]

  test('the service reads 200 slides that share one large layout and one large master slide', () => {
    const white = p(run('no', `<a:solidFill>${BLACK}</a:solidFill>`))
    const dark = `<p:sldMaster><p:bg><p:bgPr>${BLACK}</p:bgPr></p:bg><p:spTree>${'x'.repeat(400_000)}</p:spTree></p:sldMaster>`
    const count = 200
    const { text, omitted } = read(
      Array.from({ length: count }, () => shape(white)),
      {
        ...Object.fromEntries(
          Array.from({ length: count }, (_, n) => [
            `ppt/slides/_rels/s${n}.xml.rels`,
            relations([['l', 'slideLayout', '../slideLayouts/l.xml']]),
          ]),
        ),
        'ppt/slideLayouts/l.xml': `<p:sldLayout><p:spTree>${'x'.repeat(400_000)}</p:spTree></p:sldLayout>`,
        'ppt/slideLayouts/_rels/l.xml.rels': relations([
          ['m', 'slideMaster', '../slideMasters/m.xml'],
        ]),
        'ppt/slideMasters/m.xml': dark,
      },
    )
    expect(text.split('\n').filter((line) => line.startsWith('Slide')).length).toBe(count)
    expect([...omitted]).toEqual(['invisible-text'])
  })

  test('the page colour comes from the slide, or else from its layout, or else from its master slide', () => {
    expect(onPage('')).toBe('')
    expect(onPage(bg(BLACK), bg(WHITE), bg(WHITE))).toBe('a')
    expect(onPage(bg(WHITE), bg(BLACK), bg(BLACK))).toBe('')
    expect(onPage('', bg(BLACK), bg(WHITE))).toBe('a')
    expect(onPage('', bg(WHITE), bg(BLACK))).toBe('')
    expect(onPage('', '', bg(BLACK))).toBe('a')
  })

  test('the page colour is unknown if the background element names no colour', () => {
    expect(onPage(bg(''))).toBe('a')
    expect(onPage(bg(`${WHITE}<a:alpha/>`))).toBe('')
    expect(onPage(bg(`<a:other></a:other>${WHITE}`))).toBe('')
  })

  test('the page colour is read only from the background element', () => {
    expect(onPage(BLACK)).toBe('')
    expect(onPage(`${bg(WHITE)}${BLACK}`)).toBe('')
    expect(onPage(`<p:spTree></p:spTree>${bg(BLACK)}`)).toBe('')
  })
})

describe('the service finds the colour of the letters on a slide, and omits letters that cannot be seen', () => {
  const fill = (colour: string) => `<a:solidFill>${colour}</a:solidFill>`

  test('the text of a slide omits letters without a fill and almost transparent letters', () => {
    const faint = (alpha: number) =>
      fill(`<a:srgbClr val="000000"><a:alpha val="${alpha}"/></a:srgbClr>`)
    for (const colour of ['<a:noFill/>', faint(0), faint(9_000)])
      expect([colour, seen(shape(p(run('no', colour))))]).toEqual([colour, ['', 'invisible-text']])
    for (const colour of [faint(50_000), '<a:ln><a:noFill/></a:ln>'])
      expect([colour, seen(shape(p(run('a', colour))))]).toEqual([colour, ['a']])
  })

  test('the colours of a letter’s outline, effects and highlighter are not the letter’s own colour', () => {
    for (const name of ['ln', 'uLn', 'uFill', 'effectLst', 'highlight']) {
      const beside = `<a:${name}>${name === 'ln' ? fill(WHITE) : WHITE}</a:${name}>`
      expect([name, ...seen(shape(p(run('a', beside))))]).toEqual([name, 'a'])
      expect([name, ...seen(shape(p(run('a', fill(BLACK) + beside))))]).toEqual([name, 'a'])
      expect([name, ...seen(shape(p(run('no', beside + fill(WHITE)))))]).toEqual([
        name,
        '',
        'invisible-text',
      ])
    }
  })

  test('highlighted letters have the highlighter’s colour as background', () => {
    const highlight = (colour: string) => `<a:highlight>${colour}</a:highlight>`
    expect(seen(shape(p(run('a', fill(WHITE) + highlight(BLACK)))))).toEqual(['a'])
    expect(seen(shape(p(run('no', fill(BLACK) + highlight(BLACK)))))).toEqual([
      '',
      'invisible-text',
    ])
    expect(seen(shape(p(run('a', highlight(BLACK)) + run('b', fill(BLACK)))))).toEqual(['ab'])
  })

  test('white letters that are darkened by half count as grey, so they are visible on a white page', () => {
    const grey = (percent: number, offset = '') =>
      `<a:schemeClr val="bg1"><a:lumMod val="${percent}000"/>${offset}</a:schemeClr>`
    expect(seen(shape(p(run('a', fill(grey(50))))))).toEqual(['a'])
    expect(seen(shape(p(run('no', fill(grey(95))))))).toEqual(['', 'invisible-text'])
    const lighter = grey(50, '<a:lumOff val="50000"/>')
    expect(seen(shape(p(run('no', fill(lighter)))))).toEqual(['', 'invisible-text'])
    expect(seen(shape(p(run('a', fill(WHITE))), fill(grey(50))))).toEqual(['a'])
    const page = `<p:sld><p:bg>${fill(grey(50))}</p:bg><p:spTree>${shape(p(run('a', fill(WHITE))))}</p:spTree></p:sld>`
    expect(seen(page)).toEqual(['a'])
  })

  test('if a shape takes its fill from a style, its background counts as unknown', () => {
    const styled = (idx: number, properties = '') =>
      `<p:sp><p:nvSpPr><p:cNvPr/></p:nvSpPr><p:spPr>${properties}</p:spPr><p:style><a:fillRef idx="${idx}"><a:schemeClr val="accent1"/></a:fillRef></p:style><p:txBody>${p(run('a', fill(WHITE)))}</p:txBody></p:sp>`
    expect(seen(styled(1))).toEqual(['a'])
    expect(seen(styled(1, '<a:ln><a:noFill/></a:ln>'))).toEqual(['a'])
    const shadow = `<a:effectLst><a:outerShdw>${BLACK}</a:outerShdw></a:effectLst>`
    expect(seen(shape(p(run('a', BLACK)), fill(WHITE) + shadow))).toEqual(['a'])
    for (const slide of [styled(0), styled(1, '<a:noFill/>'), styled(1, fill(WHITE))])
      expect(seen(slide)).toEqual(['', 'invisible-text'])
  })
})
