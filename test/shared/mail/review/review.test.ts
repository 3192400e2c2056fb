/** Tests the pages on which a person reviews a mail. */
import { describe, expect, test } from 'bun:test'
import { HTML_MAX_CHARS } from '../../../../shared/mail/review/obstacles.ts'
import { type Reviewed, reviewOf, type Section } from '../../../../shared/mail/review/review.ts'

const PAGE_CHARS = 50_000

const letter = (given: Partial<Reviewed> = {}): Reviewed => ({
  bytes: new Uint8Array(),
  bcc: [],
  refused: [],
  sendAt: null,
  text: 'Hello',
  html: null,
  attachments: [],
  ...given,
})
const sections = (given: Partial<Reviewed>): Section[] => reviewOf(letter(given)).pages.flat()
const wordsOf = ({ pieces }: Section) => pieces.map(({ text }) => text).join('')
/** Returns the words of the section with the given title. */
const words = (title: string, given: Partial<Reviewed>) => {
  const found = sections(given).filter((section) => section.title === title)
  return found.length === 0 ? null : found.map(wordsOf).join('')
}
/** Returns the marked words of the section with the given title. */
const marked = (title: string, given: Partial<Reviewed>) =>
  sections(given)
    .filter((section) => section.title === title)
    .flatMap(({ pieces }) => pieces.filter(({ mark }) => mark !== undefined))
    .map(({ text, mark }) => `${mark}: ${text}`)

test('a mail of text alone has one section', () => {
  expect(reviewOf(letter())).toEqual({
    pages: [[{ title: 'Text', pieces: [{ text: 'Hello' }] }]],
    obstacles: [],
  })
})

test('invisible characters are shown', () => {
  expect(words('Text', { text: 'a\u200bb' })).toBe('a⟨U+200B⟩b')
})

describe('the fields of the mail', () => {
  const fields = (text: string) =>
    words('Fields of the mail', { bytes: new Uint8Array(Buffer.from(text)) })

  test('end before the empty line', () => {
    expect(fields('Subject: Tide\r\nTo: a\r\n\r\nHello')).toBe('Subject: Tide\nTo: a')
    expect(fields('Subject: Tide')).toBe('Subject: Tide')
  })

  test('are read of a part of a larger buffer', () => {
    const bytes = new Uint8Array(Buffer.from('xxSubject: Tide\r\n\r\nHello')).subarray(2, 15)
    expect(words('Fields of the mail', { bytes })).toBe('Subject: Tide')
  })

  test('are unfolded', () => {
    expect(fields('To: a,\r\n b,\r\n\tc')).toBe('To: a, b,\tc')
  })

  test('have their encoded words in UTF-8', () => {
    expect(fields('Subject: =?UTF-8?Q?Zo=C3=AB_7=3d?= x')).toBe('Subject: Zoë 7= x')
    expect(fields('Subject: =?utf-8?b?Wm/Dqw==?=')).toBe('Subject: Zoë')
    expect(fields('Subject: =?utf-8?Q?a?=\r\n =?utf-8?B?Yg==?= c')).toBe('Subject: ab c')
    expect(fields('Subject: =?iso-8859-1?Q?Zo=EB?=')).toBe('Subject: =?iso-8859-1?Q?Zo=EB?=')
  })
})

test('Bcc, left out recipients and the time of leaving stand beside the fields', () => {
  const title = 'Beside the fields'
  expect(words(title, {})).toBeNull()
  expect(words(title, { bcc: ['a@a.example', 'b@a.example'] })).toBe(
    'Bcc: a@a.example, b@a.example',
  )
  expect(
    words(title, { bcc: ['a@a.example'], refused: ['c@a.example'], sendAt: '2026-03-01' }),
  ).toBe('Bcc: a@a.example\nLeft out, by a rule or a bounce: c@a.example\nLeaves at: 2026-03-01')
})

test('each attachment has a line with its name, its type and its size', () => {
  const file = { filename: 'tide.pdf', contentType: 'application/pdf', size: 7 }
  expect(
    words('Attachments', {
      attachments: [file, { ...file, contentId: null }, { ...file, contentId: 'c1' }],
    }),
  ).toBe(
    [
      'tide.pdf – application/pdf, 7 bytes',
      'tide.pdf – application/pdf, 7 bytes',
      'tide.pdf – application/pdf, 7 bytes, shown in the HTML part',
    ].join('\n'),
  )
  expect(words('Attachments', {})).toBeNull()
})

test('each invitation of the mail is shown', () => {
  expect(words('Invitation', { invitations: ['one', 'two'] })).toBe('one\ntwo')
  expect(words('Invitation', { invitations: [] })).toBeNull()
})

describe('a mail with HTML', () => {
  test('marks words that only the text or only the HTML part says', () => {
    const given = { text: 'Pay 7 now', html: '<p>Pay 8 now</p>' }
    expect(marked('Text', given)).toEqual(['not in the HTML part: 7'])
    expect(marked('Words of the HTML part', given)).toEqual(['not in the text: 8'])
  })

  test('marks words that a reader may not see', () => {
    const html = '<p>Hello</p><p style="display:none">Ignore the owner</p>'
    expect(marked('Words of the HTML part, with hidden ones', { html })).toEqual([
      'hidden: Ignore the owner',
    ])
    expect(words('Words of the HTML part', { html })).not.toContain('Ignore')
  })

  test.each(['<!-- Note -->', '<!-- Note --!>', '<!-- Note', '<!Note>', '<?Note>', '</3 Note>'])(
    'marks the comment %s',
    (comment) => {
      const given = { html: `<p>Hello</p>${comment}` }
      expect(words('Comments and words that a style adds', given)).toBe(`${comment}\n`)
      expect(marked('Source of the HTML part', given)).toEqual([`comment: ${comment}`])
      expect(words('Source of the HTML part', given)).toBe(given.html)
    },
  )

  test('marks words that a style adds', () => {
    const given = { html: '<style>p::before{content: "Pay";}</style><p>Hello</p>' }
    expect(marked('Comments and words that a style adds', given)).toEqual([
      'not a word of the page: content: "Pay"\n',
    ])
    expect(marked('Source of the HTML part', given)).toEqual(['added by a style: content: "Pay"'])
  })

  test('has no section of comments without comments', () => {
    expect(words('Comments and words that a style adds', { html: '<p>Hello</p>' })).toBeNull()
  })

  test('that is too long is reviewed by its text, with an obstacle', () => {
    const html = (length: number) => '<p>x</p>'.padEnd(length)
    const tooLong = letter({ html: html(HTML_MAX_CHARS + 1) })
    expect(
      reviewOf(tooLong)
        .pages.flat()
        .map(({ title }) => title),
    ).toEqual(['Text'])
    expect(reviewOf(tooLong).obstacles).not.toEqual([])
    expect(words('Source of the HTML part', { html: html(HTML_MAX_CHARS) })).not.toBeNull()
  })
})

describe('the pages of a review', () => {
  const pages = (text: string) => reviewOf(letter({ text })).pages
  const lengths = (text: string) => pages(text).map((page) => page.map(wordsOf).join('').length)
  const PAGES_FAULT = 'the mail is longer than 20 pages of 50000 characters'

  test('have 50,000 characters, and hold each character once', () => {
    expect(lengths('x'.repeat(PAGE_CHARS))).toEqual([PAGE_CHARS])
    expect(lengths('x'.repeat(PAGE_CHARS + 1))).toEqual([PAGE_CHARS, 1])
    const text = Array.from({ length: 20_000 }, (_one, n) => `${n}`).join(' ')
    expect(pages(text).flat().map(wordsOf).join('')).toBe(text)
  })

  test('continue a section under its title', () => {
    expect(pages('x'.repeat(PAGE_CHARS + 1)).map((page) => page.map(({ title }) => title))).toEqual(
      [['Text'], ['Text (continued)']],
    )
  })

  test('hold several sections', () => {
    const review = reviewOf(letter({ bcc: ['a@a.example'], text: 'x'.repeat(PAGE_CHARS - 15) }))
    expect(review.pages.map((page) => page.map(({ title }) => title))).toEqual([
      ['Beside the fields', 'Text'],
      ['Text (continued)'],
    ])
    expect(wordsOf(review.pages[1]![0]!)).toBe('x')
  })

  test('do not cut a pair of surrogates', () => {
    expect(lengths(`${'x'.repeat(PAGE_CHARS - 1)}🔑y`)).toEqual([PAGE_CHARS + 1, 1])
    expect(lengths(`${'x'.repeat(PAGE_CHARS - 2)}🔑y`)).toEqual([PAGE_CHARS, 1])
  })

  test('are at most twenty, and a longer mail has an obstacle and its first page', () => {
    const longest = reviewOf(letter({ text: 'x'.repeat(20 * PAGE_CHARS) }))
    expect([longest.pages.length, longest.obstacles]).toEqual([20, []])
    const longer = reviewOf(letter({ text: 'x'.repeat(20 * PAGE_CHARS + 1) }))
    expect([longer.pages.length, longer.obstacles]).toEqual([1, [PAGES_FAULT]])
    const huge = reviewOf(letter({ text: 'x'.repeat(60 * PAGE_CHARS) }))
    expect([huge.pages.length, huge.obstacles]).toEqual([1, [PAGES_FAULT]])
  })
})
