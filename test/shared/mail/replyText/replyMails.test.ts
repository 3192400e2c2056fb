/**
 * Measures the reply text of test mails in the forms of mail clients. corpus.test.ts measures public sets of mails in
 * the same way.
 */
import { expect, test } from 'bun:test'
import { parseMail } from '../../../../shared/mail/parse/parseMail.ts'
import { expectRecorded } from '../../../support/recorded.ts'
import type { ReplyMail } from './replyMails/build.ts'
import { CORPUS } from './replyMails/corpus.ts'

const SHOW = process.env.SHOW_REPLIES === '1'

const base64 = (text: string) => Buffer.from(text).toString('base64').replace(/.{76}/g, '$&\r\n')

/** Returns the bytes of a mail that has one part. */
const raw = ({ id, text, html }: ReplyMail) =>
  Buffer.from(
    [
      'From: Sender <sender@example.org>',
      'To: agent@inbox.example',
      'Subject: Re: 2026-118',
      `Message-ID: <${id}@example.org>`,
      'MIME-Version: 1.0',
      `Content-Type: text/${html === undefined ? 'plain' : 'html'}; charset=utf-8`,
      'Content-Transfer-Encoding: base64',
      '',
      base64(html ?? text ?? ''),
    ].join('\r\n'),
  )

const squeeze = (text: string) =>
  text
    .normalize('NFC')
    .replace(/[\u00ad\u200b\u200c\u200e\u200f\u202a-\u202e\ufeff]/g, '')
    .replace(/\s+/g, ' ')
    .trim()

const score = async (mails: ReplyMail[], show: boolean) => {
  const tally = { mails: mails.length, accepted: 0, core: 0, coreExact: 0, emptied: 0 }
  const others: string[] = []
  for (const mail of mails) {
    const { extractedText } = await parseMail(raw(mail), 'inbox.example')
    if (extractedText !== mail.expected) others.push(JSON.stringify([mail.id, extractedText]))
    const got = squeeze(extractedText)
    const wanted = [mail.expected, ...(mail.alt ?? [])].map(squeeze)
    const accepted = wanted.includes(got)
    tally.accepted += Number(accepted)
    tally.core += Number(mail.tier === 'core')
    tally.coreExact += Number(mail.tier === 'core' && got === wanted[0])
    tally.emptied += Number(got === '' && !wanted.includes(''))
    if (!accepted && show)
      process.stdout.write(
        `--- ${mail.id}\nwant ${JSON.stringify(mail.expected)}\ngot  ${JSON.stringify(extractedText)}\n`,
      )
  }
  const percent = (part: number, of: number) => Math.round((1000 * part) / of) / 10
  return {
    ...tally,
    others,
    accepted: percent(tally.accepted, tally.mails),
    coreExact: percent(tally.coreExact, tally.core),
  }
}

test('every test mail has a unique name, and has a text part or an HTML part', () => {
  const mails = [...CORPUS.open, ...CORPUS.aside]
  expect(new Set(mails.map(({ id }) => id)).size).toBe(mails.length)
  expect(mails.filter(({ text, html }) => (text === undefined) === (html === undefined))).toEqual(
    [],
  )
})

const { others: openOthers, ...open } = await score(CORPUS.open, SHOW)
const { others: asideOthers, ...aside } = await score(CORPUS.aside, false)

test('for each test mail, the reply text equals the text that its author expects, or the text that the repository records', () => {
  expectRecorded('replies/others/open.jsonl', openOthers)
  expectRecorded('replies/others/aside.jsonl', asideOthers)
})

test('at least 99 % of the test mails for authors of the rules and 97 % of the reserved test mails have an accepted reply text, and no reply text is wrongly empty', () => {
  process.stdout.write(`open ${JSON.stringify(open)}\naside ${JSON.stringify(aside)}\n`)
  expect(open).toMatchObject({ mails: 234, emptied: 0 })
  expect(aside).toMatchObject({ mails: 264, emptied: 0 })
  expect(open.accepted).toBeGreaterThanOrEqual(99)
  expect(open.coreExact).toBeGreaterThanOrEqual(99)
  expect(aside.accepted).toBeGreaterThanOrEqual(97)
  expect(aside.coreExact).toBeGreaterThanOrEqual(97)
})
