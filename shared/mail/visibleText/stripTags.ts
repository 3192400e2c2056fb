import { SIBLING_ELEMENTS, VOID_ELEMENTS } from './htmlElements.ts'
import { readHtml } from './htmlTokens.ts'
import { OpenElements } from './openElements.ts'

/**
 * Converts deeply nested HTML to text. For such HTML, a tree builder would take quadratic time or overflow the stack.
 * This conversion makes one pass and builds no tree.
 */

/**
 * Sets the maximum number of HTML elements that are open at once. In a mail thread of a hundred replies, about 400 HTML
 * elements are open at once.
 */
const MAX_DEPTH = 500
/**
 * Sets the maximum number of tags and line ends of HTML. The HTML of a thread of a hundred Outlook replies holds about
 * 20,000 tags and line ends.
 */
const MAX_TAGS_AND_LINES = 60_000

const INLINE = new Set(
  'a abbr b big cite code em font i label mark s small span strong sub sup tt u wbr'.split(' '),
)
const HIDDEN = new Set(['script', 'style', 'head', 'title'])

/**
 * Tells whether HTML has too many tags, too many lines or too deep a nesting for a parser that builds a tree. The
 * counted depth is never less than the depth that the parser reaches.
 */
export function tooComplex(html: string): boolean {
  const open = new OpenElements<{ name: string }>()
  let count = 0
  let deepest = 0
  const isTooComplex = () => count > MAX_TAGS_AND_LINES || deepest > MAX_DEPTH
  for (let at = html.indexOf('\n'); at >= 0; at = html.indexOf('\n', at + 1)) {
    if (++count > MAX_TAGS_AND_LINES) return true
  }
  readHtml(html, {
    name: (name) => {
      count++
      if (VOID_ELEMENTS.has(name)) return
      if (SIBLING_ELEMENTS.has(name) && open.top?.name === name) open.pop()
      if (name === 'tr' && (open.top?.name === 'td' || open.top?.name === 'th')) open.pop()
      if (name === 'tr' && open.top?.name === 'tr') open.pop()
      open.push({ name })
      deepest = Math.max(deepest, open.all.length)
    },
    end: (name) => {
      count++
      open.close(name)
    },
    isDone: isTooComplex,
  })
  return isTooComplex()
}

/**
 * Returns the text of `html` without the tags. Each block element of the HTML gets separate lines of text. The function
 * leaves out scripts and styles.
 */
export function stripTags(html: string): string {
  const parts: string[] = []
  let hidden: string | undefined
  const separate = (name: string) => {
    if (hidden === undefined && !INLINE.has(name)) parts.push('\n')
  }
  readHtml(html, {
    text: (text) => {
      if (hidden === undefined) parts.push(text.replace(/\s+/g, ' '))
    },
    name: (name) => {
      if (HIDDEN.has(name)) hidden ??= name
      else separate(name)
    },
    end: (name) => {
      if (name === hidden) hidden = undefined
      else separate(name)
    },
  })
  return parts
    .join('')
    .replace(/\n[\n ]*/g, '\n')
    .trim()
}
