import { expect, test } from 'bun:test'
import { type TSchema, Type as t } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { describeValidationError } from '../../../../api/http/input/validation.ts'

/** Returns the sentence that describes the first error of a value. */
const said = (schema: TSchema, value: unknown) =>
  describeValidationError('body', Value.Errors(schema, value).First())

test('the error for an invalid input states the rule that the schema sets', () => {
  for (const [schema, rule] of [
    [t.String(), 'be a string'],
    [t.String({ minLength: 2 }), 'be a string of at least 2 characters'],
    [t.String({ maxLength: 5 }), 'be a string of at most 5 characters'],
    [t.String({ minLength: 2, maxLength: 5 }), 'be a string of 2 to 5 characters'],
    [t.Array(t.String(), { minItems: 1, maxItems: 9 }), 'be an array of 1 to 9 items'],
    [t.Integer({ minimum: 0, maximum: 100 }), 'be a whole number of 0 to 100'],
    [t.Integer({ minimum: 0 }), 'be a whole number of at least 0'],
    [t.Number({ maximum: 1 }), 'be a number of at most 1'],
    [t.Number(), 'be a number'],
    [t.Boolean(), 'be true or false'],
    [t.Null(), 'be null'],
    [t.Object({}), 'be a JSON object'],
    [t.Union([t.Literal('a'), t.Literal(2)]), 'be one of "a", 2'],
    [t.Union([t.Literal('a'), t.Null()]), 'be one of "a", null'],
    [t.Union([t.Integer(), t.Literal('a')]), 'be a whole number or "a"'],
    [t.Union([t.String({ error: 'be red or blue' }), t.Null()]), 'be red or blue, or null'],
    [t.Union([t.String({ error: 'be red, blue' }), t.Null()]), 'be red, blue, or null'],
    [
      t.Union([t.String({ minLength: 1 }), t.Null()]),
      'be a string of at least 1 characters or null',
    ],
    [t.String({ error: 'be a colour' }), 'be a colour'],
  ] as [TSchema, string][]) {
    expect(said(t.Object({ a: schema }), { a: Symbol('x') })).toBe(`a must ${rule}`)
  }
})

test('the error for an invalid input names the field, and the index if the field is in a list', () => {
  for (const [schema, value, field] of [
    [t.Object({ a: t.Object({ b: t.Null() }) }), { a: { b: 1 } }, 'a.b'],
    [t.Object({ to: t.Array(t.Null()) }), { to: [null, 1] }, 'to[1]'],
    [t.Object({ a: t.Array(t.Object({ b: t.Null() })) }), { a: [{ b: 1 }] }, 'a[0].b'],
    [t.Object({ '0': t.Null() }), { '0': 1 }, '0'],
    [t.Object({ 'a/b~c': t.Null() }), { 'a/b~c': 1 }, 'a/b~c'],
    [t.Null(), 1, 'The body'],
  ] as [TSchema, unknown, string][]) {
    expect(said(schema, value)).toBe(`${field} must be null`)
  }
  const root = { ...Value.Errors(t.Null(), 1).First()!, path: '/root' }
  expect(describeValidationError('query', root)).toBe('The query must be null')
})

test('if the broken rule of an input is unknown, the error only says that the input is not valid', () => {
  expect(describeValidationError('query', undefined)).toBe('The query is not valid')
})
