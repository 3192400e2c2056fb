/**
 * Converts HTML mail bodies to plain text with html-to-text. The functions first limit the size and the nesting of the
 * HTML, because the parser of html-to-text is recursive and takes quadratic time in the depth of the nesting.
 */
import { compile, type DomNode, type FormatCallback, type HtmlToTextOptions } from 'html-to-text'
import { announcedMessage } from '../replyText/markers.ts'
import { stripTags, tooComplex } from './stripTags.ts'

/** Sets the maximum number of characters of HTML that the functions convert. They ignore the rest of the HTML. */
export const MAX_HTML_LENGTH = 2_000_000
/**
 * Sets the maximum depth of nested quotes in the text, because the conversion rewrites all lines inside a quote or list
 * once for each level of nesting. The constant MAX_LIST_DEPTH limits the depth of nested lists. Deeper quotes and lists
 * are shown at the maximum depth.
 */
const MAX_QUOTE_DEPTH = 8
const MAX_LIST_DEPTH = 4

/**
 * Lists CSS selectors for the elements in which mail clients put the signature. Most class names of signature elements
 * end in "signature". In received mail, Outlook adds the prefix x_ to the names of CSS classes.
 */
const SIGNATURES = [
  'signature',
  '[class~=signature]',
  '[class$=signature i]',
  '[id$=signature i]',
  '[data-signature-widget]',
  '[data-sigid]',
  '[class*=gmail_signature]',
  '[class*=moz-signature]',
  '[class*=protonmail_signature_block]',
  '[class*=ms-outlook-mobile-signature]',
  '[id*=ms-outlook-mobile-signature]',
  '[id*=ymail_android_signature]',
]

/**
 * Lists CSS selectors for the elements in which Outlook, Hotmail, Yahoo, Zimbra, GMX and Zoho put the quoted history.
 */
const HISTORY = [
  '[id*=divRplyFwdMsg]',
  '[id*=appendonsend]',
  '[id*=stopSpelling]',
  '[id*=OLK_SRC_BODY_SECTION]',
  '[id*=mail-editor-reference-message-container]',
  '[class*=ms-outlook-mobile-reference-message]',
  '[class*=OutlookMessageHeader]',
  '[class*=yahoo_quoted]',
  '[class*=zmail_extra]',
  'hr[data-marker=__DIVIDER__]',
  'div[name=quote]',
]

/**
 * Lists CSS selectors for the elements that contain an attribution (`On …, Bob wrote:`). The class names of these
 * elements are the same in every language.
 */
const ATTRIBUTIONS = ['[class*=gmail_attr]', '[class*=moz-cite-prefix]']

/** Lists CSS selectors for the blockquotes with which Gmail and Apple Mail only indent the writer's own text. */
const INDENTS = ['blockquote.webkit-indent-blockquote', 'blockquote[style*="0 0 0 40px"]']

let quoteDepth = 0
let listDepth = 0

const formatQuote: FormatCallback = (element, walk, builder) => {
  const prefix = quoteDepth < MAX_QUOTE_DEPTH ? '> ' : ''
  quoteDepth++
  builder.openBlock({ leadingLineBreaks: 2, reservedLineLength: 2 })
  walk(element.children, builder)
  builder.closeBlock({
    trailingLineBreaks: 2,
    blockTransform: (block) =>
      prefix === ''
        ? block
        : block
            .trim()
            .split('\n')
            .map((line) => prefix + line)
            .join('\n'),
  })
  quoteDepth--
}

/**
 * Writes quote marks before the lines of a quoted message, but not before the lines of a forwarded message. Apple Mail
 * puts both into the same element, but writes `Begin forwarded message:` above a forwarded message.
 */
const formatMarkedQuote: FormatCallback = (element, walk, builder, options) => {
  const first = leadingText(element)
  const forwarded = /[:：]$/.test(first) && announcedMessage(first) === 'forwarded'
  if (!forwarded) return formatQuote(element, walk, builder, options)
  builder.openBlock({ leadingLineBreaks: 2 })
  walk(element.children, builder)
  builder.closeBlock({ trailingLineBreaks: 2 })
}

const formatList: FormatCallback = (element, walk, builder, options) => {
  const name =
    listDepth >= MAX_LIST_DEPTH ? 'block' : options.ordered ? 'orderedList' : 'unorderedList'
  listDepth++
  const { formatters } = builder.options
  formatters?.[name]?.(element, walk, builder, options)
  listDepth--
}

/**
 * Formats a table cell as ordinary text, because many mails use a table only for the layout. A space separates the
 * words of two table cells.
 */
const formatCell: FormatCallback = (element, walk, builder) => {
  walk(element.children, builder)
  builder.addInline(' ')
}

const formatHistory: FormatCallback = (element, walk, builder) => {
  if (announcedMessage(leadingText(element)) === 'forwarded') {
    builder.openBlock({ leadingLineBreaks: 2 })
    walk(element.children, builder)
    builder.closeBlock({ trailingLineBreaks: 2 })
    return
  }
  builder.openBlock({ leadingLineBreaks: 2 })
  builder.addLiteral('-----Original Message-----')
  builder.closeBlock({ trailingLineBreaks: 2 })
  walk(element.children, builder)
}

/**
 * Removes an attribution, but keeps the header lines of a forwarded message. Gmail puts these header lines into the
 * same kind of container as an attribution.
 */
const formatAttribution: FormatCallback = (element, walk, builder) => {
  if (!leadingText(element).startsWith('-')) return
  builder.openBlock({ leadingLineBreaks: 1 })
  walk(element.children, builder)
  builder.closeBlock({ trailingLineBreaks: 1 })
}

function leadingText(element: DomNode): string {
  let node: DomNode | undefined = element
  for (let steps = 0; node !== undefined && steps < 20; steps++) {
    const text: string | undefined = node.data?.trim()
    if (node.type === 'text' && text) return text
    node = node.children?.find((child) => child.type === 'tag' || child.data?.trim())
  }
  return ''
}

const block = { leadingLineBreaks: 1, trailingLineBreaks: 1 }

/** Lists CSS selectors for inline elements that a style shows on separate lines. */
const STYLED_BLOCKS = [
  ...['b', 'code', 'em', 'font', 'i', 'label', 'small', 'span', 'strong', 'tt', 'u'],
].flatMap((name) => [`${name}[style*="display:block" i]`, `${name}[style*="display: block" i]`])
const spaced = { leadingLineBreaks: 2, trailingLineBreaks: 2 }
const heading = { leadingLineBreaks: 2, trailingLineBreaks: 1, uppercase: false }

const OPTIONS: HtmlToTextOptions = {
  wordwrap: false,
  limits: { maxInputLength: MAX_HTML_LENGTH },
  formatters: {
    quote: formatQuote,
    markedQuote: formatMarkedQuote,
    list: formatList,
    cell: formatCell,
    history: formatHistory,
    attribution: formatAttribution,
  },
  selectors: [
    { selector: 'a', options: { hideLinkHrefIfSameAsText: true, noAnchorUrl: true } },
    { selector: 'p', options: spaced },
    { selector: 'img', format: 'skip' },
    { selector: 'tr', format: 'block', options: block },
    { selector: 'td', format: 'cell' },
    { selector: 'th', format: 'cell' },
    { selector: 'hr', options: { length: 24 } },
    { selector: 'blockquote', format: 'quote' },
    { selector: 'ul', format: 'list', options: { itemPrefix: '- ', ...spaced } },
    { selector: 'ol', format: 'list', options: { ordered: true, ...spaced } },
    ...['h1', 'h2', 'h3', 'h4', 'h5', 'h6'].map((selector) => ({ selector, options: heading })),
    ...[...INDENTS, ...STYLED_BLOCKS].map((selector) => ({
      selector,
      format: 'block',
      options: block,
    })),
  ],
}

const convertAll = compile(OPTIONS)

/** Writes the description of a picture in its place. A mail program that loads no pictures shows the same text. */
const formatPicture: FormatCallback = (element, _walk, builder) => {
  const description = element.attribs?.alt ?? ''
  if (description !== '') builder.addInline(description)
}

const convertDescribed = compile({
  ...OPTIONS,
  formatters: { ...OPTIONS.formatters, picture: formatPicture },
  selectors: OPTIONS.selectors!.map((one) =>
    one.selector === 'img' ? { selector: 'img', format: 'picture' } : one,
  ),
})

const MARKED_OPTIONS: HtmlToTextOptions = {
  ...OPTIONS,
  selectors: [
    ...OPTIONS.selectors!,
    { selector: 'blockquote[type=cite]', format: 'markedQuote' },
    ...SIGNATURES.map((selector) => ({ selector, format: 'skip' })),
    ...HISTORY.map((selector) => ({ selector, format: 'history' })),
    ...ATTRIBUTIONS.map((selector) => ({ selector, format: 'attribution' })),
  ],
}

const convertMarked = compile(MARKED_OPTIONS)

const convertMarkedPlain = compile({
  ...MARKED_OPTIONS,
  selectors: [...MARKED_OPTIONS.selectors!, { selector: 'a', options: { ignoreHref: true } }],
})

function bounded(html: string, convert: (html: string) => string): string {
  const input = html.slice(0, MAX_HTML_LENGTH)
  if (tooComplex(input)) return stripTags(input)
  quoteDepth = 0
  listDepth = 0
  return convert(input)
}

/**
 * Returns the whole text of an HTML mail. The text keeps paragraphs and line breaks, and leaves out images. Links
 * become `text [https://…]`, and each line of a quote begins with `> `.
 * @param html is the HTML of a mail. The HTML may be hostile. The converter reads at most 2,000,000 characters of the
 * HTML.
 * @returns plain text with lines separated by `\n`.
 * @example htmlToText('<p>Hi</p><a href="https://x.test">link</a>') // 'Hi\n\nlink [https://x.test]'
 */
export function htmlToText(html: string): string {
  return bounded(html, convertAll)
}

/** Converts HTML to text like {@link htmlToText}, and writes the description of each picture in the picture's place. */
export function htmlToDescribedText(html: string): string {
  return bounded(html, convertDescribed)
}

/**
 * Converts HTML to text like {@link htmlToText}, but removes the containers of signatures. A separator line marks the
 * beginning of each container with quoted history.
 * @param links is true if the text must show the URL of each link. If `links` is false, the text shows only the words
 * of each link.
 */
export function htmlToMarkedText(html: string, links: boolean): string {
  return bounded(html, links ? convertMarked : convertMarkedPlain)
}
