/** Holds layouts of test mails that contain links but no code. */
import {
  anchor,
  escaped,
  FOOTER_TEXT,
  type Layout,
  page,
  paragraph,
  site,
  type Values,
} from './build.ts'

const token = (x: Values) => x.letters(28)

export const linkLayouts: Layout[] = [
  {
    name: 'verify-button',
    make: (v, x) => {
      const href = `${site(v)}/confirm-email?key=${token(x)}`
      return {
        subject: v.subject,
        html: page(
          v,
          `${paragraph(v.verify)}${anchor(href, v.verifyButton)}${paragraph(v.expires)}${paragraph(FOOTER_TEXT)}`,
        ),
        codes: [],
        links: { [href]: 'verify' },
      }
    },
  },
  {
    name: 'verify-tracked',
    make: (v, x) => {
      const href = `https://click.mailer.example/ls/click?upn=${token(x)}${token(x)}`
      const leave = `https://click.mailer.example/ls/click?upn=${token(x)}`
      return {
        subject: v.subject,
        html: page(
          v,
          `${paragraph(v.verify)}${anchor(href, v.verifyButton)}<hr><a href="${leave}">${escaped(v.unsubscribe)}</a>`,
        ),
        codes: [],
        links: { [href]: 'verify', [leave]: 'unsubscribe' },
      }
    },
  },
  {
    name: 'verify-plain',
    make: (v, x) => {
      const href = `${site(v)}/users/confirmation?confirmation_token=${token(x)}`
      return {
        subject: v.subject,
        text: `${v.verify}\n\n${v.verifyButton}:\n${href}\n\n${v.expires}\n`,
        codes: [],
        links: { [href]: 'verify' },
      }
    },
  },
  {
    name: 'reset-button',
    make: (v, x) => {
      const href = `${site(v)}/reset-password?token=${token(x)}`
      return {
        subject: v.resetButton,
        text: `${v.reset}\n\n${v.resetButton}: ${href}\n\n${v.expires}`,
        html: page(
          v,
          `${paragraph(v.reset)}${anchor(href, v.resetButton)}${paragraph(v.expires)}<p><a href="${href}">${href}</a></p>`,
        ),
        codes: [],
        links: { [href]: 'reset' },
      }
    },
  },
  {
    name: 'reset-tracked',
    make: (v, x) => {
      const href = `https://u482913.ct.mailer.example/c/${token(x)}/4829`
      return {
        subject: `${v.brand}: ${v.resetButton}`,
        html: page(
          v,
          `<h1>${escaped(v.resetButton)}</h1>${paragraph(v.reset)}<table><tr><td bgcolor="#113355">${anchor(href, v.resetButton)}</td></tr></table>${anchor(`${site(v)}/contact`, v.help)}`,
        ),
        codes: [],
        links: { [href]: 'reset', [`${site(v)}/contact`]: 'other' },
      }
    },
  },
  {
    name: 'reset-angle',
    make: (v, x) => {
      const href = `${site(v)}/password/new/${token(x)}`
      return {
        subject: v.resetButton,
        text: `${v.reset}\r\n\r\n<${href}>\r\n\r\n${v.brand}\r\n${site(v)}\r\n`,
        codes: [],
        links: { [href]: 'reset' },
      }
    },
  },
  {
    name: 'magic-button',
    make: (v, x) => {
      const href = `${site(v)}/magic-link/${token(x)}?redirect=%2Fhome`
      return {
        subject: `${v.brand}: ${v.signInButton}`,
        html: page(
          v,
          `${paragraph(v.signIn)}${anchor(href, v.signInButton)}${paragraph(v.expires)}${paragraph(FOOTER_TEXT)}`,
          v.signIn,
        ),
        codes: [],
        links: { [href]: 'sign-in' },
      }
    },
  },
  {
    name: 'magic-plain',
    make: (v, x) => {
      const href = `${site(v)}/login/email?token=${token(x)}`
      return {
        subject: v.signInButton,
        text: `${v.signIn}\n\n  ${href}\n\n${v.expires}\n`,
        codes: [],
        links: { [href]: 'sign-in' },
      }
    },
  },
  {
    name: 'magic-and-unsubscribe',
    make: (v, x) => {
      const href = `${site(v)}/sign_in?otl=${token(x)}`
      const leave = `${site(v)}/email/preferences?u=${token(x)}`
      return {
        subject: v.signInButton,
        html: page(
          v,
          `${paragraph(v.signIn)}<a href="${href}"><span style="color:#ffffff;background:#3355aa">${escaped(v.signInButton)}</span></a><p style="font-size:11px"><a href="${leave}">${escaped(v.unsubscribe)}</a> · <a href="${site(v)}/help">${escaped(v.help)}</a></p>`,
        ),
        codes: [],
        links: { [href]: 'sign-in', [leave]: 'unsubscribe', [`${site(v)}/help`]: 'other' },
      }
    },
  },
  {
    name: 'newsletter',
    make: (v, x) => {
      const leave = `${site(v)}/unsubscribe/${token(x)}`
      const links = ['/blog/2026/03/spring', '/shop/48213-lamp', '/about'].map(
        (path) => `${site(v)}${path}`,
      )
      return {
        subject: `${v.brand} 03/2026`,
        html: page(
          v,
          `<h1 style="color:#482913">${escaped(v.brand)} 2026</h1>${paragraph(x.fill(v.promo))}${links.map((href, n) => anchor(href, `${v.brand} ${n + 1}`)).join('<br>')}<p>${escaped(FOOTER_TEXT)}<br><a href="${leave}">${escaped(v.unsubscribe)}</a></p>`,
        ),
        codes: [],
        links: {
          ...Object.fromEntries(links.map((href) => [href, 'other' as const])),
          [leave]: 'unsubscribe',
        },
      }
    },
  },
]
