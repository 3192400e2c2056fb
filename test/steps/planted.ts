/**
 * Holds example readers (functions that read untrusted text) with planted faults that cost more than linear work. The
 * measurement must find every planted fault.
 */
import type { Reader } from './readers/reader.ts'

const plant = (name: string, read: (text: string) => unknown): Reader => ({
  name,
  max: 100_000,
  grammar: { tokens: ['a', ' ', 'ab', '<b', '1'], nests: [['(', ')']] },
  read,
})

export const PLANTED: readonly Reader[] = [
  plant('a loop in a loop', (text) => {
    let same = 0
    for (const one of text) for (const other of text) if (one === other) same++
    return same
  }),
  plant('indexOf in a loop', (text) => {
    let found = 0
    for (let at = 0; at < text.length; at++) if (text.indexOf('#', at) !== -1) found++
    return found
  }),
  plant('indexOf with a needle of the same length', (text) =>
    text.indexOf(`${text.slice(0, text.length / 2)}#`),
  ),
  plant('slice in a loop', (text) => {
    let rest = text
    while (rest !== '') rest = rest.slice(1)
  }),
  plant('shift in a loop', (text) => {
    const letters = [...text]
    while (letters.length > 0) letters.shift()
  }),
  plant('includes of a growing array', (text) => {
    const known: number[] = []
    for (let at = 0; at < text.length; at++) if (!known.includes(at)) known.push(at)
  }),
  plant('a spread in a loop', (text) => {
    let all: string[] = []
    for (const letter of text) all = [...all, letter]
    return all
  }),
  plant('an object copied in a loop', (text) => {
    let all: Record<number, string> = {}
    for (let at = 0; at < text.length; at += 2) all = { ...all, [at]: text[at]! }
    return all
  }),
  plant('bytes concatenated in a loop', (text) => {
    let all = Buffer.alloc(0)
    for (let at = 0; at < text.length; at += 8) all = Buffer.concat([all, Buffer.from('12345678')])
  }),
  plant('text times terms', (text) => {
    const terms = text.slice(0, text.length / 2).match(/.{1,8}/gs) ?? []
    return terms.filter((term) => text.slice(text.length / 2).includes(`${term}#`))
  }),
  plant('a number of many digits', (text) => BigInt(/^\d+$/.test(text) ? text : 0)),
  plant('blanks at the end', (text) => text.replace(/\s+$/, '')),
  plant('a tag that does not end', (text) => text.replace(/<[^>]*>/g, '')),
  plant('a lookahead over the rest', (text) => text.match(/a(?=.*#)/gs)),
  plant('a lookbehind over the start', (text) => text.match(/(?<=^.*#.*)b/gs)),
  plant('an exponential group', (text) => /^(?:a|aa)+$/.test(text)),
  plant('a lazy group', (text) => /a.+?#/gs.test(text)),
]

/**
 * Lists example readers (functions that read untrusted text) with linear work, although they use costly built-in
 * functions. The measurement must judge each of them as linear.
 */
export const LINEAR: readonly Reader[] = [
  plant('one loop after another', (text) => {
    for (const _ of text);
    for (const _ of text);
  }),
  plant('indexOf from place to place', (text) => {
    let found = 0
    for (let at = text.indexOf('a'); at >= 0; at = text.indexOf('a', at + 1)) found++
    return found
  }),
  plant('split, slice and join', (text) =>
    text
      .split('b')
      .map((part) => part.slice(1))
      .join('b'),
  ),
  plant('sort', (text) => [...text].sort()),
  plant('a set of letters', (text) => [...new Set(text)].map((letter) => ({ letter }))),
  plant('groups of a bounded length', (text) => text.match(/(?<!b)a{1,30}(?=[^a]|$)/g)),
  plant('JSON and back', (text) => JSON.parse(JSON.stringify([text]))),
  plant('bytes', (text) => Buffer.concat([Buffer.from(text)]).toString('base64')),
]
