/** Tests the HTML elements in which mail programs put a signature or a forwarded message. */
import { describe, expect, test } from 'bun:test'
import { replyTextFromHtml } from '../../../../shared/mail/replyText/replyText.ts'

const OWN = 'The yard door, please.'

describe('the service recognises the HTML element of a signature', () => {
  test.each([
    '<div id="AppleMailSignature">Owen</div><blockquote type="cite">old</blockquote>',
    '<signature>Owen</signature>',
    '<div id="Zm-_Id_-Sgn" data-sigid="1">Owen</div>',
    '<div class="ydp4signature">Owen</div>',
    '<div data-signature-widget="container"><div>Owen</div></div>',
    '<div id="sig36"><div class="signature">Owen</div></div>',
    '<div class="netease_signature">Owen</div>',
    '<div class="io-ox-signature">Owen</div>',
    '<div id="x_Signature">Owen</div>',
    '<div id="Signature">Owen</div>',
  ])('a signature in this HTML element is removed from the reply text: %s', (signature) => {
    expect(replyTextFromHtml(`<div>${OWN}</div>${signature}`)).toBe(OWN)
  })
})

describe('text that a mail program puts into the HTML element for a quote stays in the reply text if it is not a quote', () => {
  const head = 'From: L &lt;l@x.test&gt;<br>Date: 3 March 2026<br>Subject: Door'
  test.each([
    `<div class="zmail_extra"><div>============ Forwarded message ============<br>${head}</div><p>Body</p></div>`,
    `<div class="ydp1yahoo_quoted"><div>----- Forwarded Message -----<br>${head}</div><p>Body</p></div>`,
    `<blockquote type="cite"><div>Begin forwarded message:</div><br><div>${head}</div><p>Body</p></blockquote>`,
  ])('a forwarded mail in this HTML element stays in the reply text: %s', (container) => {
    const text = replyTextFromHtml(`<div>${OWN}</div>${container}`)
    expect(text).toStartWith(`${OWN}\n`)
    expect(text).toContain('From: L <l@x.test>')
    expect(text).toEndWith('Body')
  })

  test('a forwarded mail inside a quote is removed from the reply text', () => {
    const quote = `<div class="gmail_quote"><div class="gmail_attr">On 3 Mar 2026 at 9:14, L &lt;l@x.test&gt; wrote:</div><blockquote class="gmail_quote">---------- Forwarded message ---------<br>${head}<br>Body</blockquote></div>`
    expect(replyTextFromHtml(`<div>${OWN}</div>${quote}`)).toBe(OWN)
  })
})
