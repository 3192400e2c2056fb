/**
 * Compares two validators: the validator of the service, which supports only a part of JSON Schema, and the full
 * validator of the package `@x402/extensions`.
 */
import { expect, test } from 'bun:test'
import { createRequire } from 'node:module'
import { schemaFault, valueFault } from '../../../shared/till/bazaar/jsonSchema.ts'

const { default: Ajv } = createRequire(import.meta.resolve('@x402/extensions/bazaar'))(
  'ajv/dist/2020.js',
)
const ajv = new Ajv({ strict: false })

const schemas: unknown[] = [
  true,
  false,
  {},
  { type: 'string' },
  { type: ['string', 'null'] },
  { type: 'integer', minimum: 1, exclusiveMaximum: 7 },
  { type: 'number', maximum: 7, exclusiveMinimum: 1 },
  { minLength: 1, maxLength: 2 },
  { type: 'array', items: { type: 'integer' }, minItems: 1, maxItems: 2 },
  { items: false },
  { type: 'object', required: ['a'], properties: { a: { const: 1 } } },
  { properties: { a: false }, additionalProperties: { type: 'string' } },
  { additionalProperties: false },
  { enum: [1, 'a', null] },
  { const: null },
  { type: 'object', properties: { a: { type: 'object', required: ['b'] } } },
]
const values: unknown[] = [
  null,
  true,
  0,
  1,
  1.5,
  7,
  '',
  'a',
  'abc',
  '🏴',
  [],
  [1],
  [1, 2, 3],
  ['a'],
  {},
  { a: 1 },
  { a: [1] },
  { b: 'a' },
  { b: 1 },
  { a: { b: 1 } },
  { a: {} },
  Object.fromEntries([['__proto__', 'a']]),
]

test('for every tested schema, the service accepts a value exactly if the JSON Schema validator of @x402/extensions accepts it', () => {
  for (const schema of schemas) {
    expect([schema, schemaFault(schema)]).toEqual([schema, null])
    const validate = ajv.compile(schema)
    for (const info of values) {
      const isRight = valueFault(schema, info) === null
      expect({ schema, info, isRight }).toEqual({ schema, info, isRight: validate(info) })
    }
  }
})
