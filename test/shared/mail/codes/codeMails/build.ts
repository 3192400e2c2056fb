/**
 * Builds the parts of test mails with codes and links: the phrases of invented services, and values that differ from
 * mail to mail.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'

type Purpose = 'verify' | 'reset' | 'sign-in' | 'unsubscribe' | 'other'

type Content = {
  subject: string
  /** Holds the plain text of the mail. Each mail has at least one of `text` and `html`. */
  text?: string
  html?: string
  /** Lists the codes that a person would type from this mail. */
  codes: string[]
  /** Maps the URL of each link to the purpose of the link. */
  links: Record<string, Purpose>
}

export type CodeMail = Content & { id: string }

export type Layout = { name: string; make: (v: Voice, x: Values) => Content }

/** Names the phrases of an invented service, in the order of their lines in the fixture files. */
const FIELDS = [
  'brand',
  'subject',
  'codeSubject',
  'say',
  'ask',
  'expires',
  'verify',
  'verifyButton',
  'reset',
  'resetButton',
  'signIn',
  'signInButton',
  'unsubscribe',
  'order',
  'shipping',
  'invoice',
  'alert',
  'promo',
  'ticket',
  'advice',
  'booking',
  'help',
] as const

export type Voice = Record<(typeof FIELDS)[number], string> & { language: string; name: string }

/** Returns the first byte of the SHA-256 hash of a name. */
export const hashOf = (name: string): number => createHash('sha256').update(name).digest()[0] ?? 0

const folder = resolve(import.meta.dir, '../../../../fixtures/codes')

function readVoices(file: string): Voice[] {
  return readFileSync(resolve(folder, file), 'utf8')
    .trim()
    .split('\n\n')
    .map((block) => {
      const lines = block.split('\n')
      if (lines.length !== FIELDS.length) throw new Error(`lines of ${lines[0]}`)
      const [name = '', ...brand] = lines[0]!.split(' ')
      const fields = Object.fromEntries(FIELDS.map((field, n) => [field, lines[n]]))
      return { ...fields, brand: brand.join(' '), name, language: name.slice(0, 2) } as Voice
    })
}

export const VOICES = [...readVoices('voicesWest.txt'), ...readVoices('voicesEast.txt')]

export type Values = {
  digits: (length: number) => string
  letters: (length: number) => string
  pick: <T>(choices: readonly T[]) => T
  /** Fills numbers that are not codes into a sentence. */
  fill: (sentence: string) => string
}

const DATES: Record<string, string[]> = {
  ja: ['2026年3月12日', '2026/03/12'],
  zh: ['2026年3月12日', '2026-03-12 18:45:07'],
  ko: ['2026년 3월 12일', '2026.03.12'],
  en: ['March 12, 2026', '12 Mar 2026 at 18:45', '03/12/2026'],
  hu: ['2026. 03. 12.', '2026.03.12.'],
  ar: ['١٢ مارس ٢٠٢٦', '12/03/2026'],
}

const PLAIN: Record<string, string[]> = {
  o: ['#10482913', '114-4829134-1293847', 'A-20418', '902841', '#4821', 'W7K2M9QX'],
  p: ['€ 1.249,00', '$48.90', '12 800 kr', '¥12,800', '249,90 €', 'USD 1,204.50', '482913 Ft'],
  t: ['1Z999AA10123456784', '00340434161094022115', 'RR123456785DE', '482913057712', 'JJD0148213'],
  z: ['90210', '75011', '1012 AB', '10115', '110 00', '150-0043', '04524'],
  i: ['INV-2026-00417', '2026/118', '4829013', 'RE-482913', 'F260312'],
  ip: ['203.0.113.48', '198.51.100.207', '2001:db8::48:2913'],
  v: ['128.0', '131.0.6778.86', '140.0.2'],
  x: ['SPRING20', 'X7KQ2M', 'WELCOME2026', 'AB-4829'],
  k: ['#482913', 'REQ-48213', '[4829-13]', 'SUP2049'],
  tel: ['+49 30 1234567', '0800 123 456', '(555) 010-4477', '+33 1 99 00 48 29', '116 116'],
  b: ['QX7P2L', '4829134', 'K2M9QX', '813-204-77'],
}

/**
 * Returns the invented values (codes, names, numbers) of a test mail. The values depend only on the name of the mail.
 */
export function valuesOf(name: string, language: string): Values {
  let state = createHash('sha256').update(name).digest().readUInt32LE(0)
  const next = (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
  const pick = <T>(choices: readonly T[]): T => choices[next(choices.length)]!
  const draw = (alphabet: string, length: number) =>
    Array.from({ length }, () => alphabet[next(alphabet.length)]).join('')
  const given = (key: string): string =>
    key === 'd'
      ? pick(DATES[language] ?? ['12.03.2026', '12/03/2026', '12. 3. 2026 18:45'])
      : pick(PLAIN[key]!)
  return {
    digits: (length) => draw('0123456789', length),
    // A generated code of letters also contains at least one digit, except in the mail layout `letters-alone`.
    letters: (length) =>
      draw('ABCDEFGHJKLMNPQRSTUVWXYZ23456789', length - 2) + draw('2345678', 1) + draw('KQX', 1),
    pick,
    fill: (sentence) =>
      sentence.replace(/\{(o|p|t|z|i|ip|v|x|k|tel|b|d)\}/g, (_, key: string) => given(key)),
  }
}

export const coded = (sentence: string, code: string): string => sentence.replace('{c}', code)

export const escaped = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/** Returns the web address of the invented service that the test mails come from. */
export const site = ({ name }: Voice) => `https://${name.replace('.', '-')}.example`

const isRightToLeft = ({ language }: Voice) => language === 'ar'

/** Returns an HTML page in the form that mail builders produce: nested tables, and a hidden preview text. */
export const page = (v: Voice, body: string, preview = '') =>
  `<!DOCTYPE html><html lang="${v.language}"${isRightToLeft(v) ? ' dir="rtl"' : ''}><head><meta charset="utf-8"><title>${escaped(v.brand)}</title><style>body{color:#333333;background:#f4f4f7}.btn{background:#482913;color:#ffffff}@media (max-width:600px){.c{width:100%!important}}</style></head><body>${
    preview === ''
      ? ''
      : `<div style="display:none;max-height:0;overflow:hidden">${escaped(preview)}${'&#8199;&zwnj;'.repeat(20)}</div>`
  }<table role="presentation" width="100%"><tr><td align="center"><table class="c" width="600"><tr><td style="padding:24px">${body}</td></tr></table></td></tr></table></body></html>`

export const paragraph = (text: string) => `<p style="margin:0 0 16px">${escaped(text)}</p>`

export const anchor = (href: string, text: string) =>
  `<a class="btn" href="${escaped(href)}" target="_blank">${escaped(text)}</a>`

/** Holds a mail footer with a year, an address and a telephone number. */
export const FOOTER_TEXT = '© 2026 · Hafenstrasse 48, 20457 · +49 40 482 913 0'
