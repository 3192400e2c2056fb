/** Tests which keywords the JSON schema of a seller may use, and how values are checked against the schema. */
import { describe, expect, test } from 'bun:test'
import { schemaFault, valueFault } from '../../../../shared/till/bazaar/jsonSchema.ts'

test.each([
  [{ type: 'text' }, 'type'],
  [{ type: [] }, 'type'],
  [{ type: ['string', 'string'] }, 'type'],
  [{ properties: [] }, 'properties'],
  [{ properties: { a: { required: 'a' } } }, 'properties.a.required'],
  [{ required: ['a', 'a'] }, 'required'],
  [{ minimum: '1' }, 'minimum'],
  [{ maxLength: -1 }, 'maxLength'],
  [{ items: { $ref: '#/a' } }, 'items.$ref'],
  [{ additionalProperties: { pattern: 'a' } }, 'additionalProperties.pattern'],
  [{ enum: 1 }, 'enum'],
  [{ enum: [{}] }, 'enum'],
  [{ const: [] }, 'const'],
  [7, ''],
])('the error about the JSON schema %j names the path %p', (schema, path) => {
  expect(schemaFault(schema)?.path).toBe(path)
})

test.each([
  true,
  false,
  {},
  {
    title: 1,
    description: [],
    default: {},
    examples: null,
    format: 'x',
    $comment: 'a',
    $schema: 2,
  },
  { type: 'null' },
  { type: ['string', 'null'] },
  { const: null },
  { const: 'a' },
  { enum: [] },
  { enum: ['a', 1, true, null] },
  { required: [] },
  { properties: { a: { type: 'string' }, b: true } },
  { minimum: 0, maximum: -1.5, exclusiveMinimum: 1, exclusiveMaximum: 2 },
  { minLength: 0, maxLength: 3, minItems: 0, maxItems: 1 },
  { items: false, additionalProperties: { type: 'string' } },
])('a seller may use the JSON schema %j', (schema) => expect(schemaFault(schema)).toBeNull())

test.each<[unknown, string, string]>([
  [null, '', 'be a JSON Schema: an object or a boolean'],
  [[], '', 'be a JSON Schema: an object or a boolean'],
  [
    { type: ['string', 'text'] },
    'type',
    'be one or several of string, number, integer, boolean, object, array, null',
  ],
  [{ const: {} }, 'const', 'be a text, a number, a boolean or null'],
  [{ properties: 'a' }, 'properties', 'be an object of schemas'],
  [{ properties: { a: 1 } }, 'properties.a', 'be a JSON Schema: an object or a boolean'],
  [{ required: ['a', 1] }, 'required', 'be a list of different names'],
  [{ enum: ['a', []] }, 'enum', 'be a list of texts, numbers, booleans and null'],
  [{ maximum: null }, 'maximum', 'be a number'],
  [{ exclusiveMinimum: '1' }, 'exclusiveMinimum', 'be a number'],
  [{ minItems: 1.5 }, 'minItems', 'be a whole number'],
  [{ maxItems: '1' }, 'maxItems', 'be a whole number'],
  [{ $ref: '#/a' }, '$ref', 'not stand here: write the schema itself'],
  [{ anyOf: [] }, 'anyOf', 'not stand here: this keyword is not known'],
  [{ constructor: 1 }, 'constructor', 'not stand here: this keyword is not known'],
])('the fault of the JSON schema %j is at the path %p: it must %s', (schema, path, must) => {
  expect(schemaFault(schema)).toEqual({ path, must })
})

describe('the service accepts a value that follows a JSON schema', () => {
  test.each<[unknown, unknown]>([
    [true, 'a'],
    [{}, null],
    ['no schema', 1],
    [{ type: 'string' }, ''],
    [{ type: 'number' }, 1.5],
    [{ type: 'integer' }, 1],
    [{ type: 'boolean' }, false],
    [{ type: 'null' }, null],
    [{ type: 'array' }, []],
    [{ type: 'object' }, {}],
    [{ type: ['string', 'null'] }, null],
    [{ const: 1 }, 1],
    [{ const: null }, null],
    [{ const: {} }, 'anything, because objects are not compared'],
    [{ enum: ['a', null] }, null],
    [{ enum: [{}] }, 'anything, because objects are not compared'],
    [{ enum: 'a' }, 'b'],
    [{ minimum: 1, maximum: 2 }, 1],
    [{ minimum: 1, maximum: 2 }, 2],
    [{ minimum: '5' }, 1],
    [{ exclusiveMinimum: 1, exclusiveMaximum: 2 }, 1.5],
    [{ minLength: 2, maxLength: 2 }, '🚢🚢'],
    [{ minItems: 1, maxItems: 1 }, ['a']],
    [{ minLength: 5, minItems: 5, minimum: 5 }, null],
    [{ items: { type: 'string' } }, ['a', 'b']],
    [{ required: ['a'] }, { a: undefined }],
    [{ required: 'a' }, {}],
    [{ properties: { a: { type: 'string' } } }, { a: 'x', b: 1 }],
    [{ properties: [], additionalProperties: true }, { a: 1 }],
    [{ prefixItems: [{ type: 'string' }], items: { type: 'number' } }, ['a', 1]],
    [{ prefixItems: [{ type: 'string' }], items: false }, ['a']],
    [{ patternProperties: { '^x-': {} }, additionalProperties: false }, { 'x-a': 1 }],
  ])('the JSON schema %j accepts the value %j', (schema, value) =>
    expect(valueFault(schema, value)).toBeNull(),
  )
})

describe('the service refuses a value that breaks a JSON schema', () => {
  test.each<[unknown, unknown, string, string]>([
    [false, 1, '', 'not stand here'],
    [{ type: 'string' }, 1, '', 'be of the type string'],
    [{ type: 'number' }, '1', '', 'be of the type number'],
    [{ type: 'integer' }, 1.5, '', 'be of the type integer'],
    [{ type: 'boolean' }, 0, '', 'be of the type boolean'],
    [{ type: 'null' }, 0, '', 'be of the type null'],
    [{ type: 'array' }, {}, '', 'be of the type array'],
    [{ type: 'object' }, [], '', 'be of the type object'],
    [{ type: 'object' }, null, '', 'be of the type object'],
    [{ type: ['string', 'null'] }, 1, '', 'be of the type string or null'],
    [{ const: 'a' }, 'b', '', 'be "a"'],
    [{ const: null }, 0, '', 'be null'],
    [{ enum: ['a', 1] }, '1', '', 'be one of enum'],
    [{ enum: [] }, 1, '', 'be one of enum'],
    [{ minimum: 1 }, 0.9, '', 'be at least 1'],
    [{ maximum: 1 }, 1.1, '', 'be at most 1'],
    [{ exclusiveMinimum: 1 }, 1, '', 'be above 1'],
    [{ exclusiveMaximum: 1 }, 1, '', 'be below 1'],
    [{ minLength: 2 }, '🚢', '', 'have minLength 2'],
    [{ maxLength: 1 }, 'ab', '', 'have maxLength 1'],
    [{ minItems: 1 }, [], '', 'have minItems 1'],
    [{ maxItems: 1 }, [1, 2], '', 'have maxItems 1'],
    [{ items: { type: 'string' } }, ['a', 1], '1', 'be of the type string'],
    [{ prefixItems: [true], items: { type: 'string' } }, [1, 2], '1', 'be of the type string'],
    [{ prefixItems: 1, items: { type: 'string' } }, [1], '0', 'be of the type string'],
    [{ required: ['a', 'b'] }, { a: 1 }, 'b', 'be there'],
    [{ required: ['toString'] }, {}, 'toString', 'be there'],
    [{ properties: { a: { items: { minimum: 1 } } } }, { a: [1, 0] }, 'a.1', 'be at least 1'],
    [{ additionalProperties: false }, { a: 1 }, 'a', 'not stand here'],
    [
      { properties: { a: true }, additionalProperties: { type: 'string' } },
      { a: 1, constructor: 1 },
      'constructor',
      'be of the type string',
    ],
  ])(
    'the JSON schema %j refuses %j at the path %p: the value must %s',
    (schema, value, path, must) => {
      expect(valueFault(schema, value)).toEqual({ path, must })
    },
  )
})
