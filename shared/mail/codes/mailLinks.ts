/**
 * Finds the links of a mail and the purpose of each link. The service opens no URL of the mail, so it returns the URL
 * of a tracking redirect unchanged. The time for the search is limited, and grows linearly with the length of the mail.
 */
import { readHtml } from '../visibleText/htmlTokens.ts'
import { startsReply } from './codePhrases.ts'
import { namesRequest } from './linkPhrases.ts'
import { cancels, codePages, confirmsAddress, hasSecret, isGuide, urlParts } from './linkUrls.ts'
import { explains, isVague, type LinkPurpose, purposeOfPath, purposeOfText } from './linkWords.ts'

/** Describes a link in the form of the API (docs/contract.md §4). */
export type MailLink = {
  href: string
  text: string
  purpose: LinkPurpose
  /** Tells whether the link resets a password. Anyone who opens such a link can take over the account. */
  sensitive: boolean
}

/**
 * Sets the maximum number of links of a mail that the API returns. If a mail has too many links, the API prefers the
 * links with a known purpose.
 */
export const LINKS_MAX = 50
/** Sets the maximum number of links that `findLinks` reads from one mail, including links that it does not return. */
const LINKS_READ = 500
/**
 * Sets the maximum number of characters of a URL. The function leaves out a longer URL, because a shortened URL would
 * open another page.
 */
const HREF_MAX_CHARS = 4_000
/** Sets the maximum number of characters of all URLs of a mail together. */
const HREFS_MAX_CHARS = 32_000
const TEXT_MAX_CHARS = 200
/** Sets the maximum number of characters of a link's markup, and also of the words before a link. */
const INNER_MAX_CHARS = 2_000
const CONTEXT_MAX_CHARS = 300
/** Sets the maximum number of characters of the subject that can tell the purpose of a link. */
const SUBJECT_MAX_CHARS = 400
/** Sets the maximum number of characters that `findLinks` reads after a link. */
const AFTER_MAX_CHARS = 200
/** Sets the maximum number of characters of a mail part in which `findLinks` searches. */
const SCAN_MAX_CHARS = 1_000_000

/**
 * Holds a found link. The field `isPicture` marks an HTML link that shows no words. The function `context` returns the
 * sentences before the link, the nearest first. It runs only if the link has no words. The field `after` holds the
 * words that follow an HTML link in its paragraph, as in `Click here to unsubscribe`.
 */
type Found = {
  href: string
  text: string
  isPicture?: true
  context: () => string[]
  after: string
}

/**
 * Returns the links of a mail in their order, at most {@link LINKS_MAX}.
 * @param html is the visible HTML (visibleHtml.ts). Null means that the mail has no HTML.
 */
export function findLinks({
  subject,
  text,
  html,
}: {
  subject: string
  text: string
  html: string | null
}): MailLink[] {
  const links = new Map<string, MailLink>()
  /** Holds the URLs of the links whose visible text tells their purpose. */
  const named = new Set<string>()
  const found = [...(html === null ? [] : linksOfHtml(html)), ...linksOfText(text)]
  const announced = purposeOfText(subject.slice(0, SUBJECT_MAX_CHARS))
  const isReply = startsReply(subject.slice(0, SUBJECT_MAX_CHARS).toLowerCase())
  const judged = found.map((one) => {
    const hasNoWords = isBare(one)
    return { one, hasNoWords, own: purposeOf(one, { announced, isReply, hasNoWords }) }
  })
  // A link without a purpose normally gets the purpose that the subject of the mail announces. It does not get this
  // purpose if its URL has no secret and another link has this purpose.
  const isTaken = judged.some(({ own }) => own === announced)
  const pages = codePages(found.map(({ href }) => href))
  for (const { one, hasNoWords, own } of judged) {
    const mayBeAnnounced = !isTaken || hasSecret(one.href)
    const isPage = pages.has(one.href)
    const purpose = isPage ? 'other' : (own ?? (mayBeAnnounced ? announced : undefined) ?? 'other')
    const known = links.get(one.href)
    // Words beside a plain URL are weaker evidence than the words of a button with the same URL. The reason is that
    // many mails name a sign-in or a confirmation beside a link with another purpose.
    if (!hasNoWords) named.add(one.href)
    else if (named.has(one.href) && (purpose === 'verify' || purpose === 'sign-in')) continue
    if (known !== undefined && (known.purpose !== 'other' || purpose === 'other')) continue
    const shown = known?.text || one.text
    links.set(one.href, { href: one.href, text: shown, purpose, sensitive: purpose === 'reset' })
  }
  return bounded([...links.values()])
}

/**
 * Returns at most {@link LINKS_MAX} links of a mail. The function prefers the links with a known purpose, and then
 * takes the first links without a purpose. The returned links have the same order as in the mail.
 */
function bounded(links: readonly MailLink[]): MailLink[] {
  const kept = new Set<MailLink>()
  let chars = 0
  for (const isWanted of [true, false]) {
    for (const link of links) {
      if ((link.purpose !== 'other') !== isWanted || kept.size === LINKS_MAX) continue
      if (chars + link.href.length > HREFS_MAX_CHARS) continue
      chars += link.href.length
      kept.add(link)
    }
  }
  return links.filter((link) => kept.has(link))
}

const hostOf = (href: string): string => /^https?:\/\/([^/?#]*)/i.exec(href)?.[1] ?? ''

/** Tells whether a link shows no words about its purpose, but a picture, an address, or `Click here`. */
const isBare = ({ href, text }: Found): boolean =>
  text === '' ||
  isVague(text) ||
  (text.includes(hostOf(href)) && purposeOfText(besideHost(text, hostOf(href))) === undefined)

/** Returns the words of a link's text beside the name of its host, as in `Sign in to shop.example`. */
const besideHost = (text: string, host: string): string =>
  text.replaceAll(/\S+/g, (word) => (word.includes(host) ? '' : word))

/**
 * Matches the hosts of app stores and of shared files. A link to an app or a file neither confirms anything nor
 * unsubscribes from mail.
 */
const STORES_AND_FILES =
  /^(?:play\.google|drive\.google|docs\.google|apps\.apple|itunes\.apple|chromewebstore\.google|addons\.mozilla|apps\.microsoft)\./i

/** Holds what else decides about the purpose of a link. `announced` is the purpose that the mail's subject announces. */
type Around = { announced: LinkPurpose | undefined; isReply: boolean; hasNoWords: boolean }

/** Returns the purpose of a link. Null means that only the subject of the mail can tell the purpose. */
function purposeOf(
  { href, text, isPicture, context, after }: Found,
  { announced, isReply, hasNoWords }: Around,
): LinkPurpose | null {
  const { host, path, isPersonal, isShortlyPersonal, hasLetters } = urlParts(href)
  if (STORES_AND_FILES.test(host)) return 'other'
  // The URL that a link shows as its text tells no purpose. Only the words in the path of the URL count.
  const byText = purposeOfText(text.includes(host) ? besideHost(text, host) : text)
  const { purpose, isSure, mayVerify } = purposeOfPath(path)
  const byPath = mayVerify && announced === 'verify' ? 'verify' : purpose
  if (byText === 'unsubscribe' || byText === 'other') return byText
  if (byPath === 'unsubscribe') return byPath
  if (explains(text) || (isGuide(host, path) && !hasSecret(path))) return 'other'
  // If a link has no words, the words beside the link tell its purpose, although less certainly. The code ignores the
  // words beside a link to a help page, beside a picture in a footer, and beside the address of a home page. At these
  // places, the words are about other links.
  const isIconOrHome =
    !isPersonal && !isShortlyPersonal && (isPicture === true || /^\/?$/.test(path))
  const near =
    hasNoWords && byText === undefined && !isIconOrHome
      ? (purposeOfSentences(context()) ?? (unsubscribes(after) ? 'unsubscribe' : undefined))
      : undefined
  if (near === 'unsubscribe' || near === 'other') return near
  const isSurerSubject = announced === 'sign-in' || (announced === 'reset' && near === undefined)
  // If a link has no words, the words before the link are more certain than `login` and `verify` in the path of its
  // URL. Examples are `To activate your account: https://…/login/…` and `Define your new password: https://…/verify?…`.
  // The subject of the mail is also more certain: if it announces a sign-in or a reset, the word `verify` in the path
  // concerns only the token of the link.
  const isNearSurer =
    (near === 'verify' && byPath === 'sign-in' && !mayVerify) ||
    (near === 'reset' && byPath === 'verify' && !confirmsAddress(path)) ||
    ((near === 'sign-in' || near === undefined) &&
      hasNoWords &&
      byPath === 'verify' &&
      (!/confirm/i.test(path) || /\/confirm\?/i.test(path)) &&
      isSurerSubject)
  // In a mail about a new password, `Confirm this request` asks for a reset.
  const confirmsReset =
    announced === 'reset' &&
    near === 'verify' &&
    byPath === 'verify' &&
    namesRequest(context()[0]?.toLowerCase() ?? '')
  const byWords = confirmsReset ? announced : (near ?? announced)
  const own = isSure ? byPath : (byText ?? (isNearSurer || confirmsReset ? byWords : byPath))
  // A link can confirm something only if its URL is unique to one recipient. A link such as https://bank.example/login
  // or https://help.bank.example/articles/reset-360012345 confirms nothing, because every recipient gets the same link.
  if (!isPersonal && !isShortlyPersonal) return 'other'
  if (byText === undefined && cancels(path)) return 'other'
  const sure = own ?? near
  // If only a number identifies the URL of a link, the number is probably the number of a page, as with `Open the
  // forum`. Such a link signs nobody in and confirms nothing.
  const isNumber = !isPersonal && !hasLetters && !hasSecret(path)
  if (isNumber && (sure === 'sign-in' || (sure === 'verify' && own === undefined))) return 'other'
  if (sure !== undefined || !isPersonal || !hasNoWords || isReply) return sure ?? 'other'
  return null
}

/**
 * Returns the purpose that the nearest sentence before a link names. If the sentence names no purpose, an earlier
 * sentence of the same paragraph may name one, as in `To confirm, use the link below. You can then sign in.`
 */
function purposeOfSentences(sentences: readonly string[]): LinkPurpose | undefined {
  const [nearest = '', ...earlier] = sentences
  const own = purposeOfText(nearest)
  if (own !== undefined) return own
  const further = earlier.map(purposeOfText)
  return further.find((purpose) => purpose === 'verify' || purpose === 'reset')
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
function linksOfHtml(html: string): Found[] {
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
const oneLine = (text: string): string =>
  text.replace(/[\s\p{Cc}\u00ad\u200b-\u200f\ufeff]+/gu, ' ').trim()

/** Returns the URLs in plain text, with the words before each URL. */
function linksOfText(text: string): Found[] {
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

/**
 * Tells whether the words directly after a link offer to end mail, as in `Click here to unsubscribe`. The code reads no
 * other purpose from words after a link. For example, the link in `here if you did not reset your password` does not
 * lead to a reset. An offer to remove an address from an account does not count, because the removal does not end the
 * mail.
 */
function unsubscribes(after: string): boolean {
  const clause = oneLine(after).split(CLAUSE_END, 1)[0]!
  return purposeOfText(clause) === 'unsubscribe' && !/\baddress\b/i.test(clause)
}

/** Matches the end of a sentence. In some scripts, no blank stands between two sentences. */
const SENTENCE_END = /[.!?](?=\s|$)|[。！？؟۔।։።။។]/
const CLAUSE_END = new RegExp(`${SENTENCE_END.source}|[;,|·•–—]`)

const sentencesOf = (text: string): string[] =>
  text
    .split(SENTENCE_END)
    .filter((part) => /\p{L}/u.test(part))
    .map(oneLine)
    .toReversed()
