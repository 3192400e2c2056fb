/** Codes and links in mails as services write them. */
import { expect, test } from 'bun:test'
import { parseMail } from '../../../shared/mail/parseMail.ts'
import { type CodeMail, VOICES } from './codeMails/build.ts'
import { CORPUS } from './codeMails/corpus.ts'

const SHOW = process.env.SHOW_CODES === '1'

const base64 = (text: string) => Buffer.from(text).toString('base64').replace(/.{76}/g, '$&\r\n')

const part = (type: 'plain' | 'html', content: string) =>
  `Content-Type: text/${type}; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n${base64(content)}`

const raw = ({ id, subject, text, html }: CodeMail) =>
  Buffer.from(
    [
      'From: Service <no-reply@service.example>',
      'To: agent@inbox.example',
      `Subject: =?utf-8?B?${Buffer.from(subject).toString('base64')}?=`,
      `Message-ID: <${id}@service.example>`,
      'MIME-Version: 1.0',
      text === undefined || html === undefined
        ? part(html === undefined ? 'plain' : 'html', html ?? text ?? '')
        : `Content-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\n${part('plain', text)}\r\n--b\r\n${part('html', html)}\r\n--b--`,
    ].join('\r\n'),
  )

type Tally = { wanted: number; found: number; right: number }

const rates = ({ wanted, found, right }: Tally) => ({
  wanted,
  found,
  precision: Math.round((1000 * right) / found) / 10,
  recall: Math.round((1000 * right) / wanted) / 10,
})

const score = async (mails: CodeMail[], show: boolean) => {
  const codes = { wanted: 0, found: 0, right: 0 }
  const links = { wanted: 0, found: 0, right: 0 }
  for (const mail of mails) {
    const parsed = await parseMail(raw(mail), 'inbox.example')
    const values = parsed.codes.map(({ value }) => value)
    codes.wanted += mail.codes.length
    codes.found += values.length
    codes.right += values.filter((value) => mail.codes.includes(value)).length
    const purposes = Object.entries(mail.links).filter(([, purpose]) => purpose !== 'other')
    const named = parsed.mailLinks.filter(({ purpose }) => purpose !== 'other')
    links.wanted += purposes.length
    links.found += named.length
    links.right += named.filter(({ href, purpose }) => mail.links[href] === purpose).length
    if (show && JSON.stringify(values) !== JSON.stringify(mail.codes)) {
      process.stdout.write(
        `--- ${mail.id}\nwant ${mail.codes}\ngot  ${JSON.stringify(parsed.codes)}\n`,
      )
    }
  }
  return { mails: mails.length, codes: rates(codes), links: rates(links) }
}

test('half of the mails is aside, in every language, with and without codes', () => {
  for (const mails of [CORPUS.open, CORPUS.aside]) {
    expect(mails.length).toBeGreaterThanOrEqual(200)
    expect(mails.filter(({ codes }) => codes.length > 0).length).toBeGreaterThanOrEqual(90)
    expect(mails.filter(({ codes }) => codes.length === 0).length).toBeGreaterThanOrEqual(80)
    expect(mails.filter(({ html }) => html !== undefined).length).toBeGreaterThanOrEqual(80)
    expect(mails.filter(({ text }) => text !== undefined).length).toBeGreaterThanOrEqual(80)
  }
  expect(new Set(VOICES.map(({ language }) => language)).size).toBe(22)
  const all = [...CORPUS.open, ...CORPUS.aside]
  expect(new Set(all.map(({ id }) => id)).size).toBe(all.length)
})

test('codes and links put aside: precision 98 %, recall 95 %', async () => {
  const open = await score(CORPUS.open, SHOW)
  const aside = await score(CORPUS.aside, false)
  process.stdout.write(`open ${JSON.stringify(open)}\naside ${JSON.stringify(aside)}\n`)
  for (const { codes, links } of [open, aside]) {
    for (const { precision, recall } of [codes, links]) {
      expect(precision).toBeGreaterThanOrEqual(98)
      expect(recall).toBeGreaterThanOrEqual(95)
    }
  }
})
