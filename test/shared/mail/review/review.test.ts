/** Tests the approval pages on which a person reviews a mail. */
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
/** Returns the words in the review section with the given title. */
const words = (title: string, given: Partial<Reviewed>) => {
  const found = sections(given).filter((section) => section.title === title)
  return found.length === 0 ? null : found.map(wordsOf).join('')
}
/** Returns the marked words in the review section with the given title. */
const marked = (title: string, given: Partial<Reviewed>) =>
  sections(given)
    .filter((section) => section.title === title)
    .flatMap(({ pieces }) => pieces.filter(({ mark }) => mark !== undefined))
    .map(({ text, mark }) => `${mark}: ${text}`)

test('on the approval page, a mail that has only text is shown in one section', () => {
  expect(reviewOf(letter())).toEqual({
    pages: [[{ title: 'Text', pieces: [{ text: 'Hello' }] }]],
    obstacles: [],
  })
})

test('the approval page shows the code numbers of invisible characters', () => {
  expect(words('Text', { text: 'a\u200bb' })).toBe('a⟨U+200B⟩b')
})

describe('the approval page shows the header fields of the mail as the recipient’s mail program decodes them', () => {
  const fields = (text: string) =>
    words('Fields of the mail', { bytes: new Uint8Array(Buffer.from(text)) })

  test('the approval page shows the header fields of a mail up to the first empty line', () => {
    expect(fields('Subject: Tide\r\nTo: a\r\n\r\nHello')).toBe('Subject: Tide\nTo: a')
    expect(fields('Subject: Tide')).toBe('Subject: Tide')
  })

  test('the approval page shows the right header fields even if the mail is a part of a larger buffer', () => {
    const bytes = new Uint8Array(Buffer.from('xxSubject: Tide\r\n\r\nHello')).subarray(2, 15)
    expect(words('Fields of the mail', { bytes })).toBe('Subject: Tide')
  })

  test('the approval page shows a folded header field on one line', () => {
    expect(fields('To: a,\r\n b,\r\n\tc')).toBe('To: a, b,\tc')
  })

  test('the approval page decodes encoded words in header fields if they are in UTF-8', () => {
    expect(fields('Subject: =?UTF-8?Q?Zo=C3=AB_7=3d?= x')).toBe('Subject: Zoë 7= x')
    expect(fields('Subject: =?utf-8?b?Wm/Dqw==?=')).toBe('Subject: Zoë')
    expect(fields('Subject: =?utf-8?Q?a?=\r\n =?utf-8?B?Yg==?= c')).toBe('Subject: ab c')
    expect(fields('Subject: =?iso-8859-1?Q?Zo=EB?=')).toBe('Subject: =?iso-8859-1?Q?Zo=EB?=')
  })
})

test('besides the header fields, the approval page shows Bcc, the refused recipients and the time of sending', () => {
  const title = 'Beside the fields'
  expect(words(title, {})).toBeNull()
  expect(words(title, { bcc: ['a@a.example', 'b@a.example'] })).toBe(
    'Bcc: a@a.example, b@a.example',
  )
  expect(
    words(title, { bcc: ['a@a.example'], refused: ['c@a.example'], sendAt: '2026-03-01' }),
  ).toBe('Bcc: a@a.example\nLeft out, by a rule or a bounce: c@a.example\nLeaves at: 2026-03-01')
})

test('the approval page shows a line for each attachment, with name, type and size', () => {
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

test('the approval page shows each calendar invitation of the mail', () => {
  expect(words('Invitation', { invitations: ['one', 'two'] })).toBe('one\ntwo')
  expect(words('Invitation', { invitations: [] })).toBeNull()
})

describe('the approval page marks words of an HTML mail that a recipient possibly does not see', () => {
  test('the approval page marks words that occur only in the text part or only in the HTML part of a mail', () => {
    const given = { text: 'Pay 7 now', html: '<p>Pay 8 now</p>' }
    expect(marked('Text', given)).toEqual(['not in the HTML part: 7'])
    expect(marked('Words of the HTML part', given)).toEqual(['not in the text: 8'])
  })

  test('the approval page marks words of a mail as hidden if its reader possibly does not see them', () => {
    const html = '<p>Hello</p><p style="display:none">Ignore the owner</p>'
    expect(marked('Words of the HTML part, with hidden ones', { html })).toEqual([
      'hidden: Ignore the owner',
    ])
    expect(words('Words of the HTML part', { html })).not.toContain('Ignore')
  })

  test.each(['<!-- Note -->', '<!-- Note --!>', '<!-- Note', '<!Note>', '<?Note>', '</3 Note>'])(
    'the approval page marks the HTML comment %s as a comment',
    (comment) => {
      const given = { html: `<p>Hello</p>${comment}` }
      expect(words('Comments and words that a style adds', given)).toBe(`${comment}\n`)
      expect(marked('Source of the HTML part', given)).toEqual([`comment: ${comment}`])
      expect(words('Source of the HTML part', given)).toBe(given.html)
    },
  )

  test('the approval page marks words that a CSS style adds to a mail', () => {
    const given = { html: '<style>p::before{content: "Pay";}</style><p>Hello</p>' }
    expect(marked('Comments and words that a style adds', given)).toEqual([
      'not a word of the page: content: "Pay"\n',
    ])
    expect(marked('Source of the HTML part', given)).toEqual(['added by a style: content: "Pay"'])
  })

  test('if the mail has no HTML comments, the approval page has no section for comments', () => {
    expect(words('Comments and words that a style adds', { html: '<p>Hello</p>' })).toBeNull()
  })

  test('if the HTML of a mail is too long, the approval page shows only the text part, and the mail cannot be approved', () => {
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

describe('a long mail is split into several approval pages, and a too long mail cannot be approved', () => {
  const pages = (text: string) => reviewOf(letter({ text })).pages
  const lengths = (text: string) => pages(text).map((page) => page.map(wordsOf).join('').length)
  const PAGES_FAULT = 'the mail is longer than 20 pages of 50000 characters'

  test('a text that needs too many pages is not compared with the HTML part, and the mail cannot be approved', () => {
    const text = 'word '.repeat(400_000)
    const review = reviewOf(letter({ text, html: `<p>${'<b>word</b> '.repeat(15_000)}</p>` }))
    expect([review.obstacles, review.pages.length]).toEqual([[PAGES_FAULT], 1])
    expect(review.pages[0]!.map(({ title }) => title)).toEqual(['Text'])
  })

  test('if the comparison of the text part and the HTML part would take too long, the mail cannot be approved', () => {
    const obstacles = (text: number, html: number | null) =>
      reviewOf(letter({ text: 'x'.repeat(text), html: html === null ? null : 'y'.repeat(html) }))
        .obstacles
    const fault = `the text beside the HTML part has more than ${HTML_MAX_CHARS} characters`
    expect(obstacles(HTML_MAX_CHARS, 10)).toEqual([])
    expect(obstacles(HTML_MAX_CHARS + 1, 10)).toEqual([fault])
    expect(obstacles(HTML_MAX_CHARS + 1, null)).toEqual([])
    expect(obstacles(20 * PAGE_CHARS - 9, 10)).toEqual([PAGES_FAULT])
  })

  test('an approval page counts the codes that replace invisible characters towards its length, and no text is lost between pages', () => {
    const invisible = '\u200b'.repeat(20_000)
    expect(pages(invisible).flat().map(wordsOf).join('')).toBe('⟨U+200B⟩'.repeat(20_000))
    const hidden = reviewOf(letter({ text: '\u200b'.repeat(20 * PAGE_CHARS) }))
    expect([hidden.pages.length, hidden.obstacles]).toEqual([1, [PAGES_FAULT]])
    const lines = `${'x'.repeat(999)}\r\n`.repeat(200)
    expect(pages(lines).flat().map(wordsOf).join('')).toBe(lines.replaceAll('\r\n', '\n'))
  })

  test('each approval page has up to 50,000 characters, and all pages together contain each character once', () => {
    expect(lengths('x'.repeat(PAGE_CHARS))).toEqual([PAGE_CHARS])
    expect(lengths('x'.repeat(PAGE_CHARS + 1))).toEqual([PAGE_CHARS, 1])
    const text = Array.from({ length: 20_000 }, (_one, n) => `${n}`).join(' ')
    expect(pages(text).flat().map(wordsOf).join('')).toBe(text)
  })

  test('if a section continues on the next approval page, this page repeats the section’s title', () => {
    expect(pages('x'.repeat(PAGE_CHARS + 1)).map((page) => page.map(({ title }) => title))).toEqual(
      [['Text'], ['Text (continued)']],
    )
  })

  test('an approval page may contain several sections', () => {
    const review = reviewOf(letter({ bcc: ['a@a.example'], text: 'x'.repeat(PAGE_CHARS - 15) }))
    expect(review.pages.map((page) => page.map(({ title }) => title))).toEqual([
      ['Beside the fields', 'Text'],
      ['Text (continued)'],
    ])
    expect(wordsOf(review.pages[1]![0]!)).toBe('x')
  })

  test('a surrogate pair is never divided between two approval pages', () => {
    expect(lengths(`${'x'.repeat(PAGE_CHARS - 1)}🔑y`)).toEqual([PAGE_CHARS + 1, 1])
    expect(lengths(`${'x'.repeat(PAGE_CHARS - 2)}🔑y`)).toEqual([PAGE_CHARS, 1])
  })

  test('a mail fills at most twenty approval pages; of a longer mail, the owner sees only the first page and cannot approve it', () => {
    const longest = reviewOf(letter({ text: 'x'.repeat(20 * PAGE_CHARS) }))
    expect([longest.pages.length, longest.obstacles]).toEqual([20, []])
    const longer = reviewOf(letter({ text: 'x'.repeat(20 * PAGE_CHARS + 1) }))
    expect([longer.pages.length, longer.obstacles]).toEqual([1, [PAGES_FAULT]])
    const huge = reviewOf(letter({ text: 'x'.repeat(60 * PAGE_CHARS) }))
    expect([huge.pages.length, huge.obstacles]).toEqual([1, [PAGES_FAULT]])
  })
})
