/** Tests how the service reads the metadata that a seller gives for an endpoint, and how it reports a fault. */
import { describe, expect, test } from 'bun:test'
import {
  examplesFault,
  readInput,
  readOutput,
} from '../../../../shared/till/bazaar/readMetadata.ts'

/**
 * Returns the fault that the service finds in the metadata of an endpoint, or null if it keeps the metadata unchanged.
 */
function faultOf(
  value: unknown,
  read: (value: unknown) => { value: unknown } | { fault: string },
): string | null {
  const result = read(value)
  if ('fault' in result) return result.fault
  expect(result.value).toEqual(value)
  return null
}
const http = (value: unknown) => faultOf(value, (one) => readInput(one, false))
const mcp = (value: unknown) => faultOf(value, (one) => readInput(one, true))
const output = (value: unknown) => faultOf(value, readOutput)

describe('the service accepts a seller’s description of an HTTP request only if each of its parts is valid', () => {
  test('the description of an HTTP request is an object with a known HTTP method', () => {
    for (const method of ['GET', 'HEAD', 'DELETE', 'POST', 'PUT', 'PATCH'])
      expect(http({ method })).toBeNull()
    for (const method of ['get', 'OPTIONS', undefined, 7])
      expect(http({ method })).toBe(
        'input.method must be one of GET, HEAD, DELETE, POST, PUT, PATCH',
      )
    for (const value of [null, 'GET', ['GET'], 7])
      expect(http(value)).toBe('input must be an object')
  })

  test('the examples in the description of an HTTP request must be objects', () => {
    for (const part of ['queryParams', 'pathParams', 'headers']) {
      expect(http({ method: 'GET', [part]: { a: 1 } })).toBeNull()
      for (const wrong of ['a', null, 7])
        expect(http({ method: 'GET', [part]: wrong })).toBe(`input.${part} must be an object`)
    }
  })

  test('the description of an HTTP request may have a body only if the HTTP method allows a body', () => {
    for (const method of ['POST', 'PUT', 'PATCH']) {
      expect(http({ method, body: {} })).toBeNull()
      expect(http({ method, bodyType: 'json' })).toBeNull()
    }
    for (const method of ['GET', 'HEAD', 'DELETE'])
      for (const more of [{ body: {} }, { bodyType: 'json' }])
        expect(http({ method, ...more })).toBe(
          'input.body must come with the method POST, PUT, PATCH',
        )
  })

  test('the body in the description of an HTTP request is a text for the body type text, and otherwise an object', () => {
    const method = 'POST'
    for (const more of [
      ...[{ bodyType: 'text', body: 'a' }, { bodyType: 'json', body: {} }, { bodyType: 'text' }],
      { bodyType: 'form-data', body: { a: 1 } },
    ])
      expect(http({ method, ...more })).toBeNull()
    for (const more of [
      { bodyType: 'text', body: {} },
      { bodyType: 'json', body: 'a' },
      { body: 'a' },
    ])
      expect(http({ method, ...more })).toBe(
        'input.body must be a text where bodyType is text, and else an object',
      )
    expect(http({ method, body: 7 })).toBe('input.body must be an object or a text')
    expect(http({ method, bodyType: 'xml' })).toBe(
      'input.bodyType must be one of json, form-data, text',
    )
  })

  test('the description of an HTTP request may have schemas only for its own parts (such as queryParams)', () => {
    const method = 'GET'
    const schema = { queryParams: {}, pathParams: true, headers: {}, body: {} }
    expect(http({ method, schema })).toBeNull()
    expect(http({ method, schema: {} })).toBeNull()
    expect(http({ method, schema: { cookies: {} } })).toBe('input.schema must not hold "cookies"')
    expect(http({ method, schema: 7 })).toBe('input.schema must be an object')
  })

  test('the description of an HTTP request may have a path template such as /weather/:city', () => {
    expect(http({ method: 'GET', routeTemplate: '/weather/:city' })).toBeNull()
    expect(http({ method: 'GET', routeTemplate: '/a/../b' })).toBe(
      'input.routeTemplate must begin with / and hold no .., no :// and no blanks, as in /weather/:city',
    )
  })

  test('the description of an HTTP request has no unknown member', () => {
    expect(http({ method: 'GET', query: {}, other: {} })).toBe('input must not hold "query"')
    expect(http({ inputSchema: {} })).not.toBeNull()
  })

  test('the description of an HTTP request has at most about 2,048 characters of JSON, nested at most 20 levels deep', () => {
    const longest = 'x'.repeat(2_048 - '{"method": "POST", "body": {"a": ""} }'.length - 20)
    expect(http({ method: 'POST', body: { a: longest } })).toBeNull()
    expect(http({ method: 'POST', body: { a: 'x'.repeat(2_048) } })).toBe(
      'input must be at most 2048 characters of JSON',
    )
    let deep: unknown = {}
    for (let n = 0; n < 20; n++) deep = { a: deep }
    expect(http({ method: 'POST', body: deep })).toBe('input must be nested at most 20 levels')
  })
})

describe('the service accepts a seller’s description of an MCP tool’s arguments only if each of its parts is valid', () => {
  const inputSchema = { type: 'object' }

  test('the description of an MCP tool’s arguments must have a schema', () => {
    expect(mcp({ inputSchema })).toBeNull()
    for (const wrong of [undefined, null, true, 'object'])
      expect(mcp({ inputSchema: wrong })).toBe('input.inputSchema must be an object')
    expect(mcp({ method: 'GET' })).toBe('input.inputSchema must be an object')
  })

  test('the description of an MCP tool may have at most 450 characters', () => {
    expect(mcp({ inputSchema, description: 'x'.repeat(450) })).toBeNull()
    expect(mcp({ inputSchema, description: 'x'.repeat(451) })).toBe(
      'input.description must be at most 450 characters',
    )
    expect(mcp({ inputSchema, description: 7 })).toBe('input.description must be a text')
  })

  test('the description of an MCP tool’s arguments may have a transport and an example', () => {
    for (const transport of ['streamable-http', 'sse'])
      expect(mcp({ inputSchema, transport, example: { city: 'Lima' } })).toBeNull()
    expect(mcp({ inputSchema, transport: 'stdio' })).toBe(
      'input.transport must be one of streamable-http, sse',
    )
    expect(mcp({ inputSchema, example: 'Lima' })).toBe('input.example must be an object')
  })

  test('the description of an MCP tool’s arguments has no unknown member', () => {
    expect(mcp({ inputSchema, method: 'GET' })).toBe('input must not hold "method"')
  })
})

describe('the service accepts a seller’s description of the response only if each of its parts is valid', () => {
  test('the description of a response may have a type of at most 64 characters, an example and a schema', () => {
    for (const value of [{}, { example: null }, { type: 'x'.repeat(64), example: 7, schema: true }])
      expect(output(value)).toBeNull()
    expect(output({ type: 'x'.repeat(65) })).toBe('output.type must be at most 64 characters')
    expect(output({ type: 7 })).toBe('output.type must be a text')
    expect(output({ status: 200 })).toBe('output must not hold "status"')
    expect(output('json')).toBe('output must be an object')
    expect(output({ example: 'x'.repeat(2_048) })).toBe(
      'output must be at most 2048 characters of JSON',
    )
  })
})

test('a fault in a schema or an example of an endpoint’s metadata is reported in one sentence', () => {
  const schema = { type: 'string' }
  expect(examplesFault({ output: { schema, example: 'rain' } })).toBeNull()
  expect(examplesFault({ output: { schema, example: 7 } })).toBe(
    'output.example must be of the type string',
  )
})
