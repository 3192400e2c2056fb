/**
 * Tests how long a line or block may be so that the service still treats it as a part of quoted history, a signature or
 * a footer. A longer line or block counts as the writer’s own text.
 */
import { expect, test } from 'bun:test'
import { replyText } from '../../../../shared/mail/replyText/replyText.ts'

const OWN = 'I will be there at noon.'

/** Returns a text of exactly `length` characters: `start`, then letters, then `end`. */
const filled = (start: string, length: number, end = '') =>
  start + 'B'.repeat(length - start.length - end.length) + end
const times = (part: string, count: number, between: string) =>
  Array(count).fill(part).join(between)

test.each<[name: string, most: number, (size: number) => string]>([
  [
    'characters of an attribution without a known verb above a quote',
    160,
    (n) => `${filled('On Wed, Oct 8, 2014 at 10:33 AM, ', n, ' skriibed:')}\n> hi`,
  ],
  [
    'characters of an attribution without a year above a quote',
    80,
    (n) => `${filled('On Wed 8 ', n, ' wrote:')}\n> hi`,
  ],
  [
    'characters of an attribution that the end of the mail cuts off',
    400,
    (n) => filled('On Mon, 2 Mar 2026 at 9:14 Ann ', n, ' <ann@x'),
  ],
  [
    'lines of a wrapped attribution',
    6,
    (n) =>
      `On Wed, Oct 8, 2014 at 10:33 AM\n${times('Bob', n - 2, '\n')}\n<bob@x.test> wrote:\n\n> hi`,
  ],
  [
    'characters of an attribution on several lines',
    600,
    (n) =>
      `On Wed, Oct 8, 2014 at 10:33 AM\n${filled('Bob ', n - 353)}\n${filled('', 300)}\n<bob@x.test> wrote:\n\n> hi`,
  ],
  ['characters of a separator of GroupWise', 400, (n) => `>>>${'1:00>>>'.padStart(n - 3)}\nold`],
  ['words behind the name of a device', 10, (n) => `Sent from my Foo 12. ${times('typo', n, ' ')}`],
  ['characters of a device line', 120, (n) => filled('Sent from my ', n)],
  [
    'characters of a line with an unknown model of a device',
    80,
    (n) => filled('Lähetetty ', n, ' 12:sta'),
  ],
  ['words of a line of Outlook', 7, (n) => `Outlook ${times('for', n - 2, ' ')} iOS`],
  ['lines of a signature below a drawn line', 4, (n) => `*****\n${times('Ann Nowak', n, '\n')}`],
  ['characters of the footer of a mailing list', 80, (n) => filled('To unsubscribe ', n)],
  [
    'characters of the note of a virus scanner',
    400,
    (n) => filled('This mail was scanned by avast virus ', n),
  ],
])('the reply text omits quoted text only up to this number of %s: %d', (_name, most, ending) => {
  const mail = (size: number) => `${OWN}\n\n${ending(size)}`
  expect(replyText(mail(most))).toBe(OWN)
  expect(replyText(mail(most + 1))).not.toBe(OWN)
})

test('the writer’s repeated name starts a signature only if its line has at most 60 characters and the line below at most 80', () => {
  const mail = (name: number, below: number) =>
    `${OWN}\n\nBest,\nAnn\n\n${filled('Ann Nowak ', name)}\n${filled('', below)}`
  expect(replyText(mail(60, 80))).toBe(`${OWN}\n\nBest,\nAnn`)
  expect(replyText(mail(61, 80))).toBe(mail(61, 80))
  expect(replyText(mail(60, 81))).toBe(mail(60, 81))
})

test('a wrapped attribution ("Ann wrote:") may begin in the line above if that line has at most 80 characters', () => {
  const mail = (size: number) =>
    `${OWN}\n\n${filled('On Wed, 8 Oct ', size)}\n2014 at 10:33 Bob <bob@x.test> wrote:\n\n> hi`
  expect(replyText(mail(80))).toBe(OWN)
  expect(replyText(mail(81))).toBe(`${OWN}\n\n${filled('On Wed, 8 Oct ', 81)}`)
})

test('up to four quoted lines below a line such as "for example:" stay in the reply text', () => {
  const mail = (count: number) => `Run this:\n${times('> make', count, '\n')}`
  expect(replyText(mail(4))).toBe(mail(4))
  expect(replyText(mail(5))).toBe('Run this:')
})

// A paragraph of more than 400 characters does not count as the start of a quote or signature, because signatures
// consist of short lines.
test.each(['Hello Bob.\n-----\n', 'Hello Bob,\n*****\n', 'Thanks,\nAnn\n\nAnn Nowak\n'])(
  'a long paragraph stays in the reply text below the start of a signature: %j',
  (start) => {
    const mail = `${start}${times('We should talk about the plan for the year', 12, ' ')}.`
    expect(replyText(mail)).toBe(mail)
  },
)

test.each(['Original message processed by David: yesterday', '[Quoted text hidden]', '>>>1:00>>>'])(
  'the separator line that a mail program writes ends the reply text: %s',
  (line) => {
    expect(replyText(`${OWN}\n\n${line}\nold text`)).toBe(OWN)
  },
)

test('a line without a quote mark between quoted lines counts as quoted if it holds only a link, or the rest of a word from the line above', () => {
  const history = '\n\nOn Wed, Oct 8, 2014 at 10:33 AM, Bob <b@x.test> wrote:\n> see\n'
  expect(replyText(`${OWN}${history}https://x.test/a\n> end`)).toBe(OWN)
  expect(replyText(`${OWN}${history.replace('> see', '> sen=')}tence\n> end`)).toBe(OWN)
})

test('the reply text keeps an attribution ("Ann wrote:") that comes after the first ten thousand lines', () => {
  const mail = (above: number) =>
    `${times('line', above, '\n')}\nOn Wed, Oct 8, 2014 at 10:33 AM, Bob <b@x.test> wrote:\n> hi`
  expect(replyText(mail(9_999))).toBe(times('line', 9_999, '\n'))
  expect(replyText(mail(10_000))).toBe(mail(10_000))
})

test('a long line counts as quoted only if it begins with a quote mark', () => {
  const long = times('We should talk about it', 20, ' ')
  expect(replyText(`${OWN}\n${long}\n> ${long}`)).toBe(`${OWN}\n${long}`)
})
