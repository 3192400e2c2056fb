/**
 * Finds the links of a mail and their purpose. No address is opened, so a tracking redirect stays as it is. The time is
 * linear and bounded.
 */
import { startsReply } from './codePhrases.ts'
import { explains, isVague, type LinkPurpose, purposeOfPath, purposeOfText } from './linkWords.ts'

/** Describes a link as the API returns it (docs/contract.md §4). */
export type MailLink = {
  href: string
  text: string
  purpose: LinkPurpose
  /** Tells whether the link resets a password. Whoever opens such a link can take over the account. */
  sensitive: boolean
}

/** Limits the links of a mail that the API returns. Links with a purpose are kept first. */
export const LINKS_MAX = 50
/** Limits the links of a mail that are read. */
const LINKS_READ = 500
/** A longer address is left out, because a cut address would open something else. */
const HREF_MAX_CHARS = 4_000
/** Limits the characters of all addresses together. */
const HREFS_MAX_CHARS = 32_000
const TAG_MAX_CHARS = 8_000
const TEXT_MAX_CHARS = 200
/** Limits the characters of markup between a link's tags, or before the link. */
const INNER_MAX_CHARS = 2_000
const CONTEXT_MAX_CHARS = 300
/** Limits the characters of a part that are read. */
const SCAN_MAX_CHARS = 1_000_000

/** `context` is read only for a link that shows a bare address. */
type Found = { href: string; text: string; context: () => string }

/**
 * Returns the links of a mail in their order, at most {@link LINKS_MAX}.
 * @param html the visible HTML (visibleHtml.ts); null: the mail has no HTML.
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
  const found = [...(html === null ? [] : linksOfHtml(html)), ...linksOfText(text)]
  for (const one of found) {
    const purpose = purposeOf(one, subject)
    const known = links.get(one.href)
    if (known !== undefined && (known.purpose !== 'other' || purpose === 'other')) continue
    const shown = known?.text || one.text
    links.set(one.href, { href: one.href, text: shown, purpose, sensitive: purpose === 'reset' })
  }
  return bounded([...links.values()])
}

/** Keeps the links with a purpose, then the first other links, in the order of the mail. */
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

function purposeOf({ href, text, context }: Found, subject: string): LinkPurpose {
  const { host, path, isPersonal, isShortlyPersonal } = partsOf(href)
  const byText = purposeOfText(text)
  const byPath = purposeOfPath(path)
  if (byText === 'unsubscribe' || byText === 'other') return byText
  if (byPath === 'unsubscribe') return byPath
  if (explains(text) || (isGuide(host, path) && !hasNamedToken(path))) return 'other'
  // The words beside a button are less certain than the button's own words. For a help page neither count.
  const isBare = text === '' || text.includes(host) || isVague(text)
  const near = isBare ? purposeOfText(context()) : undefined
  if (near === 'unsubscribe' || near === 'other') return near
  const own = byPath === 'reset' ? byPath : (byText ?? byPath)
  // A page that is the same for everybody confirms nothing: https://bank.example/login,
  // https://help.bank.example/articles/reset-360012345.
  if (!isPersonal && !isShortlyPersonal) return 'other'
  const sure = own ?? near
  if (sure !== undefined || !isPersonal || !isBare || startsReply(subject.toLowerCase()))
    return sure ?? 'other'
  return purposeOfText(subject) ?? 'other'
}

/** Matches a part of an address that is unique to one recipient. It is long, with a digit or with capitals inside. */
const TOKEN = /(?:^|[/=?&#+])([\w.~%-]{10,})(?![\w.~%-]*=)/g
const isToken = (text: string): boolean =>
  !/\.(?:html?|php|aspx?|jsp|pdf)$/i.test(text) &&
  (/\d/.test(text)
    ? /[A-Za-z]/.test(text) || text.length >= 16
    : /[a-z][A-Z]|[A-Z]{2}[a-z]|^[A-Z]{10,}$/.test(text) || text.length >= 32)

/** Matches a short part that is unique to one recipient: the end of the path, or a value of the query. */
const SHORT_TOKEN = /(?:\/|[?&#]([\w.-]{1,40})=)([\w-]{4,20})(?=$|[?&#])/g
/** Matches names of query values that all mails of a campaign share. */
const SHARED =
  /^(?:utm_|ref$|src$|source$|medium$|campaign$|lang$|locale$|hl$|country$|page$|tab$|v$|version$|redirect|next$|return)/i
const isShortToken = (text: string): boolean =>
  /^\d{4,}$/.test(text) || (/\d/.test(text) && /[A-Za-z]/.test(text)) || /[a-z][A-Z]/.test(text)

/** Matches a query value whose name says that the value is a secret. */
const NAMED_TOKEN =
  /[?&#](?:[\w-]{0,20}[_-])?(?:token|code|key|otp|ticket|sig|signature|t)=[\w.~%-]{4,}/i
const hasNamedToken = (path: string): boolean => NAMED_TOKEN.test(path)

/** Tells whether an address is a page that explains: the help, the documentation or the news of a service. */
const isGuide = (host: string, path: string): boolean =>
  /(?:^|\.)(?:help|support|docs?|kb|faq|learn|community|developers?|blog|status|wiki|hilfe|aide|ayuda)\./i.test(
    host,
  ) ||
  /\/(?:help|support|docs?|documentation|kb|faqs?|hc|articles?|blog|guides?|learn|how-to|knowledge(?:-?base)?|wiki|hilfe|aide|ayuda)(?:[/.?#]|$)/i.test(
    path,
  )

function partsOf(href: string): {
  host: string
  path: string
  isPersonal: boolean
  isShortlyPersonal: boolean
} {
  const [, host = '', path = ''] = /^https?:\/\/([^/?#]*)(.*)$/is.exec(href) ?? []
  const isShortlyPersonal = [...path.matchAll(SHORT_TOKEN)].some(
    ([, name, value]) => !SHARED.test(name ?? '') && isShortToken(value!),
  )
  const isPersonal =
    !/^localhost(?::|$)/i.test(host) &&
    [...path.matchAll(TOKEN)].some(([, value]) => isToken(value!))
  return { host, path, isPersonal, isShortlyPersonal }
}

/** Searches for the start of each link. The markup between the links is never parsed. */
function linksOfHtml(html: string): Found[] {
  const input = html.slice(0, SCAN_MAX_CHARS)
  const found: Found[] = []
  const opening = /<a[\s/]/gi
  let free = 0
  for (let match = opening.exec(input); match !== null; match = opening.exec(input)) {
    const start = match.index
    const tag = tagFrom(input, start)
    opening.lastIndex = tag.end
    const href = hrefOf(tag.text)
    if (href === undefined) continue
    const close = input.slice(tag.end, tag.end + INNER_MAX_CHARS).search(/<\/a[\s>]|<a[\s/]/i)
    const end = close < 0 ? Math.min(input.length, tag.end + TEXT_MAX_CHARS) : tag.end + close
    const before = input.slice(Math.max(free, start - INNER_MAX_CHARS), start)
    found.push({
      href,
      text: textOf(input.slice(tag.end, end)).slice(0, TEXT_MAX_CHARS).toWellFormed(),
      context: () => nearLines(textOf(before).slice(-CONTEXT_MAX_CHARS)),
    })
    free = end
    opening.lastIndex = end
    if (found.length === LINKS_READ) break
  }
  return found
}

/** Returns the tag at a position. `>` in a quoted attribute does not end the tag. */
function tagFrom(input: string, start: number): { text: string; end: number } {
  const limit = Math.min(input.length, start + TAG_MAX_CHARS)
  let quote = ''
  for (let at = start; at < limit; at++) {
    const sign = input[at]!
    if (quote !== '') {
      if (sign === quote) quote = ''
    } else if ((sign === '"' || sign === "'") && /[=\s]/.test(input[at - 1]!)) quote = sign
    else if (sign === '>') return { text: input.slice(start, at + 1), end: at + 1 }
  }
  return { text: '', end: limit }
}

function hrefOf(tag: string): string | undefined {
  const match = /\shref\s{0,9}=\s{0,9}(?:"([^"]*)"|'([^']*)'|([^\s>"']+))/i.exec(tag)
  return match === null ? undefined : cleanHref(decoded(match[1] ?? match[2] ?? match[3] ?? ''))
}

/** Returns an address of the web. @returns undefined for any other address, or if the address is too long. */
function cleanHref(text: string): string | undefined {
  const href = text.replace(/[\s\p{Cc}]+/gu, '')
  return /^https?:\/\/[^/]/i.test(href) && href.length <= HREF_MAX_CHARS
    ? href.toWellFormed()
    : undefined
}

const ENTITIES: Record<string, string> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
}

const decoded = (text: string): string =>
  text.replace(/&(#\d{1,7}|#x[\da-f]{1,6}|[a-z]{2,4});/gi, (whole, name: string) => {
    if (!name.startsWith('#')) return ENTITIES[name.toLowerCase()] ?? whole
    const code = /^#x/i.test(name) ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1))
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole
  })

/** Returns the text of a short piece of markup. The description of a picture counts as its text. */
function textOf(html: string): string {
  const parts: string[] = []
  let from = 0
  for (let at = html.indexOf('<'); at >= 0; at = html.indexOf('<', from)) {
    parts.push(html.slice(from, at), ' ')
    const end = html.indexOf('>', at)
    if (end < 0) {
      from = html.length
      break
    }
    const tag = html.slice(at, end)
    if (/^<img\s/i.test(tag)) parts.push(/\salt\s{0,9}=\s{0,9}["']([^"']*)/i.exec(tag)?.[1] ?? '')
    from = end + 1
  }
  parts.push(html.slice(from))
  return decoded(parts.join(''))
    .replace(/[\s\p{Cc}\u00ad\u200b-\u200f\ufeff]+/gu, ' ')
    .trim()
}

/** Returns the addresses in plain text, with the words before each. */
function linksOfText(text: string): Found[] {
  const input = text.slice(0, SCAN_MAX_CHARS)
  const found: Found[] = []
  let free = 0
  for (const match of input.matchAll(/https?:\/\/[^\s<>"]{1,4100}/gi)) {
    const href = cleanHref(match[0].replace(/[.,;:!?'*)\]}。、，）」】]+$/u, ''))
    const before = input.slice(Math.max(free, match.index - CONTEXT_MAX_CHARS), match.index)
    free = match.index + match[0].length
    if (href !== undefined) found.push({ href, text: '', context: () => nearLines(before) })
    if (found.length === LINKS_READ) break
  }
  return found
}

/** Returns the words before the link. They are from the link's own sentence, or from the last line that has words. */
function nearLines(before: string): string {
  const lines = before.split('\n')
  const own = lines.pop()!
  const line = /\p{L}/u.test(own) ? own : (lines.findLast((one) => /\p{L}/u.test(one)) ?? '')
  return line.split(/[.!?。！？](?= |$)/).findLast((part) => /\p{L}/u.test(part)) ?? ''
}
