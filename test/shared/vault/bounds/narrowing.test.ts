/** Tests how two lists that limit the use of a credential are compared and combined. */
import { expect, test } from 'bun:test'
import { common, isWithin, type Meet } from '../../../../shared/vault/bounds/narrowing.ts'

/** Compares two texts. Returns the longer text if it begins with the shorter text, and otherwise null. */
const meet: Meet = (one, other) =>
  one.startsWith(other) ? one : other.startsWith(one) ? other : null

test('a list of allowed values is narrower than another list if each of its entries lies within an entry of the other list', () => {
  expect(isWithin(meet, ['ab', 'cd'], ['a', 'c'])).toBe(true)
  expect(isWithin(meet, ['ab', 'xd'], ['a', 'c'])).toBe(false)
  expect(isWithin(meet, ['a'], ['ab'])).toBe(false)
  expect(isWithin(meet, ['a'], [])).toBe(false)
  expect(isWithin(meet, [], [])).toBe(true)
})

test('the common part of two lists of allowed values contains all that both lists allow, each entry once', () => {
  expect(common(meet, ['a', 'bc'], ['ab', 'b', 'x'])).toEqual(['ab', 'bc'])
  expect(common(meet, ['a', 'ab'], ['ab'])).toEqual(['ab'])
  expect(common(meet, ['a'], [])).toEqual([])
})
