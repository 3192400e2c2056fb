import { describe, expect, test } from 'bun:test'
import { findCodes } from '../../../../shared/mail/codes/codes.ts'
import { emphasisOf } from '../../../../shared/mail/codes/emphasis.ts'

const lines = (text: string) => text.split('\n').filter((line) => line.trim() !== '')
const large = (html: string) => lines(emphasisOf(html).large)
const bold = (html: string) => lines(emphasisOf(html).bold)

describe('the service finds the large text of an HTML mail', () => {
  test.each([
    ['if its font has 24 pixels', '<p style="font-size:24px">482913</p>'],
    ['if its font has 16 points', '<p style="font-size: 16pt">482913</p>'],
    ['if its font has twice the size of the text around', '<p style="font-size:2em">482913</p>'],
    ['if its font has 150 percent', '<p style="font-size:150%">482913</p>'],
    ['if the shorthand `font` says so', '<p style="font:bold 28px Arial">482913</p>'],
    ['if its letters have spaces between', '<p style="letter-spacing:6px">482913</p>'],
    ['in a heading', '<h1>482913</h1>'],
    ['if its font is called x-large', '<p style="font-size:x-large">482913</p>'],
    ['if its font is called xxx-large', '<p style="font-size:xxx-large">482913</p>'],
    ['in an old font element', '<font size="5">482913</font>'],
  ])('HTML text counts as large %s', (_, html) => {
    expect(large(`<p>Your code is</p>${html}<p>Bye</p>`)).toEqual(['482913'])
  })

  test('text in the child elements of a large HTML element counts as large too', () => {
    expect(large('<div style="font-size:30px">48<b>29</b><i>13</i></div>')).toEqual(['482913'])
  })
})

test('HTML text of usual size does not count as large', () => {
  expect(large('<p style="font-size:14px;letter-spacing:0.5px">482913</p>')).toEqual([])
  expect(large('<h1 style="font-size:12px">482913</h1>')).toEqual([])
  expect(large('<p style="font-size:large;letter-spacing:0px">482913</p>')).toEqual([])
})

test('the cells of an HTML table are on separate lines', () => {
  const cell = '<td style="font-size:22px">'
  expect(large(`<table><tr>${cell}4</td>${cell}8</td></tr></table>`)).toEqual(['4', '8'])
})

test('bold HTML text, headings and code count as bold, unless their style says otherwise', () => {
  expect(bold('<p>Code <b>482913</b> or <code>77</code></p>')).toEqual(['482913', '77'])
  expect(bold('<p style="font-weight:700">482913</p>')).toEqual(['482913'])
  expect(bold('<b style="font-weight:400">482913</b>')).toEqual([])
})

test('in a mail with two numbers, the number in large text is listed as the first code', () => {
  const html = (first: string, second: string) =>
    `<p>Hello, the request has the number 718204.</p><p style="${first}">718 204</p><p style="${second}">482 913</p><p>It expires in 10 minutes.</p>`
  const codeOf = (shown: string) =>
    findCodes({
      subject: 'Sign in to Kiln',
      text: 'Hello, use the numbers of this mail.\n718 204\n482 913\nIt expires in 10 minutes.',
      html: null,
      shown,
    })[0]?.value
  expect(codeOf(html('', 'font-size:32px'))).toBe('482913')
  expect(codeOf(html('font-size:32px', ''))).toBe('718204')
})
