/** Makes the parts of test replies that are independent of the writer’s mail client. */
import { PHRASES, type Phrases } from './phrases.ts'

export type ReplyMail = {
  id: string
  /** Holds the plain text of the mail. Each mail has at least one of `text` and `html`. */
  text?: string
  html?: string
  expected: string
  /** Lists texts other than `expected` that a careful reader may also accept as the reply. */
  alt?: string[]
  /**
   * Tells how certain the expected text is. All readers agree about the text of a `core` mail, whereas docs/contract.md
   * decides about the text of a `policy` mail.
   */
  tier: 'core' | 'policy'
}

/** Holds the length of the new text in a reply. A short text has no greeting. */
export type Length = 'short' | 'long'

const words = (language: string): Phrases => {
  const found = PHRASES[language]
  if (found === undefined) throw new Error(`no phrases in ${language}`)
  return found
}

/**
 * Fills in the placeholders of a text. The author of the earlier mail has the name {n} and the address {e}, and {a} is
 * the name with the address. The replying writer has the name {m}. The names fit the language of the mail.
 */
export const fill = (language: string, template: string) => {
  const { them, me, from } = words(language)
  return template
    .replaceAll('{a}', `${them} <${from}>`)
    .replaceAll('{n}', them)
    .replaceAll('{e}', from)
    .replaceAll('{m}', me)
}

/** Breaks a line at spaces, as a plain-text mail client does. */
export const wrap = (line: string, width = 76) => {
  const lines: string[] = []
  let current = ''
  for (const word of line.split(' ')) {
    if (current !== '' && current.length + 1 + word.length > width) {
      lines.push(current)
      current = word
    } else current = current === '' ? word : `${current} ${word}`
  }
  return [...lines, current].join('\n')
}

export const wrapAll = (text: string, width = 76) =>
  text
    .split('\n')
    .map((line) => wrap(line, width))
    .join('\n')

export const quoted = (text: string, mark = '> ') =>
  text
    .split('\n')
    .map((line) => (line === '' ? mark.trimEnd() : mark + line))
    .join('\n')

export const escaped = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/** Returns one HTML element for each line, and an empty element for an empty line. */
export const blocks = (text: string, open = '<div>', close = '</div>', empty = '<br>') =>
  text
    .split('\n')
    .map((line) => `${open}${line === '' ? empty : escaped(line)}${close}`)
    .join('')

/** Joins the lines of a text with `<br>`. */
export const broken = (text: string) => escaped(text).replaceAll('\n', '<br>\n')

export const tierOf = (length: Length) => (length === 'short' ? 'core' : 'policy')

/** Splits the name of a variant of a test mail, for example `de:short`, into its parts. */
export const chosen = (choice: string) => {
  const [language = '', length = 'short', form = 'text'] = choice.split(':')
  return {
    language,
    length: length as Length,
    form,
    ...words(language),
    body: words(language)[length as Length],
  }
}
