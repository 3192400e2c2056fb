import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { parseMail, unparseableMail } from '../../../../shared/mail/parse/parseMail.ts'
import { contentHash } from '../../../../shared/mail/parse/rawMail.ts'
import { mailCorpora } from '../../../support/mail/corpora.ts'
import { expectRecorded, recordedLine } from '../../../support/recorded.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const read = (text: string) => parseMail(bytes(text), 'mail.test')

test('the parser removes display names and duplicates from addresses, and replaces a group by its members', async () => {
  const mail = await read(
    'From: "Ada, L." <ada@x.test>\nTo: team: bob@x.test, <carl@x.test>;, bob@x.test\nCc: undisclosed-recipients:;\nReply-To: r@x.test\n\nx',
  )
  expect([mail.from, mail.to, mail.cc, mail.replyTo]).toEqual([
    ['ada@x.test'],
    ['bob@x.test', 'carl@x.test'],
    [],
    ['r@x.test'],
  ])
})

test('the content hash of a mail ignores only the header fields that relays add and the line ends of the header', () => {
  const base = 'Subject: a\r\nMessage-ID: <1@x>\r\n\r\nbody\r\n'
  const hash = contentHash(bytes(base))
  for (const same of [
    `Received: from a\r\n\tby b; date\r\n${base}`,
    `Return-Path: <x@y>\r\nDelivered-To: z\r\nAuthentication-Results: x; spf=pass\r\nARC-Seal: i=1\r\n${base}`,
    `Subject: a\nMessage-ID: <1@x>\n\nbody\r\n`,
  ]) {
    expect(contentHash(bytes(same))).toEqual(hash)
  }
  for (const other of [
    base.replace('body', 'bodY'),
    base.replace('a\r', 'b\r'),
    `X-A: 1\r\n${base}`,
    base.slice(0, -2),
  ]) {
    expect(contentHash(bytes(other))).not.toEqual(hash)
  }
})

test('a mail without a Message-ID gets the same new Message-ID on every delivery route', async () => {
  const one = await read('Received: from a\nSubject: x\n\nbody')
  const two = await read('Received: from b\nSubject: x\n\nbody')
  expect(one.links.messageId).toMatch(/^<[0-9a-f]{32}@mail\.test>$/)
  expect(two.links.messageId).toBe(one.links.messageId)
  expect((await read('Subject: x\n\nother')).links.messageId).not.toBe(one.links.messageId)
})

test('a mail that cannot be parsed is stored with its raw text', () => {
  const mail = unparseableMail(
    bytes('Subject: Broken\nMessage-ID: <b@x.test>\n\n\0raw'),
    'mail.test',
  )
  expect(mail).toMatchObject({
    subject: 'Broken',
    labels: ['received', 'unread', 'unparseable'],
    links: { messageId: '<b@x.test>' },
  })
  expect(mail.text).toContain('\ufffdraw')
})

for (const { name, items } of mailCorpora()) {
  test(`each mail of the test set ${name} is parsed into fields without U+0000, and each mail of the repository into the recorded fields`, async () => {
    expect(items.length).toBeGreaterThan(150)
    const lines: string[] = []
    for (const path of items) {
      const raw = readFileSync(path)
      const mail = await parseMail(raw, 'mail.test').catch(() => unparseableMail(raw, 'mail.test'))
      expect([path, JSON.stringify({ ...mail, contentHash: '' }).includes('\\u0000')]).toEqual([
        path,
        false,
      ])
      expect(mail.links.messageId).toMatch(/^<.+@.+>$/)
      // The test leaves out the confidence of a code, because each new training of the model changes it.
      const codes = mail.codes.map(({ confidence: _, ...code }) => code)
      const contentHash = mail.contentHash.toString('hex')
      lines.push(recordedLine([basename(path), { ...mail, codes, contentHash }]))
    }
    // The public mails are not in the repository, so a fresh clone has no file for their results.
    if (name === 'own') expectRecorded('mails/parsed.jsonl', lines)
  })
}

test.each([
  ['of a mail without any header', 'Just text\r\nand more.\r\n', 'Just text\nand more.'],
  ['of a mail without a blank line', 'Subject: x\r\nText at once.\r\n', 'Text at once.'],
  [
    'in a multipart whose boundary never comes',
    'Content-Type: multipart/mixed; boundary=b\r\n\r\nGrüße.\r\n--other\r\n\r\nMore.\r\n',
    'Grüße.\n--other\n\nMore.',
  ],
  [
    'in a multipart that names no boundary',
    'Content-Type: multipart/mixed\r\n\r\nText.\r\n',
    'Text.',
  ],
])(
  'a mail with the text %s is shown as raw text, with the label unparseable',
  async (_, raw, want) => {
    const { text, extractedText, labels } = await parseMail(Buffer.from(raw), 'mail.test')
    expect([text, extractedText, labels]).toEqual([
      want,
      want,
      ['received', 'unread', 'unparseable'],
    ])
  },
)

test('a mail without a body has an empty text, and does not get the label unparseable', async () => {
  for (const raw of ['', 'Subject: x\r\n', 'Subject: x\r\n\r\n \r\n']) {
    const { text, labels } = await parseMail(Buffer.from(raw), 'mail.test')
    expect([text.trim(), labels]).toEqual(['', ['received', 'unread']])
  }
})
