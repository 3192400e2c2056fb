import { expect, test } from 'bun:test'
import { firstWithin } from '../../../shared/mail/firstWithin.ts'

test('the first texts of a list are returned, as long as their lengths together do not exceed the maximum number of characters', () => {
  expect(firstWithin(['ab', 'c', 'd'], 3)).toEqual(['ab', 'c'])
  expect(firstWithin(['abcd', 'e'], 3)).toEqual([])
  expect(firstWithin([], 0)).toEqual([])
})
