/** Tests how a schema of an OpenAPI document is converted into a small schema without references. */
import { describe, expect, test } from 'bun:test'
import { readSchema } from '../../../../shared/till/bazaar/openApiSchema.ts'

type Json = Record<string, unknown>

const rootOf = (schemas: unknown) => ({ components: { schemas } })
const read = (schema: unknown, schemas: unknown = {}) => readSchema(rootOf(schemas), schema)
const reference = (name: string) => ({ $ref: `#/components/schemas/${name}` })

/** Wraps a JSON schema in the given number of nested arrays. */
function nested(schema: Json, levels: number): Json {
  let outer: Json = schema
  for (let n = 0; n < levels; n++) outer = { items: outer }
  return outer
}

describe('the service keeps each keyword of an OpenAPI schema that has a valid value', () => {
  test.each([
    { type: 'string' },
    { required: ['city'] },
    { enum: ['a', 1, null] },
    { const: 'a' },
    { minimum: 1 },
    { maximum: 1 },
    { exclusiveMinimum: 1 },
    { exclusiveMaximum: 1 },
    { minLength: 1 },
    { maxLength: 1 },
    { minItems: 1 },
    { maxItems: 1 },
  ])('the service keeps the keyword %p of an OpenAPI schema', (schema) => {
    expect(read({ ...schema, pattern: '.*', title: 'City', anyOf: [] })).toEqual(schema)
  })

  test('a keyword of an OpenAPI schema with a malformed value is dropped, and the other keywords are kept', () => {
    expect(read({ type: 'text', minLength: -1, maxLength: 5, exclusiveMinimum: true })).toEqual({
      maxLength: 5,
    })
    expect(read({ const: null, minimum: undefined })).toEqual({ const: null })
    expect(Object.keys(read({ minimum: undefined }))).toEqual([])
  })

  test('a list of values in an OpenAPI schema is kept if it has at most 100 values', () => {
    const names = Array.from({ length: 100 }, (_, n) => `n${n}`)
    expect(read({ enum: names, required: names })).toEqual({ enum: names, required: names })
    expect(read({ enum: [...names, 'n'], required: [...names, 'n'], minimum: 1 })).toEqual({
      minimum: 1,
    })
  })

  test('the type of an OpenAPI schema also allows null if the schema is nullable', () => {
    expect(read({ type: 'string', nullable: true })).toEqual({ type: ['string', 'null'] })
    for (const nullable of [false, 'true', 1, undefined])
      expect(read({ type: 'string', nullable })).toEqual({ type: 'string' })
    expect(read({ type: ['string', 'integer'], nullable: true })).toEqual({
      type: ['string', 'integer'],
    })
    expect(read({ nullable: true })).toEqual({})
  })
})

describe('the service keeps the nested schemas of an OpenAPI schema up to a maximum depth and number', () => {
  test('the nested schemas of an OpenAPI schema are kept for each property and for the items', () => {
    expect(
      read({
        properties: {
          city: { type: 'string', title: 'City' },
          days: { items: { type: 'integer' } },
        },
        items: true,
      }),
    ).toEqual({
      properties: { city: { type: 'string' }, days: { items: { type: 'integer' } } },
      items: {},
    })
  })

  test('the schema for items is dropped if an OpenAPI schema describes the first items separately (prefixItems)', () => {
    // With `prefixItems`, the schema `items` describes only the items after the described prefix (JSON Schema 2020-12
    // §10.3.1.2).
    const pair = { type: 'array', prefixItems: [{ type: 'string' }], items: { type: 'number' } }
    expect(read(pair)).toEqual({ type: 'array' })
  })

  test('an OpenAPI schema without properties and items has no nested schemas', () => {
    for (const properties of [{}, [], null, 'city', undefined])
      expect(Object.keys(read({ type: 'object', properties }))).toEqual(['type'])
  })

  test('the nested schemas of an OpenAPI schema are kept down to six levels', () => {
    expect(read(nested({ type: 'string' }, 6))).toEqual(nested({ type: 'string' }, 6))
    expect(read(nested({ type: 'string' }, 7))).toEqual(nested({}, 7))
    const wrap = (inner: Json): Json => ({ properties: { a: inner } })
    const five = (inner: Json) => wrap(wrap(wrap(wrap(wrap(inner)))))
    expect(read(five(wrap({ type: 'string' })))).toEqual(five(wrap({ type: 'string' })))
    expect(read(five(wrap(wrap({ type: 'string' }))))).toEqual(five(wrap(wrap({}))))
  })

  test('from one OpenAPI schema, at most 200 schemas are kept in total, nested schemas included', () => {
    const properties = Object.fromEntries(
      Array.from({ length: 300 }, (_, n) => [`p${n}`, { type: 'string' }]),
    )
    const whole = read({ properties }).properties as object
    expect(Object.keys(whole)).toHaveLength(199)
    expect(Object.values(whole).filter((one) => one.type === 'string')).toHaveLength(199)
    const { properties: outer, items } = read({
      properties: { a: { properties }, b: { type: 'string' } },
      items: { type: 'string' },
    }) as { properties: Record<string, { properties?: object }>; items: object }
    expect(Object.keys(outer.a!.properties!)).toHaveLength(198)
    expect([outer.b, items]).toEqual([{}, {}])
  })

  test('once 200 schemas have been read, a nested OpenAPI schema loses its properties', () => {
    const properties = Object.fromEntries(
      Array.from({ length: 198 }, (_, n) => [`p${n}`, { type: 'string' }]),
    )
    const last = { type: 'object', properties: { a: { type: 'string' } } }
    const { items } = read({ properties, items: last })
    expect(items).toEqual({ type: 'object', properties: {} })
  })
})

describe('the service replaces a reference in an OpenAPI schema by the schema that it names', () => {
  test('a reference in an OpenAPI schema is replaced by the schema that it names', () => {
    const schemas = { City: { type: 'string' }, Place: { properties: { city: reference('City') } } }
    expect(read(reference('City'), schemas)).toEqual({ type: 'string' })
    expect(read({ items: reference('Place') }, schemas)).toEqual({
      items: { properties: { city: { type: 'string' } } },
    })
  })

  test('if a reference in an OpenAPI schema names no schema of the document, a schema that allows anything replaces it', () => {
    const schemas = { City: { type: 'string' }, List: ['type'] }
    for (const $ref of [
      ...['#/components/schemas/Town', '#/components/schemas/', '#/components/schemas/City/type'],
      ...['https://other.example/#/components/schemas/City', '#/components/parameters/City'],
      ...['#/components/schemas/toString', '#/components/schemas/List', ''],
    ])
      expect([$ref, read({ $ref, type: 'integer' }, schemas)]).toEqual([$ref, {}])
    expect(readSchema({}, reference('City'))).toEqual({})
  })

  test('a reference in an OpenAPI schema is followed only if it leads to a schema in at most eight steps', () => {
    const chain = (length: number) =>
      Object.fromEntries(
        Array.from({ length }, (_, n) => [
          `s${n}`,
          n === length - 1 ? { type: 'string' } : reference(`s${n + 1}`),
        ]),
      )
    expect(read(reference('s0'), chain(8))).toEqual({ type: 'string' })
    expect(read(reference('s0'), chain(9))).toEqual({})
  })

  test('if an OpenAPI schema contains a reference to itself, the service does not follow this reference endlessly', () => {
    const schemas = { A: reference('B'), B: reference('A'), Tree: { items: reference('Tree') } }
    expect(read(reference('A'), schemas)).toEqual({})
    expect(read(reference('Tree'), schemas)).toEqual(nested({}, 7))
  })

  test('if the reference in an OpenAPI schema is no text, the other keywords of the schema are still read', () => {
    expect(read({ $ref: 7, type: 'string' })).toEqual({ type: 'string' })
  })
})

test('an OpenAPI schema that is no object is replaced by a schema that allows anything', () => {
  for (const schema of [undefined, null, true, 'string', [{ type: 'string' }]])
    expect(read(schema)).toEqual({})
})
