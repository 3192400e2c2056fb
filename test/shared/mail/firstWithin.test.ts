import { expect, test } from 'bun:test'
import { firstWithin } from '../../../shared/mail/firstWithin.ts'

test('firstWithin returns the first texts of a list, as many as have at most the given number of characters together', () => {
  expect(firstWithin(['ab', 'c', 'd'], 3)).toEqual(['ab', 'c'])
  expect(firstWithin(['abcd', 'e'], 3)).toEqual([])
  expect(firstWithin([], 0)).toEqual([])
})
