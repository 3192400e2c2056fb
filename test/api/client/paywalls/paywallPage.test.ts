import { expect, test } from 'bun:test'
import { notePage, offerPage, prefersHtml } from '../../../../api/client/paywalls/paywallPage.ts'
import { CHALLENGE } from '../../../support/till/headers/shopService.ts'

test('the payer gets an HTML page only if the Accept header names HTML and does not prefer JSON', () => {
  const long = (chars: number) => `text/html${' '.repeat(chars - 'text/html'.length)}`
  for (const [accept, wanted] of [
    [undefined, false],
    [null, false],
    ['', false],
    ['*/*', false],
    ['text/*', false],
    ['application/json', false],
    ['text/html', true],
    ['TEXT/HTML', true],
    ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', true],
    ['text/html, application/json', false],
    ['text/html;q=0.9, application/json', false],
    ['text/html, application/json;q=0.9', true],
    ['text/html;level=1;q=0.5, application/json;q=0.4', true],
    ['text/html;q=0.4, application/json;q=0.5', false],
    ['text/html;q=0, */*', false],
    ['text/html;q=x', false],
    [long(1_024), true],
    [long(1_025), false],
  ] as const) {
    expect([accept, prefersHtml(accept)]).toEqual([accept, wanted])
  }
})

const { headers: _, ...challenge } = CHALLENGE
const [requirement] = challenge.accepts

test('the payment page shows the offer’s values as escaped text, and omits an empty description', () => {
  const description = `"Puns" & <script>alert('1')</script>`
  const page = offerPage({
    amount: '0.01',
    challenge: { ...challenge, accepts: [{ ...requirement!, description }] },
  })
  for (const [term, text] of [
    ['Price', '0.01 USDC'],
    ['Resource', requirement!.resource],
    ['Description', '&quot;Puns&quot; &amp; &lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;'],
    ['Network', requirement!.network],
    ['Paid to', requirement!.payTo],
    ['State', challenge.error],
  ]) {
    expect(page).toContain(`<dt>${term}</dt><dd>${text}</dd>`)
  }
  expect(offerPage({ amount: '0.01', challenge })).not.toContain('Description')
})

test('if a challenge contains no offer, the payment page shows only the reason', () => {
  const empty = { ...challenge, error: 'closed <now>', accepts: [] }
  expect(offerPage({ amount: '0.01', challenge: empty })).toBe(notePage('closed <now>'))
  expect(notePage('closed <now>')).toContain('<p>closed &lt;now&gt;</p>')
})
