import { expect, test } from 'bun:test'
import { withBoundedParts } from '../../../shared/mail/mimeBounds.ts'
import { readReceivedMail } from '../../../shared/mail/receivedMail.ts'

const HEAD =
  'From: a@b.c\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary="b 1"\r\n\r\n'
const part = (n: number) =>
  `--b 1\r\nContent-Disposition: attachment; filename=f${n}.txt\r\n\r\n${n}\r\n`
const message = (parts: number) =>
  Buffer.from(`${HEAD}${Array.from({ length: parts }, (_, n) => part(n)).join('')}--b 1--\r\n`)

test('what a mail program makes is left as it is', () => {
  for (const text of ['', 'Subject: x\r\n\r\nbody', `${HEAD}--b 1\r\n\r\nx\r\n--b 1--\r\n`]) {
    const raw = Buffer.from(text)
    expect(withBoundedParts(raw)).toBe(raw)
  }
  const raw = message(2_000)
  expect(withBoundedParts(raw)).toBe(raw)
})

test('of thousands of parts the first two thousand are read', async () => {
  const { attachments, from } = await readReceivedMail(message(5_000), 'mail.test')
  expect(from).toEqual(['a@b.c'])
  // Described are a thousand.
  expect(attachments).toHaveLength(1_000)
  expect(attachments[999]?.filename).toBe('f999.txt')
  expect(withBoundedParts(message(5_000)).length).toBeLessThan(message(2_001).length)
})

test('lines that begin with two hyphens are no parts', async () => {
  const sql = '-- a comment\r\n'.repeat(10_000)
  const raw = Buffer.from(`${HEAD}--b 1\r\nContent-Type: text/plain\r\n\r\n${sql}--b 1--\r\n`)
  const { text } = await readReceivedMail(raw, 'mail.test')
  expect(text.split('-- a comment')).toHaveLength(10_001)
})

test('300,000 empty parts cost no more memory than they are worth', async () => {
  const raw = Buffer.from(`${HEAD}${'--b 1\r\n\r\nx\r\n'.repeat(300_000)}--b 1--\r\n`)
  const before = process.memoryUsage().rss
  const { text } = await readReceivedMail(raw, 'mail.test')
  expect(text.length).toBeGreaterThan(1_000)
  expect(process.memoryUsage().rss - before).toBeLessThan(200 * 1024 * 1024)
})
