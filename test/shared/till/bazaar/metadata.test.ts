/** Tests how the metadata of a paid endpoint are written for x402 clients and catalogues. */
import { describe, expect, test } from 'bun:test'
import {
  bazaarOf,
  type HttpInput,
  type McpInput,
  metadataFault,
  type Output,
  outputSchemaV1,
  serviceWords,
} from '../../../../shared/till/bazaar/metadata.ts'

const URL_PAID = 'https://seller.example/weather'
const GET: HttpInput = { method: 'GET' }
const PARTS = ['queryParams', 'pathParams', 'headers', 'body'] as const
const INPUT_SCHEMA = { type: 'object', properties: { city: { type: 'string' } } }
const MCP: McpInput = { inputSchema: INPUT_SCHEMA }

/** Returns those parts of the extension `bazaar` that describe the call. */
function inputOf(input: HttpInput | McpInput, url = URL_PAID) {
  const { info, schema } = bazaarOf({ input }, url)!
  const { properties } = schema as { properties: { input: Record<string, unknown> } }
  return {
    info: info.input as Record<string, unknown>,
    schema: properties.input as { properties: Record<string, unknown>; required: string[] },
  }
}

describe('the service writes the seller’s name, tags and icon into an x402 challenge', () => {
  test('an x402 challenge contains the name, the tags and the icon of a seller’s service, if the seller gives them', () => {
    const words = {
      serviceName: 'Weather',
      tags: ['rain'],
      iconUrl: 'https://seller.example/icon.png',
    }
    expect(serviceWords({ ...words, input: GET, mcpUrl: 'https://mcp.example/' })).toEqual(words)
    for (const [name, value] of Object.entries(words))
      expect(Object.entries(serviceWords({ [name]: value }))).toEqual([[name, value]] as never)
    expect(Object.keys(serviceWords({ input: GET }))).toEqual([])
  })
})

describe('the service writes the x402 extension `bazaar` (how to call a resource)', () => {
  test('the x402 extension bazaar is written only if the metadata say how to call the resource', () => {
    expect(bazaarOf({ serviceName: 'Weather', output: {} }, URL_PAID)).toBeNull()
    expect(bazaarOf({ input: GET }, URL_PAID)).not.toBeNull()
  })

  test('the x402 extension bazaar has a JSON Schema of draft 2020-12, which requires the member `input`', () => {
    const { schema } = bazaarOf({ input: GET }, URL_PAID)!
    expect(schema).toMatchObject({
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      required: ['input'],
    })
    expect(Object.keys(schema.properties as object)).toEqual(['input'])
  })

  test('the x402 extension bazaar contains the path template of the URL if the seller gives one', () => {
    const withTemplate = bazaarOf({ input: { ...GET, routeTemplate: '/weather/:city' } }, URL_PAID)
    expect(withTemplate?.routeTemplate).toBe('/weather/:city')
    for (const input of [GET, { ...GET, routeTemplate: undefined }, MCP])
      expect(bazaarOf({ input }, URL_PAID)).not.toHaveProperty('routeTemplate')
  })
})

describe('the extension bazaar describes which HTTP method, query and body a paid URL expects', () => {
  test('for an HTTP method without a body, the description of the request has only the method and no body type', () => {
    for (const method of ['GET', 'HEAD', 'DELETE'] as const) {
      const { info, schema } = inputOf({ method })
      expect(info).toEqual({ type: 'http', method })
      expect(schema).toEqual({
        type: 'object',
        properties: {
          type: { type: 'string', const: 'http' },
          method: { type: 'string', enum: [method] },
        },
        required: ['type', 'method'],
        additionalProperties: false,
      } as never)
    }
  })

  test('for an HTTP method with a body, the description of the request has a body type, by default `json`', () => {
    for (const method of ['POST', 'PUT', 'PATCH'] as const) {
      const { info, schema } = inputOf({ method })
      expect(info).toEqual({ type: 'http', method, bodyType: 'json' })
      expect(schema.properties.bodyType).toEqual({ type: 'string', enum: ['json'] })
      expect(schema.required).toEqual(['type', 'method', 'bodyType'])
    }
    const text = inputOf({ method: 'POST', bodyType: 'text', body: 'Lima' })
    expect(text.info.bodyType).toBe('text')
    expect(text.schema.properties.bodyType).toEqual({ type: 'string', enum: ['text'] })
    expect(text.schema.properties.body).toEqual({ type: 'string' })
  })

  test.each(PARTS)(
    'the described input of a URL contains the example of %s with its schema, or else the schema of any object',
    (part) => {
      const input: HttpInput = { method: 'POST' }
      const example = inputOf({ ...input, [part]: { city: 'Lima' } })
      expect(example.info[part]).toEqual({ city: 'Lima' })
      expect(example.schema.properties[part]).toEqual({ type: 'object' })
      const form = { type: 'object', required: ['city'] }
      const described = inputOf({ ...input, schema: { [part]: form } })
      expect(described.info).not.toHaveProperty(part)
      expect(described.schema.properties[part]).toEqual(form)
      const both = inputOf({ ...input, [part]: { city: 'Lima' }, schema: { [part]: form } })
      expect(both.schema.properties[part]).toEqual(form)
      const names = Object.keys(both.schema.properties)
      expect(names).toEqual(['type', 'method', 'bodyType', part])
    },
  )
})

describe('the extension bazaar describes which arguments an MCP tool expects', () => {
  test('the description of an MCP tool’s arguments has the tool’s name from the URL, and the tool’s schema', () => {
    const { info, schema } = inputOf(MCP, 'mcp://tool/weather.today')
    expect(info).toEqual({ type: 'mcp', toolName: 'weather.today', inputSchema: INPUT_SCHEMA })
    expect(schema).toEqual({
      type: 'object',
      properties: {
        type: { type: 'string', const: 'mcp' },
        toolName: { type: 'string' },
        inputSchema: { type: 'object' },
      },
      required: ['type', 'toolName', 'inputSchema'],
      additionalProperties: false,
    } as never)
  })

  test.each([
    ['description', 'Tells the weather', { type: 'string' }],
    ['transport', 'sse', { type: 'string', enum: ['sse'] }],
    ['example', { city: 'Lima' }, INPUT_SCHEMA],
  ])(
    'the described input of an MCP tool has the field %s if the seller gives it',
    (name, value, form) => {
      const { info, schema } = inputOf({ ...MCP, [name]: value }, 'mcp://tool/weather')
      expect(info[name]).toEqual(value as never)
      expect(schema.properties[name]).toEqual(form)
      expect(Object.keys(info)).toHaveLength(4)
      expect(Object.keys(schema.properties)).toHaveLength(4)
    },
  )
})

describe('the extension bazaar describes the response of a paid resource', () => {
  const outputOf = (output: Output) => {
    const { info, schema } = bazaarOf({ input: GET, output }, URL_PAID)!
    return { info: info.output, schema: (schema.properties as Record<string, unknown>).output }
  }

  test('without the seller’s description, the response of a paid resource is described as JSON without an example', () => {
    expect(outputOf({})).toEqual({
      info: { type: 'json' },
      schema: {
        type: 'object',
        properties: { type: { type: 'string' }, example: {} },
        required: ['type'],
      },
    })
    expect(outputOf({}).info).not.toHaveProperty('example')
  })

  test('the description of a paid resource’s response has the type, example and schema that the seller gives', () => {
    const { info, schema } = outputOf({ type: 'text', example: 'rain', schema: { type: 'string' } })
    expect(info).toEqual({ type: 'text', example: 'rain' })
    expect(schema).toMatchObject({ properties: { example: { type: 'string' } } })
    expect(outputOf({ example: null }).info).toEqual({ type: 'json', example: null })
  })

  test('the output of a resource is not described if the seller does not describe it', () => {
    expect(bazaarOf({ input: GET }, URL_PAID)?.info).toEqual({
      input: { type: 'http', method: 'GET' },
    })
    expect(bazaarOf({ input: GET }, URL_PAID)?.info).not.toHaveProperty('output')
  })
})

describe('the service names the first fault in an endpoint’s metadata', () => {
  test.each(PARTS)(
    'an endpoint’s metadata have a fault if the schema of %s is wrong, or if the example does not match the schema',
    (part) => {
      const fault = (schema: unknown, example?: unknown) =>
        metadataFault({ input: { ...GET, schema: { [part]: schema }, [part]: example as never } })
      expect(fault({ type: 'text' })?.path).toBe(`input.schema.${part}.type`)
      expect(fault({ type: 'object' }, 'text')?.path).toBe(`input.${part}`)
      expect(fault({ required: ['a'] })).toBeNull()
      expect(fault({ type: 'object' }, {})).toBeNull()
      expect(fault(undefined, {})).toBeNull()
    },
  )

  test('the metadata of an MCP tool have a fault if the tool’s schema is wrong, or if the example does not match the schema', () => {
    const path = (inputSchema: McpInput['inputSchema'], example?: Record<string, unknown>) =>
      metadataFault({ input: { inputSchema, example } })?.path
    expect(path({ type: 'text' })).toBe('input.inputSchema.type')
    expect(path(INPUT_SCHEMA, { city: 7 })).toBe('input.example.city')
    expect(path(INPUT_SCHEMA, { city: 'Lima' })).toBeUndefined()
    expect(path({ required: ['city'] })).toBeUndefined()
  })

  test('an endpoint’s metadata have a fault if the response’s schema is wrong, or if the example does not match the schema', () => {
    const path = (output: Output) => metadataFault({ input: GET, output })?.path
    expect(path({ schema: 7 })).toBe('output.schema')
    expect(path({ schema: { type: 'string' }, example: null })).toBe('output.example')
    expect(path({ schema: { type: 'string' }, example: 'rain' })).toBeUndefined()
    expect(path({ schema: { type: 'string' } })).toBeUndefined()
    expect(path({ example: 7 })).toBeUndefined()
  })

  test('if an endpoint’s metadata have several faults, only the first is reported, and absent metadata are no fault', () => {
    const wrong = { type: 'text' }
    const input = { ...GET, schema: { body: wrong, queryParams: wrong } }
    expect(metadataFault({ input, output: { schema: wrong } })).toEqual({
      path: 'input.schema.queryParams.type',
      must: expect.any(String),
    })
    expect(metadataFault({})).toBeNull()
    expect(metadataFault({ input: GET })).toBeNull()
  })
})

describe('the service writes `outputSchema` for x402 version 1 if an endpoint has a URL', () => {
  test('`outputSchema` of x402 version 1 is written only for a URL, not for an MCP tool', () => {
    expect(outputSchemaV1({ output: { example: 1 } }, true)).toBeNull()
    expect(outputSchemaV1({ input: MCP }, true)).toBeNull()
  })

  test('`outputSchema` of x402 version 1 states the HTTP method, and whether public lists may include the resource', () => {
    for (const discoverable of [true, false])
      expect(outputSchemaV1({ input: GET }, discoverable)).toEqual({
        input: { type: 'http', method: 'GET', discoverable },
      })
    expect(outputSchemaV1({ input: GET }, true)).not.toHaveProperty('output')
  })

  test.each([
    ['queryParams', 'queryParams'],
    ['pathParams', 'pathParams'],
    ['headers', 'headerFields'],
  ])('`outputSchema` of x402 version 1 contains the example of %s as %s', (part, name) => {
    const { input } = outputSchemaV1({ input: { ...GET, [part]: { city: 'Lima' } } }, true)!
    expect(input).toEqual({
      type: 'http',
      method: 'GET',
      discoverable: true,
      [name]: { city: 'Lima' },
    } as never)
    expect(Object.keys(input as object)).toHaveLength(4)
  })

  test('`outputSchema` of x402 version 1 contains a body only for an HTTP method with a body', () => {
    const inputFor = (input: HttpInput) => outputSchemaV1({ input }, true)?.input
    expect(inputFor({ method: 'POST' })).toMatchObject({ bodyType: 'json', bodyFields: {} })
    expect(inputFor({ method: 'PUT', bodyType: 'text', body: 'Lima' })).toMatchObject({
      ...{ bodyType: 'text', bodyFields: 'Lima' },
    })
    for (const method of ['GET', 'HEAD', 'DELETE'] as const)
      expect(inputFor({ method, body: { a: 1 } })).not.toHaveProperty('bodyType')
  })

  test('`outputSchema` of x402 version 1 contains the example of the response', () => {
    const shown = (output: Output) => outputSchemaV1({ input: GET, output }, true)
    expect(shown({ example: { rain: true } })?.output).toEqual({ rain: true })
    expect(shown({ example: null })).toHaveProperty('output', null)
    expect(shown({ type: 'json' })).not.toHaveProperty('output')
  })
})
