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

describe('the reply text of an HTML mail ends before the header block of a quoted message in any script', () => {
  const block = (names: string[], values: string[]) =>
    names.map((name, n) => `<b>${name}</b> ${values[n]}`).join('<br>')
  const VALUES = ['Lea &lt;lea@x.test&gt;', '3.03.2026 09:14', 'Owen', 'Door']
  test.each([
    ['Russian', ['От:', 'Отправлено:', 'Кому:', 'Тема:']],
    ['Ukrainian', ['Від:', 'Надіслано:', 'Кому:', 'Тема:']],
    ['Greek', ['Από:', 'Στάλθηκε:', 'Προς:', 'Θέμα:']],
    ['Chinese', ['发件人:', '发送时间:', '收件人:', '主题:']],
    ['Japanese', ['差出人:', '送信日時:', '宛先:', '件名:']],
    ['Korean', ['보낸 사람:', '보낸 날짜:', '받는 사람:', '제목:']],
    ['Arabic', ['من:', 'تم الإرسال:', 'إلى:', 'الموضوع:']],
    ['Hebrew', ['מאת:', 'נשלח:', 'אל:', 'נושא:']],
    ['Hindi', ['प्रेषक:', 'भेजा गया:', 'प्रति:', 'विषय:']],
    ['Thai', ['จาก:', 'ส่ง:', 'ถึง:', 'เรื่อง:']],
  ])('with the field names of %s', (_language, names) => {
    for (const [open, close] of [
      ['<div>', '</div>'],
      ['<hr><p>', '</p>'],
      ['<table><tr><td>', '</td></tr></table>'],
    ]) {
      const quoted = `${open}${block(names, VALUES)}${close}<p>old</p>`
      expect(replyTextFromHtml(`<p>${OWN}</p>${quoted}`)).toBe(OWN)
    }
  })

  test('a list with bold words and colons stays in the reply text', () => {
    const list = block(['Цвет:', 'Размер:', 'Цена:'], ['синий', 'M', '20'])
    expect(replyTextFromHtml(`<p>${OWN}</p><div>${list}</div><p>Ада</p>`)).toContain('Размер: M')
  })
})
