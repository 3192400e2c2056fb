import { expect, test } from 'bun:test'
// @ts-expect-error The library has no types for its parser.
import { parseHeaders } from 'mailauth/lib/tools'
import PostalMime from 'postal-mime'
import { authenticable, countFields } from '../../../../shared/mail/parse/authenticationBounds.ts'

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

test('a header field that ends with two CRs is read in only one way, so all mail programs find the same header', () => {
  expect(judge(`${HEAD}X: a\r\r\n b\r\r\n\r\nbody`)).toBe('whole')
})

test('the authentication reads a header of at most 256 KB with lines of at most 64 KB, and not one byte more', () => {
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

test.each([
  ['thousands of folded lines after an empty line', `\r\nX: y${'\r\n a'.repeat(6_000)}\r\n\r\n`],
  ['thousands of folded lines after an empty line by LF', `\nX: y${'\n a'.repeat(6_000)}\n\n`],
  ['a first line of megabytes', '\x80'.repeat(1_000_000)],
  ['a line CR CR LF', `${HEAD}\r\r\nbody`],
  ['a CR in a field', `${HEAD}X: a\rb\r\n\r\nbody`],
  ['a name after a byte order mark', `\ufeff${HEAD}\r\nbody`],
  ['a name before a vertical tab', `From\v: ada@example.com\r\n\r\nbody`],
  ['a folded name with another character', `\ufeffFrom\r\n : ada@example.com\r\n\r\nbody`],
  ['such a name after a line of one NUL', `${HEAD}\0\r\nFrom\v: ada@example.com\r\n\r\n`],
])('the authentication does not read a header with %s', (_, text) => expect(judge(text)).toBe('no'))

test('the authentication reads a header whose folded value holds UTF-8 and a colon', () =>
  expect(judge(`${HEAD}Subject: Rückfrage\r\n für Köln: morgen\r\n\r\nbody`)).toBe('whole'))

test.each([
  ['From: a@b.test\r\n\r\nFrom: c@d.test\r\n', 1],
  ['from : a@b.test\r\n', 1],
  ['From\r\n : a@b.test\r\nSubject: x\r\n From: y\r\n', 1],
  ['From: a@b.test\nX: y\nFROM: c@d.test\n', 2],
  ['From a@b.test 12:00\nX-From: y\n', 0],
])('the service counts the From fields of a mail header correctly (case %#)', (text, count) =>
  expect(countFields(Buffer.from(text)).get('from') ?? 0).toBe(count),
)

test('for each randomly generated header that authentication may read, the libraries mailauth and postal-mime find the same From and Subject fields', async () => {
  const pieces = ['From', 'Subject', ':', ': a@b.test', '\r\n', '\n', '\r', ' ', '\t', '\v', '\0']
  pieces.push('\xa0', '\xef\xbb\xbf', '\x85', 'x', '\r\n\r\n', '\n\n')
  let seed = 7
  const draw = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
    return seed % below
  }
  const isAuthor = (key: unknown) => key === 'from' || key === 'subject'
  let read = 0
  for (let round = 0; round < 4_000; round++) {
    const drawn = Array.from({ length: 3 + draw(14) }, () => pieces[draw(pieces.length)])
    const raw = Buffer.from(`To: x@y.test\r\n${drawn.join('')}`, 'latin1')
    if (authenticable(raw) === 'no') continue
    read++
    const end = /\n\r?\n/.exec(raw.toString('latin1'))
    const header = raw.subarray(0, end === null ? raw.length : end.index + end[0].length)
    const { parsed } = parseHeaders(header) as { parsed: { key: string | null; line: Buffer }[] }
    // A header field without a colon has no value, so no mail program shows the field as an author or a subject.
    const names = parsed.filter(({ line }) => line.includes(':')).map(({ key }) => key)
    const { headers, headerLines } = await new PostalMime().parse(raw)
    expect(headerLines).toHaveLength(headers.length)
    const shown = headers.filter((_, n) => headerLines[n]!.line.includes(':')).map(({ key }) => key)
    expect([raw.toString('latin1'), shown.filter(isAuthor)]).toEqual([
      raw.toString('latin1'),
      names.filter(isAuthor),
    ])
  }
  expect(read).toBeGreaterThan(400)
})
