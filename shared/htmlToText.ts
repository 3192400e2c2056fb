/**
 * HTML mail bodies to plain text. The conversion is html-to-text's; a bound on size and nesting
 * stands in front of it, because its parser is quadratic and its walk recursive in the nesting.
 */
import { compile, type DomNode, type FormatCallback, type HtmlToTextOptions } from 'html-to-text'
import { stripTags, tooComplex } from './stripTags.ts'

/** Characters of HTML that are looked at; what lies beyond is cut. */
export const MAX_HTML_LENGTH = 2_000_000
/** Each level of a quote or a list rewrites every line in it; deeper ones show as this many. */
const MAX_QUOTE_DEPTH = 8
const MAX_LIST_DEPTH = 4

/** Signatures that clients put in a container of their own. */
const SIGNATURES = [
  '.gmail_signature',
  '.gmail_signature_prefix',
  '.moz-signature',
  '.protonmail_signature_block',
  '.ms-outlook-mobile-signature',
  '#ms-outlook-mobile-signature',
  '#ymail_android_signature',
  '#Signature',
  '#x_Signature',
]

/** Where Outlook, Hotmail, Yahoo, GMX and Zoho begin the history, or what they put all of it in. */
const HISTORY = [
  '#divRplyFwdMsg',
  '#x_divRplyFwdMsg',
  '#appendonsend',
  '#x_appendonsend',
  '#stopSpelling',
  '#OLK_SRC_BODY_SECTION',
  '#mail-editor-reference-message-container',
  '.ms-outlook-mobile-reference-message',
  '.yahoo_quoted',
  '.zmail_extra',
  'div[name=quote]',
]

/** Attributions that are told apart from other text by their container, whatever the language. */
const ATTRIBUTIONS = ['.gmail_attr', '.moz-cite-prefix']

/** Blockquotes that Gmail and Apple Mail use to indent the writer's own text. */
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

const formatList: FormatCallback = (element, walk, builder, options) => {
  const name =
    listDepth >= MAX_LIST_DEPTH ? 'block' : options.ordered ? 'orderedList' : 'unorderedList'
  listDepth++
  const { formatters } = builder.options
  formatters?.[name]?.(element, walk, builder, options)
  listDepth--
}

const formatHistory: FormatCallback = (element, walk, builder) => {
  builder.openBlock({ leadingLineBreaks: 2 })
  builder.addLiteral('-----Original Message-----')
  builder.closeBlock({ trailingLineBreaks: 2 })
  walk(element.children, builder)
}

/** Gmail puts the head of a forwarded message in the same container: that one must stay. */
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
const spaced = { leadingLineBreaks: 2, trailingLineBreaks: 2 }
const heading = { leadingLineBreaks: 2, trailingLineBreaks: 1, uppercase: false }

const OPTIONS: HtmlToTextOptions = {
  wordwrap: false,
  limits: { maxInputLength: MAX_HTML_LENGTH },
  formatters: {
    quote: formatQuote,
    list: formatList,
    history: formatHistory,
    attribution: formatAttribution,
  },
  selectors: [
    { selector: 'a', options: { hideLinkHrefIfSameAsText: true, noAnchorUrl: true } },
    { selector: 'p', options: spaced },
    { selector: 'img', format: 'skip' },
    { selector: 'hr', options: { length: 24 } },
    { selector: 'blockquote', format: 'quote' },
    { selector: 'ul', format: 'list', options: { itemPrefix: '- ', ...spaced } },
    { selector: 'ol', format: 'list', options: { ordered: true, ...spaced } },
    ...['h1', 'h2', 'h3', 'h4', 'h5', 'h6'].map((selector) => ({ selector, options: heading })),
    ...INDENTS.map((selector) => ({ selector, format: 'block', options: block })),
  ],
}

const convertAll = compile(OPTIONS)

const convertMarked = compile({
  ...OPTIONS,
  selectors: [
    ...OPTIONS.selectors!,
    { selector: 'a', options: { ignoreHref: true } },
    ...SIGNATURES.map((selector) => ({ selector, format: 'skip' })),
    ...HISTORY.map((selector) => ({ selector, format: 'history' })),
    ...ATTRIBUTIONS.map((selector) => ({ selector, format: 'attribution' })),
  ],
})

function bounded(html: string, convert: (html: string) => string): string {
  const input = html.slice(0, MAX_HTML_LENGTH)
  if (tooComplex(input)) return stripTags(input)
  quoteDepth = 0
  listDepth = 0
  return convert(input)
}

/**
 * The whole text of an HTML mail: paragraphs and line breaks kept, links as `text [https://…]`,
 * quotes behind `> `, images left out.
 * @param html any HTML, hostile too; read up to {@link MAX_HTML_LENGTH} characters
 * @returns plain text, lines separated by `\n`
 * @example htmlToText('<p>Hi</p><a href="https://x.test">link</a>') // 'Hi\n\nlink [https://x.test]'
 */
export function htmlToText(html: string): string {
  return bounded(html, convertAll)
}

/**
 * As {@link htmlToText}, for the search of the sender's own text: signature containers are gone,
 * history containers begin with a separator line, links show their text alone.
 */
export function htmlToMarkedText(html: string): string {
  return bounded(html, convertMarked)
}
