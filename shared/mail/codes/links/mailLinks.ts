/**
 * Finds the links of a mail and the purpose of each link. The service opens no URL of the mail, so it returns the URL
 * of a tracking redirect unchanged. The time for the search is limited, and grows linearly with the length of the mail.
 */
import { startsReply } from '../codePhrases.ts'
import { CLAUSE_END, type Found, linksOfHtml, linksOfText, oneLine } from './foundLinks.ts'
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
/** Sets the maximum number of characters of all URLs of a mail together. */
const HREFS_MAX_CHARS = 32_000
/** Sets the maximum number of characters of the subject that can tell the purpose of a link. */
const SUBJECT_MAX_CHARS = 400
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
 * Tells whether the words directly after a link offer to end mail, as in `Click here to unsubscribe`. The code reads no
 * other purpose from words after a link. For example, the link in `here if you did not reset your password` does not
 * lead to a reset. An offer to remove an address from an account does not count, because the removal does not end the
 * mail.
 */
function unsubscribes(after: string): boolean {
  const clause = oneLine(after).split(CLAUSE_END, 1)[0]!
  return purposeOfText(clause) === 'unsubscribe' && !/\baddress\b/i.test(clause)
}
