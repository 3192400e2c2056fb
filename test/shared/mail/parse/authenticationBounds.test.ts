import { expect, test } from 'bun:test'
import { authenticable } from '../../../../shared/mail/parse/authenticationBounds.ts'

const HEAD = 'From: Ada <ada@example.com>\r\nTo: b@c.test\r\n'
const judge = (text: string) => authenticable(Buffer.from(text))

test.each([
  ['', 'whole'],
  [HEAD, 'whole'],
  [`${HEAD}\r\nbody`, 'whole'],
  [`${HEAD}\n\n\nbody`, 'whole'],
  [`${HEAD}References:${'\r\n <x@y.test>'.repeat(1_000)}\r\n\r\nbody`, 'whole'],
  [`${HEAD}\r\n${`${'x'.repeat(76)}\r\n`.repeat(400_000)}`, 'whole'],
  [`${HEAD}\r\n${`${'x'.repeat(998)}\r\n`.repeat(1_000)}`, 'whole'],
] as const)('the authentication of a usual mail checks the whole mail (case %#)', (text, want) =>
  expect(judge(text)).toBe(want),
)

test('the authentication reads a header of 256 KB and a line of 64 KB, and not one byte more', () => {
  const header = (bytes: number) => `${HEAD}X: ${'a'.repeat(bytes - HEAD.length - 5)}\r\n`
  expect(judge(`${header(262_144)}\r\nbody`)).toBe('whole')
  expect(judge(`${header(262_145)}\r\nbody`)).toBe('no')
  const line = (bytes: number) => `${'x'.repeat(bytes - 2)}\r\n`
  expect(judge(`${HEAD}\r\n${line(65_536)}`)).toBe('whole')
  expect(judge(`${HEAD}\r\n${line(65_537)}`)).toBe('unsigned')
})

test.each([
  ['millions of lines', 'ab\r\n'.repeat(1_100_000)],
  ['one endless line', 'x'.repeat(100_000)],
  ['blank lines', '\r\n'.repeat(20_000)],
  ['lines of blanks', ' \t\r\n'.repeat(20_000)],
])('a mail body of %s is not hashed for DKIM', (_, body) =>
  expect(judge(`${HEAD}\r\n${body}`)).toBe('unsigned'),
)

test.each([
  ['a field folded over thousands of lines', `${HEAD}X: a\r\n${' \r\n'.repeat(6_000)}`],
  ['thousands of fields', `${HEAD}${'X: a\r\n'.repeat(6_000)}`],
  ['a field of megabytes', `${HEAD}X: ${'a'.repeat(1_000_000)}\r\n`],
  ['thousands of authors', `FROM: ${'a@b.test,'.repeat(3_000)}\r\n`],
  ['thousands of authors, folded', `From: a@b.test${',\r\n a@b.test'.repeat(3_000)}\r\n`],
  ['thousands of authors with a blank before the colon', `From :${' a@b.test,'.repeat(3_000)}\r\n`],
  [
    'thousands of authors behind a vertical tab',
    `From: a@b.test${',\n\va@b.test'.repeat(3_000)}\n`,
  ],
  [
    'thousands of authors behind a carriage return',
    `From: a@b.test${',\n\ra@b.test'.repeat(3_000)}\n`,
  ],
  [
    'thousands of authors with the colon on the next line',
    `From\r\n :${' a@b.test,'.repeat(3_000)}\r\n`,
  ],
  [
    'thousands of authors in a first line that begins with a blank',
    ` From:${' a@b.test,'.repeat(3_000)}\r\n`,
  ],
])('a mail header of %s is not read for authentication', (_, header) =>
  expect(judge(`${header}\r\nbody`)).toBe('no'),
)
