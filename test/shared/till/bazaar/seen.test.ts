/** Tests which metadata the service reads from the 402 response of a seller’s own server. */
import { describe, expect, test } from 'bun:test'
import { readBazaar, readSeen } from '../../../../shared/till/bazaar/seen.ts'

const INFO = { input: { type: 'http', method: 'GET' } }
const SCHEMA = { type: 'object', properties: { input: { type: 'object' } } }
const BAZAAR = { info: INFO, schema: SCHEMA }

const withInput = (input: unknown) => readBazaar({ ...BAZAAR, info: { input } })
const withSchema = (schema: unknown) => readBazaar({ ...BAZAAR, schema })
const header = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64')
const seen = (challenge: unknown) => readSeen(header(challenge))
const seenOf = (resource: unknown) => seen({ resource })

describe('the service reads the extension `bazaar` of a seller, and ignores an invalid extension', () => {
  test('the extension bazaar in a seller’s 402 response is read with its info and its schema', () => {
    expect(readBazaar({ ...BAZAAR, unknown: 1 })).toEqual(BAZAAR)
  })

  test('the extension bazaar of a seller must describe an HTTP call, or an MCP tool with a name', () => {
    expect(withInput({ type: 'http' })).not.toBeNull()
    expect(withInput({ type: 'http', toolName: 7 })).not.toBeNull()
    expect(withInput({ type: 'mcp', toolName: 'weather' })).not.toBeNull()
    for (const input of [
      ...[undefined, null, 'http', [], {}, { type: 'HTTP' }, { type: 'mcp' }],
      ...[
        { type: 'mcp', toolName: 7 },
        { type: 'soap', toolName: 'weather' },
      ],
    ])
      expect([input, withInput(input)]).toEqual([input, null])
    for (const value of [undefined, null, 'text', [], [BAZAAR], { schema: SCHEMA }])
      expect(readBazaar(value)).toBeNull()
  })

  test('the extension bazaar of a seller must have a schema with at least one keyword', () => {
    expect(withSchema({ type: 'object' })).not.toBeNull()
    for (const schema of [undefined, null, {}, true, 'object', [SCHEMA]])
      expect([schema, withSchema(schema)]).toEqual([schema, null])
  })

  test('the info in a seller’s extension bazaar must be valid under the extension’s own schema', () => {
    expect(withSchema({ required: ['input'] })).not.toBeNull()
    expect(withSchema({ required: ['output'] })).toBeNull()
    expect(withSchema({ properties: { input: { type: 'string' } } })).toBeNull()
  })

  test('a seller’s extension bazaar is ignored if it contains text that PostgreSQL cannot store', () => {
    for (const text of ['\0', '\ud800', 'a\udc00']) {
      expect(withInput({ type: 'http', [text]: 1 })).toBeNull()
      expect(withInput({ type: 'http', list: [{ city: text }] })).toBeNull()
      expect(withSchema({ description: text })).toBeNull()
    }
    expect(withInput({ type: 'http', city: '\ud83c\udf0a \\u0000' })).not.toBeNull()
  })

  test('references in a seller’s extension bazaar, at any depth, must point into the schema of the extension', () => {
    for (const keyword of ['$ref', '$id', '$dynamicRef']) {
      for (const inside of ['#', '#/$defs/city'])
        expect(withSchema({ [keyword]: inside })).not.toBeNull()
      for (const outside of ['https://other.example/schema', '', 'city', 7, null, {}, ['#']]) {
        expect([outside, withSchema({ [keyword]: outside })]).toEqual([outside, null])
        const deep = { anyOf: [true, null, { items: { [keyword]: outside } }] }
        expect([outside, withSchema(deep)]).toEqual([outside, null])
      }
    }
    expect(withSchema({ $schema: 'https://json-schema.org/draft/2020-12/schema' })).not.toBeNull()
  })

  test('a seller’s extension bazaar is refused if it is nested too deeply to be checked', () => {
    let deep: unknown = {}
    for (let n = 0; n < 200_000; n++) deep = { a: deep }
    expect(withSchema({ items: deep })).toBeNull()
  })

  test('a path template in a seller’s extension bazaar is kept only if it is well-formed', () => {
    const templateOf = (routeTemplate: unknown) => readBazaar({ ...BAZAAR, routeTemplate })
    expect(templateOf('/weather/:city')).toEqual({ ...BAZAAR, routeTemplate: '/weather/:city' })
    for (const wrong of ['weather', '/a/../b', 7, null, ['/weather/:city']]) {
      expect(templateOf(wrong)).toEqual(BAZAAR)
      expect(templateOf(wrong)).not.toHaveProperty('routeTemplate')
    }
  })
})

describe('the service reads the metadata in a header `PAYMENT-REQUIRED`, and ignores invalid parts of them', () => {
  test('the metadata from a seller’s PAYMENT-REQUIRED header are empty if the header is absent or no JSON object in base64', () => {
    expect(readSeen(undefined)).toEqual({})
    for (const value of ['', 'no base64', Buffer.from('{').toString('base64')])
      expect(readSeen(value)).toEqual({})
    for (const value of [null, 7, [], [{ resource: { serviceName: 'Weather' } }]])
      expect(Object.keys(seen(value))).toEqual([])
  })

  test('the metadata from a seller’s PAYMENT-REQUIRED header contain the service’s name, tags and icon, and the extension bazaar', () => {
    const resource = {
      serviceName: 'Weather',
      tags: ['rain', 'sun'],
      iconUrl: 'https://seller.example/icon.png',
    }
    expect(seen({ resource, extensions: { bazaar: BAZAAR } })).toEqual({
      ...{ ...resource, bazaar: BAZAAR },
    })
    expect(Object.keys(seen({ extensions: { bazaar: BAZAAR } }))).toEqual(['bazaar'])
    expect(Object.keys(seen({ extensions: { bazaar: { info: INFO } } }))).toEqual([])
  })

  test('a service name in a PAYMENT-REQUIRED header is ignored unless it has 1 to 32 printable ASCII characters', () => {
    expect(seenOf({ serviceName: 'Weather' })).toEqual({ serviceName: 'Weather' })
    for (const serviceName of ['', 'x'.repeat(33), 'Wétter', 7])
      expect(Object.keys(seenOf({ serviceName }))).toEqual([])
  })

  test('tags in a PAYMENT-REQUIRED header are ignored if they are invalid or repeated', () => {
    expect(seenOf({ tags: ['rain', 7, '', 'RAIN', 'sun'] })).toEqual({ tags: ['rain', 'sun'] })
    for (const tags of ['rain', [], [''], { 0: 'rain' }, null])
      expect(Object.keys(seenOf({ tags }))).toEqual([])
  })

  test('an icon URL in a PAYMENT-REQUIRED header is ignored if it has a fault', () => {
    const iconUrl = 'https://seller.example/icon.png'
    expect(seenOf({ iconUrl })).toEqual({ iconUrl })
    for (const wrong of ['https://127.0.0.1/', '/icon.png', 7, [iconUrl]])
      expect(Object.keys(seenOf({ iconUrl: wrong }))).toEqual([])
  })
})
