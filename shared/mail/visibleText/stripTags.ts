import { SIBLING_ELEMENTS, VOID_ELEMENTS } from './htmlElements.ts'

/**
 * Converts HTML when its nesting makes a tree builder quadratic or overflows the stack. It makes one pass, builds no
 * tree, and runs no regular expression over more than one tag name.
 */

/** Limits the open elements. Threads of a hundred replies nest about 400 deep. */
const MAX_DEPTH = 500
const MAX_NAME_LENGTH = 24
/** Limits the tags and line ends. A thread of a hundred Outlook replies holds about 20,000. */
const MAX_TAGS_AND_LINES = 60_000

const INLINE = new Set(
  'a abbr b big cite code em font i label mark s small span strong sub sup tt u wbr'.split(' '),
)
const HIDDEN = new Set(['script', 'style', 'head', 'title'])
const ENTITIES: Record<string, string> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  nbsp: ' ',
  apos: "'",
}

type Tag = { name: string; closing: boolean; next: number }

/** Returns the tag name at a `<`. @returns undefined if the `<` is text. */
function tagAt(html: string, index: number): Tag | undefined {
  const closing = html[index + 1] === '/'
  const from = index + (closing ? 2 : 1)
  const name = /^[a-z][a-z0-9:]*/i.exec(html.slice(from, from + MAX_NAME_LENGTH))?.[0]
  return name === undefined
    ? undefined
    : { name: name.toLowerCase(), closing, next: from + name.length }
}

/**
 * Tells whether a tree of `html` takes too long to build, because it has too many tags and lines or too deep nesting.
 * The counted depth is never below the parser's depth.
 */
export function tooComplex(html: string): boolean {
  const stack: string[] = []
  let count = 0
  for (let at = html.indexOf('\n'); at >= 0; at = html.indexOf('\n', at + 1)) {
    if (++count > MAX_TAGS_AND_LINES) return true
  }
  const open = new Map<string, number>()
  const pop = () => {
    const name = stack.pop()!
    open.set(name, open.get(name)! - 1)
    return name
  }
  for (let at = html.indexOf('<'); at >= 0; at = html.indexOf('<', at + 1)) {
    const tag = tagAt(html, at)
    if (tag !== undefined && ++count > MAX_TAGS_AND_LINES) return true
    if (tag === undefined || VOID_ELEMENTS.has(tag.name)) continue
    const { name } = tag
    if (tag.closing) {
      if ((open.get(name) ?? 0) > 0) while (pop() !== name);
      continue
    }
    if (SIBLING_ELEMENTS.has(name) && stack.at(-1) === name) pop()
    if (name === 'tr' && (stack.at(-1) === 'td' || stack.at(-1) === 'th')) pop()
    if (name === 'tr' && stack.at(-1) === 'tr') pop()
    stack.push(name)
    open.set(name, (open.get(name) ?? 0) + 1)
    if (stack.length > MAX_DEPTH) return true
  }
  return false
}

/** Returns the text of `html` without its tags. Blocks get their own lines, and scripts and styles are left out. */
export function stripTags(html: string): string {
  const parts: string[] = []
  let from = 0
  let hidden: string | undefined
  for (let at = html.indexOf('<'); at >= 0; at = html.indexOf('<', Math.max(at + 1, from))) {
    const tag = tagAt(html, at)
    const comment = html.startsWith('<!--', at)
    if (tag === undefined && !comment) continue
    if (hidden === undefined) parts.push(html.slice(from, at).replace(/\s+/g, ' '))
    const end = html.indexOf(comment ? '-->' : '>', at)
    if (end < 0) return finish(parts)
    from = end + (comment ? 3 : 1)
    if (tag === undefined) continue
    if (hidden === undefined && !tag.closing && HIDDEN.has(tag.name)) hidden = tag.name
    else if (tag.closing && tag.name === hidden) hidden = undefined
    else if (hidden === undefined && !INLINE.has(tag.name)) parts.push('\n')
  }
  if (hidden === undefined) parts.push(html.slice(from).replace(/\s+/g, ' '))
  return finish(parts)
}

function finish(parts: readonly string[]): string {
  return parts
    .join('')
    .replace(/\n[\n ]*/g, '\n')
    .replace(
      /&(#\d{1,7}|#x[\da-f]{1,6}|[a-z]{1,8});/gi,
      (whole, name: string) => decode(name) ?? whole,
    )
    .trim()
}

function decode(name: string): string | undefined {
  if (!name.startsWith('#')) return ENTITIES[name.toLowerCase()]
  const hex = name[1] === 'x' || name[1] === 'X'
  const code = hex ? Number.parseInt(name.slice(2), 16) : Number.parseInt(name.slice(1), 10)
  return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : undefined
}
