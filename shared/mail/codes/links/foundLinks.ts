/** Reads the links of a mail's HTML and text, with the words inside, before and after each link. */
import { readHtml } from '../../visibleText/htmlTokens.ts'

/** Sets the maximum number of links that the service reads from one part of a mail. */
const LINKS_READ = 500
/**
 * Sets the maximum number of characters of a URL. The service leaves out a longer URL, because a shortened URL would
 * open another page.
 */
const HREF_MAX_CHARS = 4_000
const TEXT_MAX_CHARS = 200
/** Sets the maximum number of characters of a link's markup, and also of the words before a link. */
const INNER_MAX_CHARS = 2_000
const CONTEXT_MAX_CHARS = 300
/** Sets the maximum number of characters that the service reads after a link. */
const AFTER_MAX_CHARS = 200
/** Sets the maximum number of characters of a mail part in which the service searches for links. */
const SCAN_MAX_CHARS = 1_000_000

/**
 * Holds a found link. The field `isPicture` marks an HTML link that shows no words. The function `context` returns the
 * sentences before the link, the nearest first. It runs only if the link has no words. The field `after` holds the
 * words that follow an HTML link in its paragraph, as in `Click here to unsubscribe`.
 */
export type Found = {
  href: string
  text: string
  isPicture?: true
  context: () => string[]
  after: string
}

/**
 * Holds a link whose end tag the code has not yet read. The object holds the words of the link so far, the index of the
 * first of these words, and the words before the link.
 */
type OpenLink = { href: string; words: string; start: number; before: string }

/** Names the HTML elements that do not end a paragraph. */
const INLINE = new Set(['b', 'strong', 'i', 'em', 'u', 'span', 'font', 'small', 'wbr'])

/**
 * Returns the links of HTML, with the words inside and before each link. The URLs in the text outside of links follow,
 * because mail programs also show these URLs as links.
 */
export function linksOfHtml(html: string): Found[] {
  const input = html.slice(0, SCAN_MAX_CHARS)
  const found: Found[] = []
  /** Holds the words of the mail between the last link and the current position. */
  let words = ''
  /** Holds the text outside of links. A line end stands in place of each tag. */
  const outside: string[] = []
  let link: OpenLink | null = null
  /**
   * Holds the last link until its paragraph ends or another link begins, because words after the link may tell its
   * purpose.
   */
  let last: Found | null = null
  let tag = { name: '', start: 0, href: '', alt: '' }
  const finish = () => {
    if (link === null) return
    const { href, before } = link
    const text = oneLine(link.words).slice(0, TEXT_MAX_CHARS).toWellFormed()
    last = {
      href,
      text,
      ...(text === '' ? { isPicture: true } : {}),
      context: () => nearSentences(oneLine(before).slice(-CONTEXT_MAX_CHARS)),
      after: '',
    }
    found.push(last)
    link = null
    words = ''
  }
  const add = (text: string) => {
    if (last !== null && last.after.length < AFTER_MAX_CHARS) {
      const line = text.slice(0, INNER_MAX_CHARS).replace(/\s+/g, ' ')
      last.after += line.slice(0, AFTER_MAX_CHARS - last.after.length)
    }
    if (link === null) {
      words += text
      outside.push(text)
      // The function cuts the collected words only when they have twice the maximum length, because a cut at each HTML
      // token would copy the words of a long mail again and again.
      if (words.length > 2 * INNER_MAX_CHARS) words = words.slice(-INNER_MAX_CHARS)
    }
    if (link !== null && link.words.length < INNER_MAX_CHARS) link.words += text
  }
  readHtml(input, {
    text: add,
    name: (name, start) => {
      tag = { name, start, href: '', alt: '' }
    },
    attribute: (name, value) => {
      if (name === 'href' && tag.name === 'a') tag.href ||= value
      if (name === 'alt' && tag.name === 'img') tag.alt ||= value
    },
    begin: (end) => {
      // The description of a picture counts as the picture's text.
      if (!INLINE.has(tag.name)) last = null
      add(` ${tag.alt} `)
      outside.push('\n')
      if (link !== null && end - link.start > INNER_MAX_CHARS) finish()
      if (tag.name !== 'a') return
      finish()
      last = null
      const href = cleanHref(tag.href)
      if (href !== undefined) link = { href, words: '', start: end, before: words }
    },
    end: (name) => {
      if (name !== 'a' && !INLINE.has(name)) last = null
      add(' ')
      if (name === 'a') finish()
    },
    isDone: () => found.length === LINKS_READ,
  })
  // A link without an end tag ends at the end of the mail.
  if (found.length < LINKS_READ) finish()
  return [...found, ...linksOfText(outside.join(''))]
}

const BLANK = /^[\s\p{Cc}]$/u

/**
 * Returns the URL of a link if the URL is a web address. A browser drops tabs and line ends in a URL, and encodes the
 * spaces inside (WHATWG URL §4.4). @returns undefined if the URL is not a web address, or if it is too long.
 */
function cleanHref(text: string): string | undefined {
  const line = text.replace(/[\t\r\n]+/g, '')
  let start = 0
  let end = line.length
  while (start < end && BLANK.test(line[start]!)) start++
  while (end > start && BLANK.test(line[end - 1]!)) end--
  if (end - start > HREF_MAX_CHARS) return undefined
  const href = line.slice(start, end).replace(/[\s\p{Cc}]/gu, encodeURIComponent)
  return /^https?:\/\/[^/]/i.test(href) && href.length <= HREF_MAX_CHARS
    ? href.toWellFormed()
    : undefined
}

/** Returns a text without line ends, control characters and characters without width. */
export const oneLine = (text: string): string =>
  text.replace(/[\s\p{Cc}\u00ad\u200b-\u200f\ufeff]+/gu, ' ').trim()

/** Returns the URLs in plain text, with the words before each URL. */
export function linksOfText(text: string): Found[] {
  const input = text.slice(0, SCAN_MAX_CHARS)
  const found: Found[] = []
  let free = 0
  for (const match of input.matchAll(/https?:\/\/[^\s<>"`，。、；：！？）」』】》]{1,4100}/gi)) {
    if (match.index < free) continue
    // The URL ends at the closing bracket, because programs that turn HTML into text write `Reset [https://…]`,
    // sometimes with the next word directly after the bracket.
    const bracketEnd = input[match.index - 1] === '[' ? match[0].indexOf(']') : -1
    const url = bracketEnd === -1 ? match[0] : match[0].slice(0, bracketEnd)
    const end = match.index + url.length
    const rest = input[match.index - 1] === '<' ? wrappedRest(input, end) : ''
    const href = cleanHref(withoutEnd(url + rest.replace(/\s+/g, '')))
    const before = input.slice(Math.max(free, match.index - CONTEXT_MAX_CHARS), match.index)
    free = end + rest.length
    if (href !== undefined)
      found.push({ href, text: '', context: () => nearSentences(before), after: '' })
    if (found.length === LINKS_READ) break
  }
  return found
}

/**
 * Matches the second and later lines of a URL that angle brackets enclose. Line ends and the blanks around them do not
 * belong to the URL (RFC 3986, Appendix C).
 */
const WRAPPED = /^(?:[ \t]*\r?\n[ \t]*(?!https?:)[^\s<>"]{1,998}){1,20}(?=[ \t]*>)/i

const wrappedRest = (text: string, end: number): string =>
  WRAPPED.exec(text.slice(end, end + HREF_MAX_CHARS))?.[0] ?? ''

/**
 * Returns a URL without the punctuation of the sentence that contains the URL. A closing bracket belongs to the URL if
 * the URL also holds the opening bracket.
 */
function withoutEnd(url: string): string {
  let end = url.length
  while (".,;:!?'*)]}".includes(url[end - 1] ?? ' ')) end--
  let open = 0
  for (const char of url.slice(0, end)) open += char === '(' ? 1 : char === ')' ? -1 : 0
  while (open-- > 0 && url[end] === ')') end++
  return url.slice(0, end)
}

/**
 * Returns the sentences before a link, the nearest first. If words stand before the link on the same line, the function
 * returns only the last sentence of these words. Otherwise it returns all sentences of the last paragraph with words.
 * This paragraph may have line ends inside.
 */
function nearSentences(before: string): string[] {
  const own = before.slice(before.lastIndexOf('\n') + 1)
  if (/\p{L}/u.test(own)) return sentencesOf(own).slice(0, 1)
  return sentencesOf(before.split(/\n[ \t\r]*\n/).findLast((one) => /\p{L}/u.test(one)) ?? '')
}

/** Matches the end of a sentence. In some scripts, no blank stands between two sentences. */
const SENTENCE_END = /[.!?](?=\s|$)|[。！？؟۔।։።။។]/
export const CLAUSE_END = new RegExp(`${SENTENCE_END.source}|[;,|·•–—]`)

const sentencesOf = (text: string): string[] =>
  text
    .split(SENTENCE_END)
    .filter((part) => /\p{L}/u.test(part))
    .map(oneLine)
    .toReversed()
