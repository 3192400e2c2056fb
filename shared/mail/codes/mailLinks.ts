/** Finds the links of a mail and their purpose. No address is opened: a tracking redirect stays as it is. Linear, bounded. */
import { startsReply } from './codePhrases.ts'
import { explains, isVague, type LinkPurpose, purposeOfPath, purposeOfText } from './linkWords.ts'

/** A link as the API answers it (docs/contract.md §4). */
export type MailLink = {
  href: string
  text: string
  purpose: LinkPurpose
  /** Whoever opens the link can take the account: a link that resets a password. */
  sensitive: boolean
}

/** Links of a mail that are answered; those with a purpose go first. */
export const LINKS_MAX = 50
/** Links of a mail that are read. */
const LINKS_READ = 500
/** A longer address is left out: cut, it opens something else. */
const HREF_MAX_CHARS = 4_000
/** Characters of all addresses together. */
const HREFS_MAX_CHARS = 32_000
const TAG_MAX_CHARS = 8_000
const TEXT_MAX_CHARS = 200
/** Characters of markup between a link's tags, or before it. */
const INNER_MAX_CHARS = 2_000
const CONTEXT_MAX_CHARS = 300
/** Characters of a part that are read. */
const SCAN_MAX_CHARS = 1_000_000

/** `context` is read for a bare address alone. */
type Found = { href: string; text: string; context: () => string }

/**
 * The links of a mail in their order, at most {@link LINKS_MAX}.
 * @param html the visible HTML (visibleHtml.ts); null: none.
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

/** The links with a purpose, then the first others, in the order of the mail. */
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
  // The words beside a button are less sure than its own; a help page has no words of either.
  const isBare = text === '' || text.includes(host) || isVague(text)
  const near = isBare ? purposeOfText(context()) : undefined
  if (near === 'unsubscribe' || near === 'other') return near
  const own = byPath === 'reset' ? byPath : (byText ?? byPath)
  // A page for everybody confirms nothing: https://bank.example/login, https://help.bank.example/articles/reset-360012345.
  if (!isPersonal && !isShortlyPersonal) return 'other'
  const sure = own ?? near
  if (sure !== undefined || !isPersonal || !isBare || startsReply(subject.toLowerCase()))
    return sure ?? 'other'
  return purposeOfText(subject) ?? 'other'
}

/** A part of an address that only one recipient has: long, with a digit or with capitals inside. */
const TOKEN = /(?:^|[/=?&#+])([\w.~%-]{10,})(?![\w.~%-]*=)/g
const isToken = (text: string): boolean =>
  !/\.(?:html?|php|aspx?|jsp|pdf)$/i.test(text) &&
  (/\d/.test(text)
    ? /[A-Za-z]/.test(text) || text.length >= 16
    : /[a-z][A-Z]|[A-Z]{2}[a-z]|^[A-Z]{10,}$/.test(text) || text.length >= 32)

/** A short part that only one recipient has: the end of the path, or a value of the query. */
const SHORT_TOKEN = /(?:\/|[?&#]([\w.-]{1,40})=)([\w-]{4,20})(?=$|[?&#])/g
/** Names of values that a whole campaign shares. */
const SHARED =
  /^(?:utm_|ref$|src$|source$|medium$|campaign$|lang$|locale$|hl$|country$|page$|tab$|v$|version$|redirect|next$|return)/i
const isShortToken = (text: string): boolean =>
  /^\d{4,}$/.test(text) || (/\d/.test(text) && /[A-Za-z]/.test(text)) || /[a-z][A-Z]/.test(text)

/** A value whose name says that it is a secret. */
const NAMED_TOKEN =
  /[?&#](?:[\w-]{0,20}[_-])?(?:token|code|key|otp|ticket|sig|signature|t)=[\w.~%-]{4,}/i
const hasNamedToken = (path: string): boolean => NAMED_TOKEN.test(path)

/** Pages that explain: the help, the documentation and the news of a service. */
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

/** Searches for the start of each link: the markup between is never parsed. */
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

/** The tag at a place: `>` in a quoted attribute does not end it. */
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

/** An address of the web; undefined: another, or too long. */
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

/** The text of a short piece of markup; a picture counts by its description. */
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

/** Addresses in plain text, with the words before. */
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

/** The words before the link: of its own sentence, or of the last line with words. */
function nearLines(before: string): string {
  const lines = before.split('\n')
  const own = lines.pop()!
  const line = /\p{L}/u.test(own) ? own : (lines.findLast((one) => /\p{L}/u.test(one)) ?? '')
  return line.split(/[.!?。！？](?= |$)/).findLast((part) => /\p{L}/u.test(part)) ?? ''
}
