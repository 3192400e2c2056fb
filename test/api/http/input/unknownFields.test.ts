import { expect, test } from 'bun:test'
import { refuseUnknown, refuseUnknownQuery } from '../../../../api/http/input/unknownFields.ts'

const bad = (message: string) => expect.objectContaining({ status: 400, message })

test('a body with an unknown field is refused, and the error names the known fields', () => {
  const check = (given: object | undefined) => refuseUnknown('The rule', given, ['a', 'b'])
  for (const given of [undefined, {}, { a: 1 }, { b: undefined, a: 2 }]) {
    expect(() => check(given)).not.toThrow()
  }
  expect(() => check({ a: 1, c: 2 })).toThrow(
    bad('The rule must not hold "c": its fields are a, b'),
  )
  expect(() => check({ ['x'.repeat(65)]: 1 })).toThrow(
    bad(`The rule must not hold "${'x'.repeat(64)}": its fields are a, b`),
  )
})

test('a query with an unknown parameter is refused, and the error names the nearest known one', () => {
  const check = (query: string, known: readonly string[]) =>
    refuseUnknownQuery(new URLSearchParams(query), known)
  expect(() => check('', [])).not.toThrow()
  expect(() => check('limit=1&after=2', ['limit', 'after'])).not.toThrow()
  expect(() => check('limit=1&limt=2', ['limit', 'after'])).toThrow(
    bad('The query must not hold "limt": the nearest parameter is limit, of limit, after'),
  )
  expect(() => check('limit=1', [])).toThrow(
    bad('The query must not hold "limit": it takes no parameters'),
  )
})
