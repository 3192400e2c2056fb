/**
 * Holds layouts of test mails with a code beside other numbers, in unusual markup, or in digits of another script.
 */
import { anchor, coded, escaped, FOOTER_TEXT, type Layout, page, paragraph, site } from './build.ts'

const row = (label: string, value: string) =>
  `<tr><td style="color:#8a8f98">${escaped(label)}</td><td><b>${escaped(value)}</b></td></tr>`

const wide = (code: string) =>
  code.replace(/\d/g, (digit) => String.fromCharCode(0xff10 + Number(digit)))
const arabic = (code: string) =>
  code.replace(/\d/g, (digit) => String.fromCharCode(0x660 + Number(digit)))

export const moreCodeLayouts: Layout[] = [
  {
    name: 'sign-in-details',
    make: (v, x) => {
      const code = x.digits(6)
      return {
        subject: v.subject,
        html: page(
          v,
          `${paragraph(v.ask)}<p style="font-size:28px">${code}</p><table>${row('IP', '203.0.113.48')}${row('Chrome', '131.0.6778.86')}${row('UTC', '2026-03-12 18:45:07')}</table>${paragraph(v.expires)}${paragraph(FOOTER_TEXT)}`,
        ),
        codes: [code],
        links: {},
      }
    },
  },
  {
    name: 'code-at-the-till',
    make: (v, x) => {
      const code = x.digits(6)
      return {
        subject: `${v.brand} · ${x.fill('{p}')}`,
        text: `${v.brand} **** 4829\n${x.fill('{p} · {d}')}\n\n${coded(v.say, code)}\n${v.expires}\n${x.fill(v.advice)}\n`,
        codes: [code],
        links: {},
      }
    },
  },
  {
    name: 'code-first',
    make: (v, x) => {
      const code = x.digits(x.pick([5, 7]))
      return {
        subject: v.subject,
        html: page(
          v,
          `<p><strong>${escaped(coded(v.codeSubject, code))}</strong></p>${paragraph(v.expires)}${paragraph(x.fill(v.alert))}`,
        ),
        codes: [code],
        links: {},
      }
    },
  },
  {
    name: 'label-and-cell',
    make: (v, x) => {
      const code = x.digits(6)
      const label = coded(v.codeSubject, '').replace(/[\s:：—,]+$/u, '')
      return {
        subject: v.subject,
        html: page(
          v,
          `<table>${row(v.brand, x.fill('{d}'))}<tr><td>${escaped(`${label}:`)}</td></tr><tr><td bgcolor="#eef1f6" style="font-size:26px"><span>${code}</span></td></tr></table>${paragraph(v.expires)}`,
        ),
        codes: [code],
        links: {},
      }
    },
  },
  {
    name: 'zero-width',
    make: (v, x) => {
      const code = x.digits(6)
      return {
        subject: v.subject,
        html: page(
          v,
          `<!--[if mso]><table><tr><td><![endif]-->${paragraph(v.ask)}<p>${[...code].join('&#8203;')}</p>${paragraph(v.expires)}<!--[if mso]></td></tr></table><![endif]-->`,
          `${v.ask} ${code}`,
        ),
        codes: [code],
        links: {},
      }
    },
  },
  {
    name: 'own-digits',
    make: (v, x) => {
      const code = x.digits(6)
      const shown =
        v.language === 'ar'
          ? arabic(code)
          : ['ja', 'zh', 'ko'].includes(v.language)
            ? wide(code)
            : code
      return {
        subject: v.subject,
        text: `${coded(v.say, shown)}\n\n${v.expires}\n`,
        codes: [code],
        links: {},
      }
    },
  },
  {
    name: 'numbered-steps',
    make: (v, x) => {
      const code = x.digits(6)
      return {
        subject: v.subject,
        html: page(
          v,
          `<ol><li>${escaped(v.signIn)}</li><li>${escaped(coded(v.say, code))}</li><li>${escaped(v.expires)}</li></ol>${paragraph(x.fill(v.advice))}`,
        ),
        codes: [code],
        links: {},
      }
    },
  },
  {
    name: 'decoy-hidden',
    make: (v, x) => {
      const code = x.digits(6)
      return {
        subject: v.subject,
        html: page(
          v,
          `<div style="display:none">${escaped(coded(v.say, x.digits(6)))}</div>${paragraph(v.ask)}<div style="letter-spacing:.4em">${code}</div><span style="font-size:0">${escaped(coded(v.say, x.digits(6)))}</span>${paragraph(v.expires)}`,
        ),
        codes: [code],
        links: {},
      }
    },
  },
  {
    name: 'both-parts-differ',
    make: (v, x) => {
      const code = x.digits(6)
      return {
        subject: v.subject,
        text: `${v.brand}\n${v.help}: ${site(v)}/help\n`,
        html: page(
          v,
          `${paragraph(v.ask)}<table><tr><td><span class="d">${code.slice(0, 3)}</span><span class="d">${code.slice(3)}</span></td></tr></table>${paragraph(v.expires)}${anchor(`${site(v)}/help`, v.help)}`,
        ),
        codes: [code],
        links: { [`${site(v)}/help`]: 'other' },
      }
    },
  },
  {
    name: 'order-and-code',
    make: (v, x) => {
      const code = x.digits(6)
      return {
        subject: v.subject,
        html: page(
          v,
          `${paragraph(x.fill(v.order))}${paragraph(x.fill(v.shipping))}${paragraph(v.ask)}<p><code>${code}</code></p>${paragraph(v.expires)}`,
        ),
        codes: [code],
        links: {},
      }
    },
  },
  {
    name: 'code-and-magic-link',
    make: (v, x) => {
      const code = x.letters(6)
      const href = `${site(v)}/auth/magic?t=${x.letters(30)}`
      const leave = `${site(v)}/u/${x.letters(12)}/unsubscribe`
      return {
        subject: v.subject,
        text: `${v.signIn}\n${href}\n\n${v.ask}\n${code}\n\n${v.expires}\n\n${v.unsubscribe}: ${leave}\n`,
        codes: [code],
        links: { [href]: 'sign-in', [leave]: 'unsubscribe' },
      }
    },
  },
  {
    name: 'bold-in-sentence',
    make: (v, x) => {
      const code = x.digits(x.pick([4, 6]))
      const said = escaped(v.say).replace('{c}', `<b>${code}</b>`)
      return {
        subject: v.subject,
        text: `${coded(v.say, `*${code}*`)}\n\n${v.expires}`,
        html: `<html><body><p>${escaped(v.brand)},</p><p>${said}</p><p>${escaped(v.expires)}</p><p><small>${escaped(FOOTER_TEXT)}</small></p></body></html>`,
        codes: [code],
        links: {},
      }
    },
  },
  {
    name: 'starred-rule',
    make: (v, x) => {
      const code = x.digits(8)
      return {
        subject: v.subject,
        text: `${v.ask}\n==========\n ${code}\n==========\n${v.expires}\n\nRef: MSG-2026-0312-4829\n`,
        codes: [code],
        links: {},
      }
    },
  },
  {
    name: 'cells-and-letters',
    make: (v, x) => {
      const code = x.letters(6)
      const shown = [...code]
        .map((one) => `<td><p style="margin:0">${one}</p></td><td width="8"></td>`)
        .join('')
      return {
        subject: v.subject,
        html: page(
          v,
          `${paragraph(v.ask)}<table role="presentation"><tbody><tr>${shown}</tr></tbody></table>${paragraph(v.expires)}`,
        ),
        codes: [code],
        links: {},
      }
    },
  },
  {
    name: 'subject-and-body',
    make: (v, x) => {
      const code = x.digits(6)
      return {
        subject: coded(v.codeSubject, code),
        text: `${coded(v.say, code)}\n${v.expires}\n`,
        html: page(
          v,
          `${paragraph(v.ask)}<p style="font-size:32px">${code}</p>${paragraph(v.expires)}`,
          coded(v.say, code),
        ),
        codes: [code],
        links: {},
      }
    },
  },
]
