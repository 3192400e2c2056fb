/** Tests the limits on the depth and the length of JSON that a stranger sends. */
import { describe, expect, test } from 'bun:test'
import { jsonFault } from '../../../../shared/till/bazaar/jsonBounds.ts'

/** Wraps a JSON value in the given number of nested lists. */
function nested(value: unknown, levels: number): unknown {
  let outer = value
  for (let n = 0; n < levels; n++) outer = [outer]
  return outer
}
const isShort = (value: unknown, charsMax: number) => jsonFault(value, charsMax) === null

describe('the service refuses JSON that is nested too deeply', () => {
  test('JSON in endpoint metadata may be nested at most 20 levels', () => {
    expect(jsonFault(nested(1, 20), 1_000)).toBeNull()
    expect(jsonFault(nested(1, 21), 1_000)).toBe('must be nested at most 20 levels')
    expect(jsonFault({ a: 1, b: { c: nested(1, 18) } }, 1_000)).toBeNull()
    expect(jsonFault({ a: 1, b: { c: nested(1, 19) } }, 1_000)).toBe(
      'must be nested at most 20 levels',
    )
  })
})

describe('the service measures the length of a JSON value without converting the value to text', () => {
  test.each([
    ['', 2],
    ['text', 6],
    [7, 4],
    [null, 4],
    [true, 4],
    [{}, 2],
    [[], 2],
    [['a', 'b'], 10],
    [{ ab: 'c' }, 11],
    [{ ab: [null] }, 15],
  ])('the JSON of %j is counted as %d characters', (value, length) => {
    expect(jsonFault(value, length)).toBeNull()
    expect(jsonFault(value, length - 1)).toBe(`must be at most ${length - 1} characters of JSON`)
  })

  test('the length of JSON is the sum of the lengths of all its parts', () => {
    const long = Array.from({ length: 100 }, () => 'x'.repeat(8))
    expect([isShort(long, 1_102), isShort(long, 1_101)]).toEqual([true, false])
    expect([isShort(['a', 'b'], 5), isShort(['a', 'b'], 6)]).toEqual([false, false])
  })

  test('the service stops counting the length of JSON as soon as the length limit is exceeded', () => {
    const list = ['x'.repeat(10), nested(1, 30)]
    expect(jsonFault(list, 5)).toBe('must be at most 5 characters of JSON')
    expect(jsonFault(list, 100)).toBe('must be nested at most 20 levels')
  })
})
