import { findLinks } from '../codes/links/mailLinks.ts'
import { readHtml } from '../visibleText/htmlTokens.ts'
import { visibleHtml } from '../visibleText/visibleHtml.ts'
import { type DocumentText, TextWriter } from './document.ts'
import { decoderOf, decodeText } from './plainText.ts'

const HTML_MAX_CHARS = 2_000_000
const CHARSET_BYTES = 1024
const CHARSET = /<(?:meta|\?xml)[^>]{0,200}(?:charset|encoding)\s{0,9}=\s{0,9}["']?([\w-]{2,30})/i
const ORDER_MARK = /^(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff)/
const BLOCKS = new Set(
  'address article aside blockquote body caption center dd div dl dt fieldset figure footer form h1 h2 h3 h4 h5 h6 head header hr li main nav ol p pre section summary table title tr ul'.split(
    ' ',
  ),
)

/** Reads the visible text of an HTML file. Each row of a table becomes a line, with tabs between the cells. */
export function readHtmlDocument(bytes: Uint8Array): DocumentText {
  const { html, hidesText } = visibleHtml(decodeHtml(bytes), HTML_MAX_CHARS)
  const out = new TextWriter()
  if (hidesText) out.omitted.add('hidden-text')
  for (const { href, text } of findLinks({ subject: '', text: '', html })) out.link(href, text)
  // Holds the separator before the next word: a space, a tab or a line end.
  let gap = ''
  let isRow = false
  const separate = (next: string) => {
    // The tab before a table cell stays in the text. A paragraph at the start of the cell must not turn it into a line
    // end.
    if (gap !== '\n' && !gap.includes('\t')) gap = next
  }
  const text = (raw: string) => {
    const words = raw.replace(/\s+/g, ' ')
    const own = words.trim()
    if (words.startsWith(' ') && gap === '') gap = ' '
    if (own === '') return
    out.write(gap + own)
    gap = words.endsWith(' ') ? ' ' : ''
  }
  const open = (name: string) => {
    if (name === 'br') separate(isRow ? ' ' : '\n')
    else if (name === 'tr') {
      gap = '\n'
      isRow = true
    } else if (name === 'table') gap = '\n'
    else if ((name === 'td' || name === 'th') && gap !== '\n') gap = `${gap.trimStart()}\t`
    else if (BLOCKS.has(name)) separate(isRow ? ' ' : '\n')
  }
  const close = (name: string) => {
    if (name === 'tr' || name === 'table') {
      gap = '\n'
      isRow = false
    } else if (BLOCKS.has(name)) separate(isRow ? ' ' : '\n')
  }
  readHtml(html, { name: open, end: close, text, isDone: () => out.isFull })
  return out.done()
}

function decodeHtml(bytes: Uint8Array): string {
  const head = Buffer.from(bytes.subarray(0, CHARSET_BYTES)).toString('latin1')
  // If the file has a byte order mark, the code ignores the charset that the HTML names, because the mark takes
  // precedence (HTML standard, §13.2.3.1).
  const named = ORDER_MARK.test(head) ? undefined : CHARSET.exec(head)?.[1]
  if (named !== undefined && !/^utf-?(?:8|16)/i.test(named)) {
    try {
      return decoderOf(named).decode(bytes.subarray(0, 4 * HTML_MAX_CHARS))
    } catch {
      // If the HTML names an unknown charset, the HTML reader guesses the charset from the bytes.
    }
  }
  return decodeText(bytes, HTML_MAX_CHARS)
}
