/** Holds layouts of test mails that contain a one-time code. */
import { anchor, coded, escaped, FOOTER_TEXT, type Layout, page, paragraph, site } from './build.ts'

const cells = (code: string, style: string) =>
  `<table><tr>${[...code].map((digit) => `<td style="${style}">${digit}</td>`).join('')}</tr></table>`

export const codeLayouts: Layout[] = [
  {
    name: 'plain-sentence',
    make: (v, x) => {
      const code = x.digits(6)
      return {
        subject: v.subject,
        text: `${v.brand}\n\n${coded(v.say, code)}\n\n${v.expires}\n\n-- \n${FOOTER_TEXT}\n`,
        codes: [code],
        links: {},
      }
    },
  },
  {
    name: 'plain-own-line',
    make: (v, x) => {
      const code = x.digits(x.pick([4, 6, 8]))
      return {
        subject: `${v.brand}: ${v.subject}`,
        text: `${v.ask}\r\n\r\n    ${code}\r\n\r\n${v.expires}\r\n\r\n${v.advice.replace('{tel}', '+1 800 482 9130')}\r\n`,
        codes: [code],
        links: {},
      }
    },
  },
  {
    name: 'subject-alone',
    make: (v, x) => {
      const code = x.digits(6)
      return {
        subject: coded(v.codeSubject, code),
        html: page(v, paragraph(v.expires) + paragraph(FOOTER_TEXT)),
        codes: [code],
        links: {},
      }
    },
  },
  {
    name: 'big-heading',
    make: (v, x) => {
      const code = x.digits(6)
      return {
        subject: v.subject,
        text: `${v.ask} ${code}\n${v.expires}`,
        html: page(
          v,
          `${paragraph(v.ask)}<h1 style="letter-spacing:8px;font-size:36px">${code}</h1>${paragraph(v.expires)}${paragraph(FOOTER_TEXT)}`,
          v.expires,
        ),
        codes: [code],
        links: {},
      }
    },
  },
  {
    name: 'digit-cells',
    make: (v, x) => {
      const code = x.digits(6)
      return {
        subject: v.subject,
        html: page(
          v,
          `${paragraph(v.ask)}${cells(code, 'border:1px solid #cccccc;width:40px;font-size:28px')}${paragraph(v.expires)}`,
        ),
        codes: [code],
        links: {},
      }
    },
  },
  {
    name: 'digit-spans',
    make: (v, x) => {
      const code = x.digits(x.pick([5, 6]))
      const spans = [...code]
        .map((digit) => `<span style="padding:4px">${digit}</span>`)
        .join('&nbsp;')
      return {
        subject: v.subject,
        html: page(
          v,
          `${paragraph(v.ask)}<div align="center">${spans}</div>${paragraph(v.expires)}`,
        ),
        codes: [code],
        links: {},
      }
    },
  },
  {
    name: 'digit-divs',
    make: (v, x) => {
      const code = x.digits(6)
      const boxes = [...code]
        .map((digit) => `<div style="display:inline-block;border:1px solid">\n  ${digit}\n</div>`)
        .join('\n')
      return {
        subject: v.subject,
        html: page(
          v,
          `<h2>${escaped(v.ask)}</h2><div class="otp">${boxes}</div>${paragraph(v.expires)}`,
        ),
        codes: [code],
        links: {},
      }
    },
  },
  {
    name: 'spaced-plain',
    make: (v, x) => {
      const code = x.digits(6)
      return {
        subject: v.subject,
        text: `${v.ask}\n\n${[...code].join(' ')}\n\n${v.expires}\n`,
        codes: [code],
        links: {},
      }
    },
  },
  {
    name: 'two-groups',
    make: (v, x) => {
      const code = x.digits(6)
      const shown = `${code.slice(0, 3)} ${code.slice(3)}`
      return {
        subject: v.subject,
        text: `${v.ask}\n\n${shown}\n\n${v.expires}`,
        html: page(
          v,
          `${paragraph(v.ask)}<p><b style="font-size:30px">${shown}</b></p>${paragraph(v.expires)}`,
        ),
        codes: [code],
        links: {},
      }
    },
  },
  {
    name: 'dashed-digits',
    make: (v, x) => {
      const code = x.digits(x.pick([6, 8]))
      const half = code.length / 2
      return {
        subject: v.subject,
        html: page(
          v,
          `<p>${escaped(v.ask)}<br><strong>${code.slice(0, half)}-${code.slice(half)}</strong></p>${paragraph(v.expires)}`,
        ),
        codes: [code],
        links: {},
      }
    },
  },
  {
    name: 'dashed-letters',
    make: (v, x) => {
      const code = `${x.letters(4)}-${x.letters(4)}`
      return {
        subject: v.subject,
        text: `${v.ask}\n\n${code}\n\n${v.expires}`,
        html: page(
          v,
          `${paragraph(v.ask)}<pre style="font-family:monospace">${code}</pre>${paragraph(v.expires)}`,
        ),
        codes: [code],
        links: {},
      }
    },
  },
  {
    name: 'letters-and-digits',
    make: (v, x) => {
      const code = x.letters(x.pick([6, 8]))
      return {
        subject: v.subject,
        html: page(
          v,
          `${paragraph(coded(v.say, code))}${paragraph(v.expires)}${paragraph(FOOTER_TEXT)}`,
        ),
        codes: [code],
        links: {},
      }
    },
  },
  {
    name: 'letters-alone',
    make: (v, x) => {
      const code = x.pick(['XKDQWPTB', 'HJWQZK', 'MRTVXQ', 'BDGKPQ'])
      return {
        subject: v.subject,
        html: page(
          v,
          `${paragraph(v.ask)}<div style="font-family:monospace;font-size:24px">${code}</div>${paragraph(v.expires)}`,
        ),
        codes: [code],
        links: {},
      }
    },
  },
  {
    name: 'letter-prefix',
    make: (v, x) => {
      const code = x.digits(6)
      return {
        subject: coded(v.codeSubject, `G-${code}`),
        text: `${coded(v.say, `G-${code}`)}\n\n${v.expires}`,
        codes: [code],
        links: {},
      }
    },
  },
  {
    name: 'code-and-button',
    make: (v, x) => {
      const code = x.digits(6)
      const href = `${site(v)}/verify?token=${x.letters(24)}`
      return {
        subject: v.subject,
        html: page(
          v,
          `${paragraph(v.verify)}${anchor(href, v.verifyButton)}${paragraph(v.ask)}<p style="font-size:32px">${code}</p>${paragraph(v.expires)}${anchor(`${site(v)}/help`, v.help)}`,
        ),
        codes: [code],
        links: { [href]: 'verify', [`${site(v)}/help`]: 'other' },
      }
    },
  },
]
