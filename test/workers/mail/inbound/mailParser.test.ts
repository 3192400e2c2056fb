import { expect, test } from 'bun:test'
import { createMailParser } from '../../../../workers/mail/inbound/mailParser.ts'
import { amount } from '../../../support/database/extent.ts'
import '../../../support/long.ts'

const MB = 1024 * 1024
const OVER_TIME = 'the parser took over 2000 ms'
const HEAD = 'From: ada@example.com\r\nSubject: s\r\nMessage-ID: <1@example.com>\r\n'
const mail = (subject: string, bytes: number) =>
  Buffer.from(`${HEAD.replace(': s', `: ${subject}`)}\r\n${'Lorem ipsum\r\n'.repeat(bytes / 13)}`)

test('a large message is parsed like a small message, and its attachment stays complete', async () => {
  const parser = createMailParser('mail.test')
  const attachment = Buffer.alloc(2 * MB, 'content').toString('base64')
  const raw = Buffer.from(
    `${HEAD}Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nHello\r\n` +
      `--b\r\nContent-Type: text/csv\r\nContent-Disposition: attachment; filename=a.csv\r\n` +
      `Content-Transfer-Encoding: base64\r\n\r\n${attachment}\r\n--b--\r\n`,
  )
  const { mail: parsed, search } = await parser.parse(raw, { projectId: 'inbox' })
  expect(parsed).toMatchObject({ from: ['ada@example.com'], text: expect.stringMatching(/^Hello/) })
  expect(Buffer.isBuffer(parsed.contentHash)).toBe(true)
  expect(Buffer.from(search).includes(':hello')).toBe(true)
  const [first] = parsed.attachments
  expect([
    first!.filename,
    Buffer.from(first!.content).equals(Buffer.alloc(2 * MB, 'content')),
  ]).toEqual(['a.csv', true])
})

test('a message that kills its parser, or takes too much time or memory, does not affect any other message', async () => {
  const deep = Array.from(
    { length: 150 },
    (_, n) => `Content-Type: multipart/mixed; boundary="b${n}"\n\n--b${n}\n`,
  )
  const parser = createMailParser('mail.test')
  const fatal = parser.parse(Buffer.from(deep.join('')), { projectId: 'inbox', isolated: true })
  const [after] = await Promise.all([
    parser.parse(mail('after', MB), { projectId: 'inbox' }),
    expect(fatal).rejects.toThrow(),
  ])
  expect(after.mail.subject).toBe('after')

  // The parser must be stopped, because in a measurement it took 14 s or more for a message with many base64 pieces of
  // one letter each.
  const pieces = Buffer.from(
    `${HEAD}Content-Transfer-Encoding: base64\r\n\r\n${'YQ=='.repeat(4 * MB)}`,
  )
  const hasty = createMailParser('mail.test', undefined, {
    timeMaxMs: 2_000,
    memoryMaxBytes: Number.MAX_SAFE_INTEGER,
  })
  const late = hasty.parse(pieces, { projectId: 'inbox' })
  const [next] = await Promise.all([
    hasty.parse(mail('next', 100_000), { projectId: 'other' }),
    expect(late).rejects.toThrow(OVER_TIME),
  ])
  expect(next.mail.subject).toBe('next')

  const small = createMailParser('mail.test', undefined, { timeMaxMs: 60_000, memoryMaxBytes: 1 })
  await expect(small.parse(pieces, { projectId: 'inbox' })).rejects.toThrow(/too much memory/)
})

test('inboxes use the mail parser in rotation, so a flood of large mail to one inbox delays another inbox by one message at most', async () => {
  const parser = createMailParser('mail.test')
  const order: string[] = []
  const parse = async (inbox: string) => {
    await parser.parse(mail('x', MB), { projectId: inbox })
    order.push(inbox)
  }
  await Promise.all([
    ...Array.from({ length: amount(20, 8) }, () => parse('flooded')),
    parse('quiet'),
  ])
  expect(order.indexOf('quiet')).toBeLessThan(6)
})
