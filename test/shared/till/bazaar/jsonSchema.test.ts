/** Tests which keywords the JSON schema of a seller may use. */
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
])('the fault in the JSON schema %j is reported at the path %p', (schema, path) => {
  expect(schemaFault(schema)?.path).toBe(path)
})
