/** Tells from the URL of a link whether the URL is unique to one recipient, and whether it leads to a help page. */

/**
 * Matches a part of a URL that is unique to one recipient. A unique part of a URL is long, and has a digit or capitals
 * inside.
 */
const TOKEN = /(?:^|[/=?&#+:])([\w.~%-]{10,})(?![\w.~%-]*=)/g
const isToken = (text: string): boolean =>
  !/\.(?:html?|php|aspx?|jsp|pdf)$/i.test(text) &&
  // A name of four or more words names a page, so it does not count as unique to a recipient.
  !/^[a-z]+(?:[._-][a-z]+){3,}$/.test(text) &&
  // A mail address in a URL only fills in a field of a sign-in page, and proves nothing about the recipient.
  !/%40/i.test(text) &&
  (/\d/.test(text)
    ? /[A-Za-z]/.test(text) || text.length >= 16
    : /[a-z][A-Z]|[A-Z]{2}[a-z]|^[A-Z]{10,}$/.test(text) || text.length >= 32)

/**
 * Matches a short token in a URL that can identify one recipient. The token stands at the end of the path, in a value
 * of the query, or before an action at the end of the path, as in `/password_resets/Rk27bTq9/edit`.
 */
const SHORT_TOKEN =
  /(?:\/|[?&;#]([\w.-]{1,40})=)([\w-]{4,20})(?=\/?(?:$|[?&;#])|\/(?:confirm|verify|activate|edit|unlock)\/?(?:$|[?#]))|(?<=\/token\/)([\w-]{4,20})(?=\/)/g
/** Matches the number of an account directly after an action at the end of the path, as in `/recover/318`. */
const ACCOUNT_NUMBER = /\/(?:recover|reset|activate|verify|confirm)\/\d{1,3}\/?$/i
/** Matches the page of one account where the reader types the code of the mail, as in `/reset/?action=code&user=ada`. */
const CODE_PAGE =
  /\/(?:recover|reset|activate)\/?\?(?:.{0,200}&)?(?:user|username|login|uid)=[^&#]/i
/** Matches the names of query parameters that have the same value in all mails of a campaign, such as `utm_source`. */
const SHARED =
  /^(?:utm_|ref$|src$|source$|medium$|campaign$|lang$|locale$|hl$|country$|page$|tab$|v$|version$|redirect|next$|return)/i
const isShortToken = (text: string): boolean =>
  /^\d{4,}$/.test(text) ||
  (/\d/.test(text) && /[A-Za-z]/.test(text)) ||
  /[a-z][A-Z]|^[A-Z]{6,}$/.test(text)

/** Matches a query value with a name for a secret, such as `token`. */
const NAMED_TOKEN =
  /(?:[?&;#](?:[\w-]{0,20}(?:token|secret|code|key)|(?:[\w-]{0,20}[_-])?(?:otp|ticket|sig|signature|pwauth|t))=|\/(?:token|code|key)[:=])[\w.~%-]{4,}/i
/** Matches a long query value of any characters with a name for a secret. */
const NAMED_SECRET =
  /[?&;#](?:token|code|key|otp|ticket)=[^&#\s%]{20,}|[?&;#](?:verify|confirm|activate|reset|hash|signature)=(?=[^&#\s]{0,60}\d)(?=[^&#\s]{0,60}[a-z])[^&#\s]{8,}/i
/**
 * Matches a secret part of a path: 24 or more letters and digits. After a word for an action, 12 letters and digits are
 * enough.
 */
const SECRET =
  /[?&;]\w{1,20}=(?=[a-f]{0,20}\d)[\da-f]{16,64}(?=[&;#]|$)|\/[A-Za-z0-9]{24,200}(?=[/?#]|$)|\/(?:confirm|verify|activate|reset|opt-?in|unsubscribe)\/[A-Za-z0-9]{12,200}(?=[/?#]|$)/i
/** Tells whether a URL contains a secret. The URL of a help page never contains a secret. */
export const hasSecret = (path: string): boolean => NAMED_TOKEN.test(path) || SECRET.test(path)

/** Tells whether the path of a URL names the confirmation of an address or an account. */
export const confirmsAddress = (path: string): boolean =>
  /(?:confirm|verify|validate|activate)[-_]?(?:e-?mail|account|address)/i.test(path)

/**
 * Tells whether the path of a link undoes a registration or a request. Such a link often stands next to the link that
 * confirms the registration. The words beside it and the rest of its path then speak of the confirmation, although the
 * link undoes it.
 */
export const cancels = (path: string): boolean =>
  /^[^?#]*[/:](?:cancel|revoke|abort|decline|reject|invalidate-?e?-?mail)(?:[/.?#]|$)/i.test(path)

/**
 * Returns the URLs of pages where the reader types a code. Such a URL is the beginning of another URL of the mail, and
 * the rest of the other URL carries the code.
 */
export function codePages(hrefs: readonly string[]): ReadonlySet<string> {
  const sorted = [...new Set(hrefs)].sort()
  // If a URL is the beginning of another, it is also the beginning of the next URL in alphabetical order.
  return new Set(
    sorted.filter((href, at) => {
      const next = sorted[at + 1]
      return next?.startsWith(href) === true && !hasSecret(href) && hasSecret(next)
    }),
  )
}

/** Tells whether a URL leads to the help, the documentation or the news of a service. */
export const isGuide = (host: string, path: string): boolean =>
  /(?:^|\.)(?:help|support|docs?|kb|faq|learn|community|developers?|blog|status|wiki|hilfe|aide|ayuda)\./i.test(
    host,
  ) ||
  /\/(?:help|support|docs?|documentation|kb|faqs?|hc|articles?|blog|guides?|learn|how-to|knowledge(?:-?base)?|wiki(?!\/Special:(?!MyLanguage))|hilfe|aide|ayuda)(?:[/.?#]|$)/i.test(
    path,
  )

/** Describes the URL of a link. */
type UrlParts = {
  host: string
  /** Holds the path, the query and the fragment of a URL. */
  path: string
  /** Tells whether a long part of the URL is unique to one recipient. */
  isPersonal: boolean
  /** Tells whether a short part of the URL can be unique to one recipient. */
  isShortlyPersonal: boolean
  /** Tells whether a short URL part that identifies one recipient contains letters. */
  hasLetters: boolean
}

/** Splits the URL of a link, and tells whether the URL is unique to one recipient. */
export function urlParts(href: string): UrlParts {
  const [, host = '', path = ''] = /^https?:\/\/([^/?#]*)(.*)$/is.exec(href) ?? []
  const short = [...path.matchAll(SHORT_TOKEN)].flatMap(([, name, value, named]) => {
    const token = value ?? named!
    return !SHARED.test(name ?? '') && isShortToken(token) ? [token] : []
  })
  const isShortlyPersonal = short.length > 0 || ACCOUNT_NUMBER.test(path) || CODE_PAGE.test(path)
  const hasLetters = short.some((value) => /[a-z]/i.test(value))
  const isPersonal =
    NAMED_SECRET.test(path) || [...path.matchAll(TOKEN)].some(([, value]) => isToken(value!))
  return { host, path, isPersonal, isShortlyPersonal, hasLetters }
}
