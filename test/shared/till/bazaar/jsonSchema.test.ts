/** What a schema of a seller may hold. */
import { expect, test } from 'bun:test'
import { schemaFault } from '../../../../shared/till/bazaar/jsonSchema.ts'

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
])('%j has its fault at %p', (schema, path) => {
  expect(schemaFault(schema)?.path).toBe(path)
})
