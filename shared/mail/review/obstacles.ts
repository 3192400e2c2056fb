/**
 * Finds reasons why the review page cannot show an HTML part as its recipients will see it. The rules read the HTML
 * source instead of a parsed tree, because two parsers can disagree about the end of a comment (`<!-- --!>`). In case
 * of doubt, a rule refuses the HTML part, because the page must not show it wrongly.
 */

import { DRAWN_TYPES, type Shown, shownSources } from './pictures.ts'

/** Sets the maximum number of characters of an HTML part that the service compares with the mail's text part. */
export const HTML_MAX_CHARS = 200_000

/**
 * Matches HTML elements that load content, run a script, submit a form or embed another document. The page for approval
 * leaves out these HTML elements.
 */
const REMOVED =
  /<(script|i?frame|frameset|object|embed|applet|link|meta|base|form|portal|audio|video|source|template|svg|math|image|picture|xml|xmp|plaintext|noscript|noembed|noframes|listing)\b/i
/**
 * Matches HTML attributes, other than `src`, that load a resource. The pattern CARRIED matches the `src` of a picture
 * in the mail itself. The caller first replaces each run of blanks in the HTML source by one blank.
 */
const LOADING = /[ "'/](srcset|imagesrcset|background|poster|lowsrc|dynsrc|xlink:href) ?=/i
const SOURCE = /[ "'/]src ?= ?(?:"([^"]*)"|'([^']*)'|([^ >]*))/gi
const CARRIED = /^ ?(?:cid:[^"' ]+|data:image\/(?:png|jpe?g|gif|webp)[;,])/i
/** Matches CSS rules that load pictures or other style sheets. */
const STYLE_LOADS = /@import|image-set|\bsrc\(|\belement\(|expression\(|-moz-binding|behavior ?:/i
const STYLE_URL = /url\( ?["']? ?(?!["' ]|data:image\/(?:png|jpe?g|gif|webp)[;,]|#)/i
const HAS_STYLE = /<style|style ?=/i
/** Matches CSS styles whose effect depends on the device, the time or the reader. */
const CONDITIONAL =
  /@(?:-[a-z]+-)?(media|supports|container|keyframes|document|starting-style|scope|layer)\b|\b(animation|transition)(-[a-z-]+)? ?:|:(hover|focus|active|checked|target|visited|open|popover-open)\b|\b(light-dark|env)\(|prefers-/i
const CONDITIONAL_COMMENT = /<!-{0,2} ?\[ ?(if|endif)/i

/** Holds the properties of an attachment that decide whether the page can draw the attachment as an inline picture. */
type Picture = { contentId?: string | null | undefined; contentType: string; size: number }

const DRAWN_MAX_BYTES = 8 * 1024 * 1024
/**
 * Sets the maximum number of characters of all inline pictures on one page together, as `data:` URLs. A mail can use
 * one picture many thousand times, and each use has a copy of the picture. The approval page and the frame of a mail
 * use the same maximum. Otherwise a person could approve a picture that the frame leaves out.
 */
export const PICTURES_MAX_CHARS = 12 * 1024 * 1024

/** Returns the number of characters of a picture as a `data:` URL. @param size is the number of bytes of the picture. */
const pictureChars = (contentType: string, size: number): number =>
  `data:${contentType};base64,`.length + Math.ceil(size / 3) * 4

/**
 * Finds the reasons why the page cannot show an HTML part of a reviewed mail. @returns the list of reasons. The list is
 * empty if the page can show the whole HTML part.
 */
export function htmlObstacles(html: string, attachments: readonly Picture[]): string[] {
  if (html.length > HTML_MAX_CHARS) {
    return [`the HTML part has more than ${HTML_MAX_CHARS} characters`]
  }
  const found: string[] = []
  const source = oneBlank(html)
  // The rules for styles also read the source after the decoding of entities and CSS escapes, because a browser decodes
  // both before it loads a URL.
  const styles = HAS_STYLE.test(source) ? [source, oneBlank(withoutEscapes(html))] : []
  const inStyles = (pattern: RegExp) => styles.some((reading) => pattern.test(reading))
  const element = REMOVED.exec(source)
  if (element !== null) found.push(`the HTML part has the element ${element[1]!.toLowerCase()}`)
  const pictures = [...source.matchAll(SOURCE)].map(([, a, b, c]) => a ?? b ?? c ?? '')
  const isOther = pictures.some((picture) => !CARRIED.test(picture))
  if (LOADING.test(source) || isOther) {
    found.push('the HTML part loads a picture that the mail does not carry')
  }
  if (inStyles(STYLE_LOADS) || inStyles(STYLE_URL)) {
    found.push('a style of the HTML part loads something that the mail does not carry')
  }
  if (inStyles(CONDITIONAL) || CONDITIONAL_COMMENT.test(source)) {
    found.push('the HTML part looks different on other devices, in other programs or later')
  }
  // The code reads the `src` attributes of the HTML in two ways, which must find the same pictures. If only one way
  // finds a `src`, it stands, for example, in a comment, which mail programs end differently.
  const shown = shownSources(html)
  const own = isOther ? shown.filter(({ source: { kind } }) => kind !== 'other') : shown
  if (shown.length !== pictures.length || !areDrawn(own, attachments)) {
    found.push('the HTML part has a picture that this page cannot draw')
  }
  return found
}

/**
 * Tells whether the frame draws each picture that the mail itself holds. Some mail programs ignore the case of a
 * Content-ID. Therefore no two attachments may have Content-IDs that differ only in their case.
 */
function areDrawn(shown: readonly Shown[], attachments: readonly Picture[]): boolean {
  const inline = attachments.filter(({ contentId }) => contentId != null)
  const parts = Map.groupBy(inline, ({ contentId }) => bareId(contentId!).toLowerCase())
  const bytes = inline.reduce((sum, { size }) => sum + size, 0)
  let chars = 0
  return shown.every(({ element, isFirst, source }) => {
    if (source.kind === 'other' || element !== 'img' || !isFirst) return false
    if (source.kind === 'data') return true
    const [part, ...others] = parts.get(source.id.toLowerCase()) ?? []
    chars += part === undefined ? 0 : pictureChars(part.contentType, part.size)
    return (
      bytes <= DRAWN_MAX_BYTES &&
      chars <= PICTURES_MAX_CHARS &&
      part !== undefined &&
      others.length === 0 &&
      source.isPlain &&
      bareId(part.contentId!) === source.id &&
      DRAWN_TYPES.includes(part.contentType.toLowerCase())
    )
  })
}

const bareId = (contentId: string): string => contentId.replace(/^<|>$/g, '')

const NAMED: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  colon: ':',
  lpar: '(',
  rpar: ')',
  sol: '/',
  bsol: '\\',
  commat: '@',
  tab: ' ',
  newline: ' ',
  nbsp: ' ',
  period: '.',
  comma: ',',
  semi: ';',
  num: '#',
  lowbar: '_',
  hyphen: '-',
  dash: '-',
}

/** Decodes the entities and CSS escapes in an HTML source, and removes the CSS comments. */
function withoutEscapes(html: string): string {
  return withoutComments(
    html.replace(
      /&#x([0-9a-f]{1,6});?|&#(\d{1,7});?|&([a-z]{2,8});?/gi,
      (whole, hex, decimal, name) =>
        name === undefined
          ? characterOf(hex === undefined ? Number(decimal) : Number.parseInt(hex, 16))
          : (NAMED[name.toLowerCase()] ?? whole),
    ),
  ).replace(/\\(?:([0-9a-f]{1,6})\s?|\r?\n|(.))/gi, (_whole, hex, sign) =>
    hex === undefined ? (sign ?? '') : characterOf(Number.parseInt(hex, 16)),
  )
}

/**
 * Removes CSS comments in one pass, because a regular expression would search to the end of the text for each comment
 * without an end.
 */
function withoutComments(text: string): string {
  const kept: string[] = []
  for (let at = 0; ; ) {
    const start = text.indexOf('/*', at)
    const end = start === -1 ? -1 : text.indexOf('*/', start + 2)
    if (end === -1) return [...kept, text.slice(at)].join('')
    kept.push(text.slice(at, start))
    at = end + 2
  }
}

const oneBlank = (text: string): string => text.replace(/\s+/g, ' ')

const characterOf = (code: number): string =>
  code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : ' '
