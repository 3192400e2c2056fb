/** Tests how the service writes a mail into an mbox file. */
import { describe, expect, test } from 'bun:test'
import { mboxEntry } from '../../../../shared/mail/parse/mbox.ts'

const AT = new Date('2026-01-05T09:30:07Z')
const entry = (text: string, sender = 'ada@a.example', at = AT) =>
  mboxEntry({ sender, at, bytes: Buffer.from(text, 'latin1') }).toString('latin1')
/** Returns the text after the separator line of an mbox entry. */
const written = (text: string) => entry(text).replace(/^[^\n]*\n/, '')

describe('the separator line of an mbox entry has the sender and the time, and cannot be forged by a sender', () => {
  const line = (sender?: string, at?: Date) => entry('x', sender, at).split('\n')[0]

  test('the separator line of an mbox entry has the sender and the UTC time, with two columns for the day', () => {
    expect(line()).toBe('From ada@a.example Mon Jan  5 09:30:07 2026')
    expect(line('b@a.example', new Date('2026-12-26T23:04:59Z'))).toBe(
      'From b@a.example Sat Dec 26 23:04:59 2026',
    )
  })

  test('if a sender could break the separator line of an mbox, the line names MAILER-DAEMON instead', () => {
    const end = ' Mon Jan  5 09:30:07 2026'
    for (const sender of ['', 'a b@a.example', 'a@a.example\nFrom x', 'ä@a.example', 'a\x7f']) {
      expect(line(sender)).toBe(`From MAILER-DAEMON${end}`)
    }
    expect(line('!~')).toBe(`From !~${end}`)
    expect(line('a'.repeat(320))).toBe(`From ${'a'.repeat(320)}${end}`)
    expect(line('a'.repeat(321))).toBe(`From MAILER-DAEMON${end}`)
  })
})

describe('a mail in an mbox file stays complete, and only its lines that begin with From are quoted', () => {
  test('a mail in an mbox has LF line ends, and an empty line follows', () => {
    expect(written('A: 1\r\n\r\nHello\r\n')).toBe('A: 1\n\nHello\n\n')
    expect(written('A: 1\n\nHello')).toBe('A: 1\n\nHello\n\n')
    expect(written('')).toBe('\n\n')
  })

  test('in an mbox, each line of a mail that begins with From (also after >) gets one more > in front', () => {
    expect(written('From a\nx\n>From b\r\n>>From c\rFrom d\n')).toBe(
      '>From a\nx\n>>From b\n>>>From c\r>From d\n\n',
    )
  })

  test('lines of a mail that do not begin with From stay unchanged in an mbox', () => {
    const text = 'From: a\n From b\nx From c\nfrom d\n> From e\nFromm f\n\n'
    expect(written(text.slice(0, -1))).toBe(text)
  })

  test('a mail in an mbox keeps each of its bytes, even those that are no text', () => {
    const bytes = Uint8Array.from({ length: 256 }, (_one, n) => n)
    expect(mboxEntry({ sender: 'a@a.example', at: AT, bytes }).subarray(-258, -2)).toEqual(
      Buffer.from(bytes),
    )
  })
})
