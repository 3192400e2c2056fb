import { expect, test } from 'bun:test'
import { NeedleSearch, type Range } from '../../../shared/vault/needleSearch.ts'
import { createRandom } from '../../chaos/random.ts'

/**
 * Returns each range of a text in which a searched text occurs. Ranges that overlap or touch each other are joined.
 */
function naive(needles: readonly string[], text: string): Range[] {
  const covered = new Uint8Array(text.length)
  const joined = new Uint8Array(text.length + 1)
  for (const needle of needles) {
    for (let at = text.indexOf(needle); at !== -1; at = text.indexOf(needle, at + 1)) {
      covered.fill(1, at, at + needle.length)
      joined.fill(1, at + 1, at + needle.length)
    }
  }
  const found: Range[] = []
  for (let at = 0; at < text.length; at++) {
    if (covered[at] === 0) continue
    const last = found.at(-1)
    if (last?.end === at) last.end = at + 1
    else found.push({ start: at, end: at + 1 })
  }
  return found
}

test('in texts with few different letters, the search for secrets finds the same positions as a simple search', () => {
  const { next: random } = createRandom(20_261_122, 'needles')
  const word = (most: number, letters: number) =>
    Array.from({ length: 1 + Math.floor(random() * most) }, () =>
      String.fromCharCode(97 + Math.floor(random() * letters)),
    ).join('')
  for (let n = 0; n < 3_000; n++) {
    const letters = 1 + Math.floor(random() * 4)
    const needles = Array.from({ length: Math.floor(random() * 8) }, () => word(7, letters))
    const text = word(60, letters)
    expect({ needles, text, found: new NeedleSearch(needles).find(text) }).toEqual({
      ...{ needles, text, found: naive(needles, text) },
    })
  }
})

test('the search for secrets finds texts that contain any byte from 0 to 255', () => {
  const bytes = Array.from({ length: 256 }, (_, code) => String.fromCharCode(code)).join('')
  expect(new NeedleSearch(['\0', '\xff']).find(bytes)).toEqual([
    { start: 0, end: 1 },
    { start: 255, end: 256 },
  ])
  expect(new NeedleSearch([bytes]).find(`a${bytes}b`)).toEqual([{ start: 1, end: 257 }])
})
