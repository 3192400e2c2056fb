/** Tests how two lists of a bound are compared and joined. */
import { expect, test } from 'bun:test'
import { common, isWithin, type Meet } from '../../../../shared/vault/bounds/narrowing.ts'

/** Takes the longer of two texts if the other is its start. */
const meet: Meet = (one, other) =>
  one.startsWith(other) ? one : other.startsWith(one) ? other : null

test('a list is within another if each of its entries is within an entry of the other', () => {
  expect(isWithin(meet, ['ab', 'cd'], ['a', 'c'])).toBe(true)
  expect(isWithin(meet, ['ab', 'xd'], ['a', 'c'])).toBe(false)
  expect(isWithin(meet, ['a'], ['ab'])).toBe(false)
  expect(isWithin(meet, ['a'], [])).toBe(false)
  expect(isWithin(meet, [], [])).toBe(true)
})

test('the common list has what both lists allow, each entry once', () => {
  expect(common(meet, ['a', 'bc'], ['ab', 'b', 'x'])).toEqual(['ab', 'bc'])
  expect(common(meet, ['a', 'ab'], ['ab'])).toEqual(['ab'])
  expect(common(meet, ['a'], [])).toEqual([])
})
