import { htmlToText } from '../visibleText/htmlToText.ts'
import { visibleHtml } from '../visibleText/visibleHtml.ts'
import { markDifferences, markMatches, type Piece } from './differences.ts'
import { HTML_MAX_CHARS, htmlObstacles } from './obstacles.ts'
import { shownFields } from './shownFields.ts'
import { shownText } from './shownText.ts'

/** Sets the maximum number of characters of one page of a reviewed mail. */
const PAGE_CHARS = 50_000
/** Sets the maximum number of pages that a person may have to read before a decision about a mail. */
const PAGES_MAX = 20

/** Holds a mail that waits for an owner's decision, with the bytes that will be sent. */
export type Reviewed = {
  /** Holds the bytes of the whole mail, or only the bytes of the mail's header. */
  bytes: Uint8Array
  bcc: readonly string[]
  refused: readonly string[]
  sendAt: string | null
  text: string
  html: string | null
  attachments: readonly {
    filename: string
    contentType: string
    size: number
    contentId?: string | null | undefined
  }[]
  /** Holds each invitation of the mail in the text form that a recipient's calendar program shows. */
  invitations?: readonly string[]
  /** Tells whether the calendar program of a recipient may read an invitation in another encoding than this page. */
  hasOddInvitation?: boolean
}

/** Describes a part of the reviewed mail, such as its header, with a title. */
export type Section = { title: string; note?: string; pieces: Piece[] }

/**
 * Holds the whole mail for review, cut into pages. The field `obstacles` lists the parts of the mail that the review
 * page cannot show. If a mail has an obstacle, the owner cannot approve it on this page.
 */
export type Review = { pages: Section[][]; obstacles: string[] }

const TOO_LONG = `the mail is longer than ${PAGES_MAX} pages of ${PAGE_CHARS} characters`

/**
 * Makes the pages on which a person reviews a mail. The pages together show every character of the outgoing mail. If
 * the page cannot show a part of the mail, an obstacle gives the reason.
 */
export function reviewOf(letter: Reviewed): Review {
  const obstacle = lengthObstacle(letter)
  if (obstacle !== null) {
    const text = letter.text.slice(0, PAGE_CHARS)
    const [first] = pagesOf(sectionsOf({ ...letter, text, html: null }))
    return { pages: [first!], obstacles: [obstacle] }
  }
  const obstacles = letter.html === null ? [] : htmlObstacles(letter.html, letter.attachments)
  if (letter.hasOddInvitation === true) {
    obstacles.push('the mail has a calendar file that is not in UTF-8')
  }
  const pages = pagesOf(sectionsOf(letter))
  if (pages.length <= PAGES_MAX) return { pages, obstacles }
  obstacles.push(TOO_LONG)
  return { pages: pages.slice(0, 1), obstacles }
}

/**
 * Finds that a mail is too long for the review by its lengths alone, before any comparison of its parts. Previously,
 * the comparison of a text of a million characters with an HTML part of 200,000 characters blocked the process for 1.7
 * seconds.
 */
function lengthObstacle({ text, html }: Reviewed): string | null {
  if (text.length + (html?.length ?? 0) > PAGES_MAX * PAGE_CHARS) return TOO_LONG
  if (html === null || text.length <= HTML_MAX_CHARS) return null
  return `the text beside the HTML part has more than ${HTML_MAX_CHARS} characters`
}

const COMMENT = /<!--[\s\S]*?(?:-->|--!>|$)|<[!?][^>]*(?:>|$)|<\/[^a-z][^>]*(?:>|$)/gi
const GENERATED = /\bcontent\s{0,9}:[^;}]*/gi

function sectionsOf(letter: Reviewed): Section[] {
  const { text, html } = letter
  const sections: Section[] = [
    {
      title: 'Fields of the mail',
      note: 'All fields that leave.',
      pieces: [{ text: shownFields(letter.bytes) }],
    },
    { title: 'Beside the fields', pieces: [{ text: envelopeOf(letter) }] },
    { title: 'Attachments', pieces: [{ text: filesOf(letter.attachments) }] },
    {
      title: 'Invitation',
      note: "Every character of the file that the recipients' calendars read.",
      pieces: [{ text: (letter.invitations ?? []).join('\n') }],
    },
  ].filter(({ pieces }) => pieces[0]!.text !== '')
  // The review leaves out an HTML part that is too long, and adds an obstacle (a reason why the owner cannot approve)
  // to the mail. Therefore the owner cannot approve the mail after reading only its plain text.
  if (html === null || html.length > HTML_MAX_CHARS) {
    return [...sections, { title: 'Text', pieces: [{ text }] }]
  }
  const seen = htmlToText(visibleHtml(html, HTML_MAX_CHARS).html)
  const all = htmlToText(html)
  const beside = [COMMENT, GENERATED].flatMap((pattern) =>
    [...html.matchAll(pattern)].map(([found]) => found),
  )
  return [
    ...sections,
    {
      title: 'Text',
      note: 'Marked: words that the HTML part does not say.',
      pieces: markDifferences(text, seen, 'not in the HTML part'),
    },
    {
      title: 'Words of the HTML part',
      note: 'Most recipients see this part. Marked: words that the text does not say.',
      pieces: markDifferences(seen, text, 'not in the text'),
    },
    {
      title: 'Words of the HTML part, with hidden ones',
      note: 'Marked: words that a reader may not see.',
      pieces: markDifferences(all, seen, 'hidden'),
    },
    {
      title: 'Comments and words that a style adds',
      pieces: beside.map((found) => ({ text: `${found}\n`, mark: 'not a word of the page' })),
    },
    {
      title: 'Source of the HTML part',
      note: 'Every character of it.',
      pieces: markMatches(html, COMMENT, 'comment').flatMap((piece) =>
        piece.mark === undefined ? markMatches(piece.text, GENERATED, 'added by a style') : [piece],
      ),
    },
  ].filter(({ pieces }) => pieces.some(({ text: words }) => words !== ''))
}

/**
 * Writes the sections of a reviewed mail for a person, and cuts them into pages of `PAGE_CHARS`. Signs for invisible
 * characters can make a text eight times as long. Therefore the function stops after the first page beyond the maximum.
 */
function pagesOf(sections: readonly Section[]): Section[][] {
  const pages: Section[][] = [[]]
  let room = PAGE_CHARS
  for (const { pieces, ...head } of sections) {
    let section: Section = { ...head, pieces: [] }
    pages.at(-1)!.push(section)
    for (const { text, ...mark } of pieces) {
      for (const shown of shownParts(text)) {
        for (let at = 0; at < shown.length; ) {
          if (room === 0) {
            if (pages.length > PAGES_MAX) return pages
            section = { ...head, title: `${head.title} (continued)`, pieces: [] }
            pages.push([section])
            room = PAGE_CHARS
          }
          const isPair = (shown.codePointAt(at + room - 1) ?? 0) > 0xffff
          const part = shown.slice(at, at + room + (isPair ? 1 : 0))
          section.pieces.push({ text: part, ...mark })
          at += part.length
          room = Math.max(0, room - part.length)
        }
      }
    }
  }
  return pages
}

/** Makes all characters of a text visible, one piece of the text after the other. A piece ends after a whole line. */
function* shownParts(text: string): Generator<string> {
  for (let at = 0; at < text.length; ) {
    const lineEnd = text.lastIndexOf('\n', at + PAGE_CHARS) + 1
    let end = Math.min(text.length, lineEnd > at ? lineEnd : at + PAGE_CHARS)
    // A line that is longer than a piece may be cut anywhere, but not inside a surrogate pair.
    if ((text.codePointAt(end - 1) ?? 0) > 0xffff) end++
    yield shownText(text.slice(at, end))
    at = end
  }
}

function envelopeOf({ bcc, refused, sendAt }: Reviewed): string {
  return [
    bcc.length === 0 ? '' : `Bcc: ${bcc.join(', ')}`,
    refused.length === 0 ? '' : `Left out, by a rule or a bounce: ${refused.join(', ')}`,
    sendAt === null ? '' : `Leaves at: ${sendAt}`,
  ]
    .filter((line) => line !== '')
    .join('\n')
}

const filesOf = (attachments: Reviewed['attachments']): string =>
  attachments
    .map(
      ({ filename, contentType, size, contentId }) =>
        `${filename} – ${contentType}, ${size} bytes${contentId == null ? '' : ', shown in the HTML part'}`,
    )
    .join('\n')
