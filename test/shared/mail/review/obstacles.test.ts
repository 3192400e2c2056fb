/** Tests which parts of a mail the approval page cannot show as the recipients will see them. */
import { describe, expect, test } from 'bun:test'
import { framedHtml } from '../../../../api/console/approval/framedHtml.ts'
import {
  HTML_MAX_CHARS,
  htmlObstacles,
  PICTURES_MAX_CHARS,
} from '../../../../shared/mail/review/obstacles.ts'

const LOADS = 'the HTML part loads a picture that the mail does not carry'
const STYLE_LOADS = 'a style of the HTML part loads something that the mail does not carry'
const DIFFERS = 'the HTML part looks different on other devices, in other programs or later'
const UNDRAWN = 'the HTML part has a picture that this page cannot draw'

const PICTURE = { contentId: '<p1>', contentType: 'image/png', size: 1 }
const faults = (html: string, attachments: Parameters<typeof htmlObstacles>[1] = []) =>
  htmlObstacles(html, attachments)

test('the approval page can show an HTML part that has only words, tables and plain styles', () => {
  expect(faults('')).toEqual([])
  expect(faults('<p style="color: red">a &lt;script&gt;</p><table><tr><td>b</table>')).toEqual([])
})

test('the approval page can show an HTML part of at most 200,000 characters', () => {
  expect(HTML_MAX_CHARS).toBe(200_000)
  expect(faults('<script>'.padEnd(200_000))).toEqual(['the HTML part has the element script'])
  expect(faults('<script>'.padEnd(200_001))).toEqual([
    'the HTML part has more than 200000 characters',
  ])
})

test('an HTML part with an element that loads or runs something cannot be shown, and the error names the element in lower case', () => {
  for (const name of ['script', 'IFRAME', 'frame', 'link', 'base', 'svg', 'xml', 'picture'])
    expect(faults(`<${name} >`)).toEqual([`the HTML part has the element ${name.toLowerCase()}`])
  for (const name of ['linked', '/script', 'p', ' script'])
    expect([name, faults(`<${name}>`)]).toEqual([name, []])
  expect(faults('<!-- --!><form><script>')).toEqual(['the HTML part has the element form'])
})

describe('the approval page can show a mail with a picture only if the picture is safe, known and small enough', () => {
  const image = (source: string) => faults(`<img ${source}>`, [PICTURE])

  test('a picture in a mail can be shown if it is an attachment of the mail or is embedded as data', () => {
    for (const source of [
      'src="cid:p1"',
      "src='CID:p1'",
      'src=cid:p1',
      'src = " cid:p1"',
      'src="data:image/png;base64,AA"',
      'src="data:image/gif,AA"',
    ])
      expect([source, image(source)]).toEqual([source, []])
  })

  test('a mail with a picture that is neither an attachment nor embedded data cannot be shown for approval', () => {
    for (const source of [
      'src="https://a.example/p.png"',
      "src='//a.example/p.png'",
      'src=p.png',
      'src=""',
      'src=',
      'src="data:image/svg+xml,AA"',
      'src="data:text/html,AA"',
      'alt="x"src=p.png',
      'src="cid:p1" src=p.png',
      'srcset="p.png 2x"',
      'background = "cid:p1"',
      'poster=x',
      'xlink:href=x',
    ])
      expect([source, image(source)]).toEqual([source, [LOADS]])
    for (const source of ['data-src="p.png"', 'datasrc="p.png"', 'data-background="p.png"'])
      expect([source, image(source)]).toEqual([source, []])
  })

  test('the approval page shows a picture only if exactly one attachment has the picture’s content id', () => {
    const html = '<img src="cid:p1">'
    expect(faults(html, [PICTURE, { ...PICTURE, contentId: 'p2' }])).toEqual([])
    expect(faults(html, [{ ...PICTURE, contentId: 'p1' }])).toEqual([])
    expect(faults('<img src="cid:p1 ">', [PICTURE])).toEqual([])
    for (const contentId of ['p2', null, undefined])
      expect(faults(html, [{ ...PICTURE, contentId }])).toEqual([UNDRAWN])
    expect(faults(html)).toEqual([UNDRAWN])
    expect(faults(html, [PICTURE, PICTURE])).toEqual([UNDRAWN])
    expect(faults('<img src="data:image/png,A"><img src="cid:p3">', [PICTURE])).toEqual([UNDRAWN])
  })

  test('the approval page shows a picture only if the media type of the picture is known', () => {
    const typed = (contentType: string) =>
      faults('<img src="cid:p1">', [{ ...PICTURE, contentType }])
    for (const type of ['image/jpeg', 'image/jpg', 'IMAGE/GIF', 'image/webp'])
      expect([type, typed(type)]).toEqual([type, []])
    for (const type of ['image/tiff', 'image/svg+xml', 'text/html', 'ximage/png'])
      expect([type, typed(type)]).toEqual([type, [UNDRAWN]])
  })

  test('the approval page shows the pictures of a mail only if all its inline pictures together have at most 8 MiB', () => {
    const sized = (size: number) =>
      faults('<img src="cid:p1">', [
        { ...PICTURE, size: size - 1 },
        { ...PICTURE, contentId: 'p2', size: 1 },
        { contentType: 'image/png', size: 9_000_000 },
      ])
    expect(sized(8 * 1024 * 1024)).toEqual([])
    expect(sized(8 * 1024 * 1024 + 1)).toEqual([UNDRAWN])
    expect(faults('<p>', [{ ...PICTURE, size: 9_000_000 }])).toEqual([])
  })
})

describe('a mail with a CSS style that can hide or load something cannot be shown for approval', () => {
  const inElement = (css: string) => faults(`<style>${css}</style>`)
  const inAttribute = (css: string) => faults(`<p style = "${css}">`)

  test('a mail with a CSS style that loads something cannot be shown for approval', () => {
    for (const css of [
      '@import "a.css"',
      'background: url(https://a.example/p.png)',
      "background: url( 'p.png')",
      'background: url(data:image/svg+xml,A)',
      'background: image-set(x)',
      'background: element(#a)',
      'width: expression(x)',
      'behavior : x',
    ]) {
      expect([css, inElement(css)]).toEqual([css, [STYLE_LOADS]])
      expect([css, inAttribute(css)]).toEqual([css, [STYLE_LOADS]])
    }
    for (const css of ['background: url(data:image/png;base64,A)', 'fill: url(#a)', 'color: red'])
      expect([css, inElement(css), inAttribute(css)]).toEqual([css, [], []])
    expect(faults('<p>url(p.png) @import</p>')).toEqual([])
  })

  test('the CSS of a mail is checked after HTML entities are decoded', () => {
    for (const css of [
      'background:&#117;rl(p.png)',
      'background:&#x75;rl(p.png)',
      'background:&#X75rl(p.png)',
      'background:url&lpar;p.png)',
      'background:url&LPAR;p.png)',
      '&commat;import',
      'behavior&#0;:x',
      'behavior&colon;x',
    ])
      expect([css, inAttribute(css)]).toEqual([css, [STYLE_LOADS]])
    for (const css of ['background:&unknown;rl(p.png)', 'background:&#0;rl(p.png)'])
      expect([css, inAttribute(css)]).toEqual([css, []])
    expect(inAttribute('behavior&#x10ffff;:x')).toEqual([])
    expect(inAttribute('behavior&#x110000;:x')).toEqual([STYLE_LOADS])
  })

  test('the CSS of a mail is checked after CSS escapes are decoded and comments are removed', () => {
    for (const css of [
      'background:\\75rl(p.png)',
      'background:\\000075 rl(p.png)',
      'background:u\\rl(p.png)',
      'background:u\\\r\nrl(p.png)',
      'background:u/* x */rl(p.png)',
      'background:u/**/r/**/l(p.png)',
      'background:/* x */url(p.png)/* no end',
    ])
      expect([css, inElement(css)]).toEqual([css, [STYLE_LOADS]])
    for (const css of ['background:u/* x rl(p.png)', 'background:u/*/rl(p.png)'])
      expect([css, inElement(css)]).toEqual([css, []])
    expect(inElement('background:\\0 url(p.png)')).toEqual([STYLE_LOADS])
    expect(inElement('background:u\\0 rl(p.png)')).toEqual([])
    expect(inElement('background:u\\110000 rl(p.png)')).toEqual([])
  })

  test('a mail with CSS that depends on the device, the time or the reader cannot be shown for approval', () => {
    for (const css of ['@media print {}', '@supports (x) {}', 'a:hover {}', 'transition : x'])
      expect([css, inElement(css)]).toEqual([css, [DIFFERS]])
    for (const css of ['@-moz-document url-prefix() {}', '@-webkit-keyframes x {}'])
      expect([css, inElement(css)]).toEqual([css, [DIFFERS]])
    expect(inAttribute('animation-name: x')).toEqual([DIFFERS])
    expect(inElement('@mediax {}')).toEqual([])
    expect(faults('<p>a:hover</p>')).toEqual([])
  })
})

test('a mail with a conditional HTML comment cannot be shown for approval', () => {
  for (const html of ['<!--[if mso]>x<![endif]-->', '<![if !mso]>', '<!--\n[ IF x]>', '<!-[endif]'])
    expect([html, faults(html)]).toEqual([html, [DIFFERS]])
  for (const html of ['<!-- if -->', '[if mso]', '<!--[x]-->'])
    expect([html, faults(html)]).toEqual([html, []])
})

test('if an HTML part cannot be shown for several reasons, the reasons are listed in a fixed order', () => {
  const html = '<form><img src=x><style>@import x; @media{}</style><img src="cid:p9">'
  expect(faults(html)).toEqual([
    'the HTML part has the element form',
    LOADS,
    STYLE_LOADS,
    DIFFERS,
    UNDRAWN,
  ])
})

test('the approval page cannot show an HTML part that repeats its pictures so often that they exceed the size limit of the frame', () => {
  const uses = (count: number, size: number) =>
    faults('<img src="cid:p1">'.repeat(count), [{ ...PICTURE, size }])
  const most = Math.floor(PICTURES_MAX_CHARS / ('data:image/png;base64,'.length + 120_000))
  expect(uses(most, 90_000)).toEqual([])
  expect(uses(most + 1, 90_000)).toEqual([UNDRAWN])
  const images = [{ contentId: 'p1', contentType: 'image/png', bytes: Buffer.alloc(90_000) }]
  const drawn = framedHtml({ html: '<img src="cid:p1">'.repeat(most + 1), images })
  expect(drawn.split('src="data:')).toHaveLength(most + 1)
})
