/** Measures how many codes and links of test mails the service finds. */
import { parseMail } from '../../../../../shared/mail/parse/parseMail.ts'
import type { CodeMail } from './build.ts'

const base64 = (text: string) => Buffer.from(text).toString('base64').replace(/.{76}/g, '$&\r\n')

const part = (type: 'plain' | 'html', content: string) =>
  `Content-Type: text/${type}; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n${base64(content)}`

/** Returns the raw bytes of a test mail with codes or links, as input for the parser. */
const rawOf = ({ id, subject, text, html }: CodeMail) =>
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

/** Holds two numbers: how many cases are right, and how many cases there are in total. */
export type Share = { right: number; all: number }

export const percent = ({ right, all }: Share): number => Math.round((1000 * right) / all) / 10

/** Returns the 95 % confidence interval of a rate, in percent (Wilson 1927). */
export function interval({ right, all }: Share): [low: number, high: number] {
  const z = 1.96
  const rate = right / all
  const middle = rate + z ** 2 / (2 * all)
  const spread = z * Math.sqrt((rate * (1 - rate)) / all + z ** 2 / (4 * all ** 2))
  const bound = (value: number) => Math.round((1000 * value) / (1 + z ** 2 / all)) / 10
  return [bound(middle - spread), bound(middle + spread)]
}

/**
 * Counts, for each confidence, the values that were found with this confidence, and how many of these values are right.
 */
export type Calibration = Map<number, Share>

export type Score = {
  mails: number
  codes: { precision: Share; recall: Share }
  /** Counts the mails with codes, and how many of these mails have a correct code as their most certain value. */
  first: Share
  links: { precision: Share; recall: Share }
  calibration: Calibration
  /** Lists each mail for which the found codes or links differ from the expected ones. */
  misses: string[]
  /** Holds one line for each mail, with all codes and links that were found in the mail. */
  answers: string[]
}

export async function score(mails: readonly CodeMail[]): Promise<Score> {
  const count = () => ({ right: 0, all: 0 })
  const codes = { precision: count(), recall: count() }
  const links = { precision: count(), recall: count() }
  const first = count()
  const calibration: Calibration = new Map()
  const misses: string[] = []
  const answers: string[] = []
  for (const mail of mails) {
    const parsed = await parseMail(rawOf(mail), 'inbox.example')
    const values = parsed.codes.map(({ value }) => value)
    answers.push(
      JSON.stringify([
        mail.id,
        ...parsed.codes.map(({ value, kind, part, line }) => [value, kind, part, line]),
        ...parsed.mailLinks.map(({ href, purpose, text }) => [purpose, href, text]),
      ]),
    )
    const right = values.filter((value) => mail.codes.includes(value)).length
    add(codes.precision, right, values.length)
    add(codes.recall, right, mail.codes.length)
    if (mail.codes.length > 0) add(first, mail.codes.includes(values[0] ?? '') ? 1 : 0, 1)
    for (const { value, confidence } of parsed.codes) {
      const share = calibration.get(confidence) ?? count()
      add(share, mail.codes.includes(value) ? 1 : 0, 1)
      calibration.set(confidence, share)
    }
    const wanted = Object.entries(mail.links).filter(([, purpose]) => purpose !== 'other')
    const named = parsed.mailLinks.filter(({ purpose }) => purpose !== 'other')
    const agreed = named.filter(({ href, purpose }) => mail.links[href] === purpose)
    add(links.precision, agreed.length, named.length)
    add(links.recall, agreed.length, wanted.length)
    const isSame = right === values.length && right === mail.codes.length
    const lost = wanted.filter(([href]) => !agreed.some((one) => one.href === href))
    const wrong = named.filter((one) => !agreed.includes(one))
    if (!isSame) {
      misses.push(
        `${mail.id}: codes ${mail.codes.join(' ')}, found ${JSON.stringify(parsed.codes)}`,
      )
    }
    if (lost.length > 0 || wrong.length > 0) {
      misses.push(
        `${mail.id}: links ${JSON.stringify(lost)}, found ${JSON.stringify(wrong.map(({ href, purpose, text }) => [href, purpose, text, mail.links[href]]))}`,
      )
    }
  }
  return { mails: mails.length, codes, first, links, calibration, misses, answers }
}

function add(share: Share, right: number, all: number): void {
  share.right += right
  share.all += all
}
