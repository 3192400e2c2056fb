import { describe, expect, test } from 'bun:test'
import { htmlToText } from '../../../../shared/mail/visibleText/htmlToText.ts'
import { cpuMsOf } from '../../../support/process/cpuTime.ts'

describe('htmlToText converts HTML into text', () => {
  const cases: [string, string, string][] = [
    ['paragraphs and line breaks', '<p>Hi</p><p>there<br>you</p>', 'Hi\n\nthere\nyou'],
    [
      'a link with its address',
      'See <a href="https://x.test/?a=1&amp;b=2">this</a>.',
      'See this [https://x.test/?a=1&b=2].',
    ],
    [
      'a link that is its own text',
      '<a href="https://x.test">https://x.test</a>',
      'https://x.test',
    ],
    ['a mail address without mailto:', '<a href="mailto:a@x.test">a@x.test</a>', 'a@x.test'],
    ['nested lists', '<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>', '- a\n- b\n  - c'],
    ['a numbered list', '<ol><li>a</li><li>b</li></ol>', ' 1. a\n 2. b'],
    [
      'a table',
      '<table><tr><td>A</td><td>B</td></tr><tr><td>C</td><td>D</td></tr></table>',
      'A B\nC D',
    ],
    ['a quote', '<div>a</div><blockquote>b<br>c</blockquote>', 'a\n\n> b\n> c'],
    ['preformatted text', '<pre>a\n  b</pre>', 'a\n  b'],
    ['a heading', '<h1>Title</h1>text', 'Title\ntext'],
    [
      'text without style, script and comment',
      '<style>p{}</style><script>x<y</script><!-- c -->a &amp; b',
      'a & b',
    ],
    ['text without an image', '<img src="cid:1" alt="logo">a', 'a'],
    [
      'a signature and history',
      'a<div class="gmail_signature">b</div><div id="appendonsend"></div>c',
      'a\nb\n\nc',
    ],
    ['text with the character <', 'a < b and <3', 'a < b and <3'],
    ['an empty text', '', ''],
  ]
  test.each(cases)('htmlToText returns the expected text for %s', (_name, html, want) =>
    expect(htmlToText(html).trimEnd()).toBe(want),
  )

  test('htmlToText puts an inline element with the style display:block on separate lines', () => {
    const code = (text: string, style: string) => `<code style="${style}">${text}</code>`
    const html = `Codes:${code('A1F9', 'margin:0;display:block')}${code('Q8ZT', 'DISPLAY: Block')}
    <span style="display:inline-block">5XCN</span><span>PL7W</span>`
    expect(htmlToText(html)).toBe('Codes:\nA1F9\nQ8ZT\n5XCNPL7W')
  })

  test('htmlToText keeps the text even if the HTML is nested too deeply or is too long to be parsed', () => {
    const deep = `${'<div>'.repeat(2000)}a &lt; b &#233; <b>c</b>${'</div>'.repeat(2000)}<p>d</p>`
    expect(htmlToText(deep)).toBe('a < b é c\nd')
    const hidden = `<style>x{}</style><script>1</script><!-- > -->${'<i>a</i> '.repeat(40_000)}`
    expect(htmlToText(hidden).slice(0, 5)).toBe('a a a')
    expect(htmlToText(`${'<p>'.repeat(90_000)}&bogus; &#0; &#x110000;`)).toBe(
      '&bogus; \ufffd \ufffd',
    )
  })
})

describe('converting hostile HTML takes limited CPU time', () => {
  const MB = 1_000_000
  const inputs: [string, string][] = [
    ['nested elements', '<div>'.repeat(MB / 5)],
    ['nested and closed elements', `${'<div>'.repeat(MB / 11)}x${'</div>'.repeat(MB / 11)}`],
    ['elements closed by the wrong tag', '<div>'.repeat(499) + '</b>'.repeat(MB / 4)],
    ['unclosed < characters', '<'.repeat(50_000)],
    ['unclosed tags', '<a '.repeat(50_000)],
    ['an unclosed attribute', `<a title="${'x'.repeat(MB)}`],
    ['unclosed comments', '<!--'.repeat(MB / 4)],
    ['quotes in quotes', `${'<blockquote>'.repeat(2000)}x`],
    ['long quotes in quotes', '<blockquote>'.repeat(490) + 'x<br>'.repeat(MB / 5)],
    ['long lists in lists', '<ul><li>'.repeat(245) + 'x<br>'.repeat(50_000)],
    ['long lines in lists', `${'<ul><li>'.repeat(200)}<pre>${'x\n'.repeat(50_000)}`],
    ['paragraphs', '<p>x'.repeat(MB / 4)],
    ['cells', '<td>x'.repeat(MB / 5)],
    ['entities', '&amp'.repeat(MB / 4)],
    ['attributes', `<div ${'a=1 '.repeat(MB / 4)}>x</div>`],
    ['spaces', `<p>a${' '.repeat(MB)}b</p>`],
    ['line ends', `<pre>${'\n'.repeat(MB)}</pre>`],
  ]
  // In a measurement, the conversion took less than 0.3 s for each input. The time limit of the test is higher, because
  // the machine may be busy.
  test.each(inputs)(
    'htmlToText converts a megabyte of %s within 2 s of CPU time',
    (_name, html) => {
      expect(cpuMsOf(() => htmlToText(html))).toBeLessThan(2000)
    },
  )
})

test('HTML with more than 60,000 tags and lines is not parsed, and only its tags are removed', () => {
  // htmlToText writes dashes before list items only if it parses the HTML into a tree, so a dash in the result shows
  // that the HTML was parsed.
  const list = '<ul><li>x</ul>'
  const of = (lines: number) => htmlToText(`${'\n'.repeat(lines)}${list}`).trim()
  const tags = 3
  expect(of(60_000 - tags)).toBe('- x')
  expect(of(60_001 - tags)).toBe('x')
  const leading = (count: number) => htmlToText(`${'<b>'}${'\n'.repeat(count)}${list}`).trim()
  expect(leading(60_000 - tags - 1)).toBe('- x')
  expect(leading(60_001 - tags - 1)).toBe('x')
})
