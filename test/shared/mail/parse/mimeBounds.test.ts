import { expect, test } from 'bun:test'
import { parseBounded } from '../../../../shared/mail/parse/mimeBounds.ts'
import { parseMail, unparseableMail } from '../../../../shared/mail/parse/parseMail.ts'
import '../../../support/process/alone.ts'
import '../../../support/long.ts'

const HEAD =
  'From: a@b.c\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary="b 1"\r\n\r\n'
const part = (n: number) =>
  `--b 1\r\nContent-Disposition: attachment; filename=f${n}.txt\r\n\r\n${n}\r\n`
const message = (parts: number) =>
  Buffer.from(`${HEAD}${Array.from({ length: parts }, (_, n) => part(n)).join('')}--b 1--\r\n`)

test('a mail of up to 2,000 parts is parsed completely', async () => {
  for (const text of ['', 'Subject: x\r\n\r\nbody', `${HEAD}--b 1\r\n\r\nx\r\n--b 1--\r\n`]) {
    expect((await parseBounded(Buffer.from(text))).isWhole).toBe(true)
  }
  const { email, isWhole } = await parseBounded(message(1_999))
  expect([email.attachments.length, isWhole]).toEqual([1_999, true])
})

test('at most 2,000 parts of a mail are parsed; a mail with more parts gets the label truncated', async () => {
  const { attachments, from, labels } = await parseMail(message(5_000), 'mail.test')
  expect([from, labels]).toEqual([['a@b.c'], ['received', 'unread', 'truncated']])
  // The parsed mail has at most 1,000 attachments, although the message has more.
  expect(attachments).toHaveLength(1_000)
  expect(attachments[999]?.filename).toBe('f999.txt')
  expect((await parseBounded(message(5_000))).email.attachments.length).toBeLessThanOrEqual(2_000)
})

test('parsing the first million lines of a mail takes a limited amount of memory', async () => {
  const before = process.memoryUsage().rss
  const raw = Buffer.from(`From: a@b.c\r\n\r\n${'a\r\n'.repeat(5_000_000)}`)
  const { text, extractedText, labels } = await parseMail(raw, 'mail.test')
  expect(labels).toContain('truncated')
  for (const one of [text, extractedText]) expect(one.length).toBeWithin(999_990, 1_000_001)
  expect(process.memoryUsage().rss - before).toBeLessThan(700 * 1024 * 1024)
})

test('the service keeps at most a million characters of a mail’s plain text, or of the text in its HTML', async () => {
  const words = 'many words '.repeat(130_000)
  for (const [type, body] of [
    ['text/plain', words],
    ['text/html', `<p>${words}</p>`],
  ]) {
    const raw = Buffer.from(`From: a@b.c\r\nContent-Type: ${type}\r\n\r\n${body}\r\n`)
    const { text, extractedText, labels } = await parseMail(raw, 'mail.test')
    expect([text.length, extractedText.length <= 1_000_000]).toEqual([1_000_000, true])
    expect(labels).toContain('truncated')
  }
  const short = Buffer.from(`From: a@b.c\r\n\r\n${'x'.repeat(999_000)}\r\n`)
  expect((await parseMail(short, 'mail.test')).labels).not.toContain('truncated')
})

test('the addresses of one header field together have at most 16,000 characters', async () => {
  const list = (count: number) =>
    Array.from({ length: count }, (_, n) => `${n}${'x'.repeat(300)}@example.com`).join(',\r\n ')
  for (const field of ['From', 'To', 'Cc', 'Reply-To']) {
    const raw = Buffer.from(`${field}: ${list(900)}\r\n\r\nx\r\n`)
    const mail = await parseMail(raw, 'mail.test')
    const kept = { From: mail.from, To: mail.to, Cc: mail.cc, 'Reply-To': mail.replyTo }[field]!
    expect(kept.join('').length).toBeWithin(15_000, 16_001)
    expect(mail.labels).toContain('truncated')
  }
  const usual = await parseMail(Buffer.from(`To: ${list(40)}\r\n\r\nx\r\n`), 'mail.test')
  expect([usual.to.length, usual.labels]).toEqual([40, ['received', 'unread']])
})

test('a line that begins with two hyphens but is not a boundary does not begin a MIME part', async () => {
  const sql = '-- a comment\r\n'.repeat(10_000)
  const raw = Buffer.from(`${HEAD}--b 1\r\nContent-Type: text/plain\r\n\r\n${sql}--b 1--\r\n`)
  const { text } = await parseMail(raw, 'mail.test')
  expect(text.split('-- a comment')).toHaveLength(10_001)
})

test.each([
  ['unfolded', 'boundary="b 1"', 'b 1'],
  ['folded', 'boundary=\r\n "b"', 'b'],
  ['folded within its quotes', 'boundary="b\r\n c"', 'b c'],
  ['in pieces (RFC 2231)', 'boundary*0="b"; boundary*1="c"', 'bc'],
  ['with a charset (RFC 2231)', "boundary*=us-ascii''b%63", 'bc'],
  ['with a quoted pair', 'boundary="b\\"c"', 'b"c'],
  ['with a comment', 'boundary(x)=bc', 'bc'],
])(
  '300,000 small MIME parts use bounded memory if their boundary is %s',
  async (_, parameter, boundary) => {
    const raw = Buffer.from(
      `From: a@b.c\r\nContent-Type: multipart/mixed; ${parameter}\r\n\r\n${`--${boundary}\r\n\r\nx\r\n`.repeat(300_000)}--${boundary}--\r\n`,
    )
    Bun.gc(true)
    const before = process.memoryUsage().rss
    const { text } = await parseMail(raw, 'mail.test')
    expect(text.length).toBeGreaterThan(1_000)
    expect(process.memoryUsage().rss - before).toBeLessThan(200 * 1024 * 1024)
  },
)

test('parsing a mail header of 34 MB uses only a limited amount of memory', async () => {
  for (const field of ['X: a\r\n', ' \r\n']) {
    const raw = Buffer.from(`From: a@b.c\r\n${field.repeat(34e6 / field.length)}\r\nbody`)
    Bun.gc(true)
    const before = process.memoryUsage().rss
    const mail = await parseMail(raw, 'mail.test').catch(() => unparseableMail(raw, 'x'))
    expect(mail.contentHash).toHaveLength(32)
    // The test allows half of the memory limit in workers/mail/inbound/mailParser.ts. In a measurement, the parser took
    // 450 to 535 MB.
    expect(process.memoryUsage().rss - before).toBeLessThan(768 * 1024 * 1024)
  }
})
