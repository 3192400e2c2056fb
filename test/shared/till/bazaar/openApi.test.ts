/** Tests how the service reads the metadata of one URL from the OpenAPI document of a seller. */
import { describe, expect, test } from 'bun:test'
import type { HttpInput, Metadata } from '../../../../shared/till/bazaar/metadata.ts'
import { readOpenApi, smallerForms } from '../../../../shared/till/bazaar/openApi.ts'

type Json = Record<string, unknown>

const URL_PAID = 'https://seller.example/weather'
const TEXT = { type: 'string' }
/** Holds a text whose JSON form has 2,048 characters. */
const LONGEST = 'x'.repeat(2_046)

const documentOf = (paths: unknown, more: Json = {}) =>
  JSON.stringify({ openapi: '3.1.0', paths, ...more })

/** Reads the metadata of a URL, and fails if the document has no path for the URL. */
function metadataOf(paths: unknown, more: Json = {}, url = URL_PAID): Metadata {
  const read = readOpenApi(documentOf(paths, more), url)
  if ('fault' in read) throw new Error(read.fault)
  return read.metadata
}
const inputOf = (...given: Parameters<typeof metadataOf>) => metadataOf(...given).input as HttpInput
const faultOf = (text: string, url = URL_PAID) => {
  const read = readOpenApi(text, url)
  return 'fault' in read ? read.fault : null
}

/** Reads from the OpenAPI document how to call an operation that has the given parameters. */
const withParameters = (parameters: unknown, more: Json = {}) =>
  inputOf({ '/weather': { get: { parameters } } }, more)
/** Reads from the OpenAPI document how to call an operation that has one query parameter. */
const withQuery = (parameter: Json, more: Json = {}) =>
  withParameters([{ in: 'query', name: 'city', ...parameter }], more)
/** Reads from the OpenAPI document how to call an operation whose request body has the given content. */
const withContent = (content: unknown, more: Json = {}) =>
  inputOf({ '/weather': { post: { requestBody: { content } } } }, more)
/** Reads from the OpenAPI document the described response of an operation that has the given responses. */
const withResponses = (responses: unknown, more: Json = {}) =>
  metadataOf({ '/weather': { get: { responses } } }, more).output
const ofType = (type: string, media: unknown) => ({ content: { [type]: media } })
const ofJson = (media: unknown) => ofType('application/json', media)

describe('the service reads from an OpenAPI document how to call the URL of an endpoint, and refuses an unusable document', () => {
  test('a seller’s OpenAPI document must be JSON of OpenAPI version 3', () => {
    expect(faultOf('openapi: 3.1.0')).toBe('the document is not JSON')
    for (const openapi of ['2.0', '30.1', 3, undefined])
      expect(faultOf(JSON.stringify({ openapi, paths: { '/weather': { get: {} } } }))).toBe(
        'the document is not OpenAPI 3',
      )
    for (const text of ['null', '[]', '"3."']) expect(faultOf(text)).not.toBeNull()
    expect(faultOf(documentOf({ '/weather': { get: {} } }, { openapi: '3.0.3' }))).toBeNull()
  })

  test('a seller’s OpenAPI document must contain a path that matches the endpoint’s URL', () => {
    const fault = 'the document has no path for this URL'
    for (const paths of [undefined, null, [], {}, { '/rain': { get: {} } }, { weather: {} }])
      expect(faultOf(documentOf(paths))).toBe(fault)
    expect(faultOf(documentOf({ '/weather': { get: {} } }), `${URL_PAID}/`)).toBe(fault)
    expect(faultOf(documentOf({ '/weather': { get: {} } }), `${URL_PAID}?a=/b`)).toBeNull()
  })

  test('an OpenAPI document must have an HTTP method for the URL that a buyer can call, and GET is preferred', () => {
    const fault = 'the path has no method that can be called'
    for (const item of [null, {}, { options: {} }, { parameters: [] }])
      expect(faultOf(documentOf({ '/weather': item }))).toBe(fault)
    expect(inputOf({ '/weather': { post: {}, get: {} } })).toEqual({ method: 'GET' })
    for (const method of ['HEAD', 'DELETE'] as const)
      expect(inputOf({ '/weather': { [method.toLowerCase()]: {} } })).toEqual({ method })
    for (const method of ['POST', 'PUT', 'PATCH'] as const)
      expect(inputOf({ '/weather': { [method.toLowerCase()]: {} } })).toEqual({
        ...{ method, bodyType: 'json' },
      })
  })

  test('the title of an OpenAPI document becomes the name of the seller’s service, and the tags of the operation become the tags of the service', () => {
    const tags = ['rain', 'x'.repeat(33), 'RAIN', 'sun']
    const paths = { '/weather': { get: { tags } } }
    expect(metadataOf(paths, { info: { title: 'Weather' } })).toMatchObject({
      ...{ serviceName: 'Weather', tags: ['rain', 'sun'] },
    })
    const bare = metadataOf({ '/weather': { get: { tags: 'rain' } } }, { info: { title: '' } })
    expect(Object.keys(bare)).toEqual(['input'])
  })
})

describe('the service finds the path entry in an OpenAPI document that matches the URL of an endpoint', () => {
  const at = (path: string, paths: Json, more: Json = {}) =>
    inputOf(paths, more, `https://seller.example${path}`)

  test('the path of a URL may begin with the base path of one of the first five servers in an OpenAPI document', () => {
    const paths = { '/weather': { get: {} } }
    const servers = ['https://api.example/v1/', '/v2', 'v3'].map((url) => ({ url }))
    for (const path of ['/v1/weather', '/v2/weather', '/v3/weather', '/weather'])
      expect(at(path, paths, { servers })).toEqual({ method: 'GET' })
    const many = ['/1', '/2', '/3', '/4', '/5', '/6'].map((url) => ({ url }))
    expect(at('/5/weather', paths, { servers: many })).toEqual({ method: 'GET' })
    expect(() => at('/6/weather', paths, { servers: many })).toThrow('has no path')
  })

  test('a variable in a server URL of an OpenAPI document gets its default value', () => {
    const paths = { '/weather': { get: {} } }
    const variables = { version: { default: 'v2', enum: ['v1', 'v2'] }, odd: { default: 7 } }
    const servers = [
      { url: 'https://{host}.example/{version}', variables },
      { url: '/{odd}/{none}' },
    ]
    expect(at('/v2/weather', paths, { servers })).toEqual({ method: 'GET' })
    expect(() => at('/v3/weather', paths, { servers })).toThrow('has no path')
    const long = { url: '/{a}'.repeat(5_000), variables: { a: { default: 'x'.repeat(100_000) } } }
    expect(at('/weather', paths, { servers: [long] })).toEqual({ method: 'GET' })
    const ofLength = (chars: number) => `/${'a'.repeat(chars - 1)}`
    const inServer = (url: string) => ({ url })
    const inVariable = (path: string) => ({ url: '{path}', variables: { path: { default: path } } })
    for (const form of [inServer, inVariable]) {
      const [most, over] = [ofLength(2_048), ofLength(2_049)]
      expect(at(`${most}/weather`, paths, { servers: [form(most)] })).toEqual({ method: 'GET' })
      expect(() => at(`${over}/weather`, paths, { servers: [form(over)] })).toThrow('has no path')
    }
  })

  test('a malformed server URL in an OpenAPI document is ignored', () => {
    const servers = [null, {}, { url: 7 }, { url: 'https://' }, 'text']
    expect(at('/weather', { '/weather': { get: {} } }, { servers })).toEqual({ method: 'GET' })
  })

  test('a URL may match a path template such as /weather/{city}, which then gives the values of the variable parts', () => {
    const parameters = ['city', 'day'].map((name) => ({ in: 'path', name, schema: TEXT }))
    const paths = { '/weather/{city}/{day}': { get: { parameters } } }
    expect(at('/v1/weather/Lima/7', paths, { servers: [{ url: '/v1' }] })).toEqual({
      method: 'GET',
      pathParams: { city: 'Lima', day: '7' },
      routeTemplate: '/v1/weather/:city/:day',
    })
  })

  test('a URL must match each part of a path template', () => {
    const paths = { '/weather/{city}': { get: {} } }
    expect(at('/weather/Lima', paths).routeTemplate).toBe('/weather/:city')
    for (const path of ['/weather', '/weather/', '/weather/Lima/7', '/rain/Lima'])
      expect(() => at(path, paths)).toThrow('has no path')
    for (const template of ['/weather/x{city}', '/weather/{city}.json', '/weather/{ci ty}'])
      expect(() => at('/weather/Lima', { [template]: { get: {} } })).toThrow('has no path')
  })

  test('the name of a variable part in a path template may contain hyphens and dots', () => {
    const parameters = [{ in: 'path', name: 'city-id', schema: TEXT }]
    const paths = { '/weather/{city-id}/{day.of}': { get: { parameters } } }
    expect(at('/weather/Lima/7', paths)).toEqual({
      method: 'GET',
      pathParams: { 'city-id': 'Lima' },
      routeTemplate: '/weather/:city-id/:day.of',
    })
  })

  test('a path in an OpenAPI document may contain letters and blanks that a URL writes with percent-encoding', () => {
    const parameters = [{ in: 'path', name: 'day', schema: TEXT }]
    const paths = { '/wetter/münchen': { get: {} }, '/le temps/été/{day}': { get: { parameters } } }
    expect(at('/wetter/münchen', paths)).toEqual({ method: 'GET' })
    expect(at('/le temps/été/7', paths)).toEqual({
      method: 'GET',
      pathParams: { day: '7' },
      routeTemplate: '/le%20temps/%C3%A9t%C3%A9/:day',
    })
    const broken = { '/\ud800': { get: {} }, '/weather': { get: {} } }
    expect(at('/weather', broken)).toEqual({ method: 'GET' })
  })

  test('a path entry in an OpenAPI document may be a reference to another part of the document', () => {
    const components = { pathItems: { weather: { get: {} } } }
    const paths = { '/weather': { $ref: '#/components/pathItems/weather' } }
    expect(at('/weather', paths, { components })).toEqual({ method: 'GET' })
  })

  test('if several path entries of an OpenAPI document match a URL, an entry without variable parts is used, or otherwise the first of the entries', () => {
    const templates = { '/{a}/today': { get: {} }, '/weather/{b}': { head: {} } }
    expect(at('/weather/today', { ...templates, '/weather/today': { delete: {} } })).toEqual({
      method: 'DELETE',
    })
    expect(at('/weather/today', templates)).toEqual({ method: 'GET', routeTemplate: '/:a/today' })
  })

  test('only the first 5,000 path entries of an OpenAPI document are searched', () => {
    const others = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`/p${n}`, {}]))
    const weather = { '/weather': { get: {} } }
    expect(at('/weather', { ...others(4_999), ...weather })).toEqual({ method: 'GET' })
    expect(() => at('/weather', { ...others(5_000), ...weather })).toThrow('has no path')
  })
})

describe('the service reads the parameters of an OpenAPI operation, and ignores invalid parameters', () => {
  test('a parameter of an OpenAPI operation is read from the query, a header or the path', () => {
    const one = { name: 'city', schema: TEXT, example: 'Lima' }
    const form = { type: 'object', properties: { city: TEXT } }
    expect(withParameters([{ in: 'query', ...one }])).toEqual({
      method: 'GET',
      queryParams: { city: 'Lima' },
      schema: { queryParams: form },
    })
    expect(withParameters([{ in: 'header', ...one }])).toEqual({
      method: 'GET',
      headers: { city: 'Lima' },
      schema: { headers: form },
    })
    for (const place of ['cookie', 'Query', undefined, 7])
      expect(Object.keys(withParameters([{ in: place, ...one }]))).toEqual(['method'])
  })

  test('a path parameter of an OpenAPI operation gets its value only from the URL', () => {
    const parameters = [
      { in: 'path', name: 'city', schema: { type: 'integer' }, example: 'Rome' },
      { in: 'path', name: 'day', schema: TEXT, example: '7' },
    ]
    const url = 'https://seller.example/weather/Lima'
    expect(inputOf({ '/weather/{city}': { get: { parameters } } }, {}, url)).toEqual({
      method: 'GET',
      pathParams: { city: 'Lima' },
      routeTemplate: '/weather/:city',
    })
  })

  test('an OpenAPI parameter is ignored if its location is unknown, even if the location has the name of a built-in JavaScript property', () => {
    for (const place of ['toString', 'constructor', 'cookie'])
      expect(Object.keys(withQuery({ in: place }))).toEqual(['method'])
  })

  test('an OpenAPI parameter that both the path and the operation require is listed as required only once', () => {
    const city = { in: 'query', name: 'city', required: true, schema: TEXT }
    const input = inputOf({ '/weather': { parameters: [city], get: { parameters: [city] } } })
    expect(input.schema?.queryParams).toMatchObject({ required: ['city'] })
  })

  test('an OpenAPI parameter of the operation replaces the path’s parameter with the same name', () => {
    const city = { in: 'query', name: 'city', schema: TEXT }
    const ofPath = { ...city, required: true, example: 'Lima' }
    const day = { in: 'query', name: 'day', schema: TEXT, required: true, example: '7' }
    const parametersOf = (one: object) => ({
      parameters: [ofPath, day],
      get: { parameters: [one] },
    })
    const queryParams = { type: 'object', properties: { city: TEXT, day: TEXT }, required: ['day'] }
    expect(inputOf({ '/weather': parametersOf(city) })).toEqual({
      method: 'GET',
      queryParams: { day: '7' },
      schema: { queryParams },
    })
  })

  test('an OpenAPI parameter keeps its schema even if the operation also has a body', () => {
    const parameters = [{ in: 'query', name: 'city', schema: TEXT }]
    const requestBody = ofJson({ schema: TEXT })
    const { schema } = inputOf({ '/weather': { post: { parameters, requestBody } } })
    expect(schema).toEqual({
      queryParams: { type: 'object', properties: { city: TEXT } },
      body: TEXT,
    })
  })

  test('an OpenAPI parameter is ignored if its name is no text', () => {
    for (const name of [undefined, 7, null, '__proto__'])
      expect(Object.keys(withQuery({ name }))).toEqual(['method'])
  })

  test('an OpenAPI parameter is listed as required if the document says so', () => {
    const required = { type: 'object', properties: { city: TEXT }, required: ['city'] }
    expect(withQuery({ schema: TEXT, required: true }).schema?.queryParams).toEqual(required)
    for (const no of [false, 'true', undefined])
      expect(withQuery({ schema: TEXT, required: no }).schema?.queryParams).not.toHaveProperty(
        'required',
      )
  })

  test('if a required OpenAPI parameter has no example, all examples of its request part (such as the query) are dropped', () => {
    const city = { in: 'query', name: 'city', schema: TEXT, example: 'Lima' }
    const day = { in: 'query', name: 'day', schema: TEXT }
    expect(withParameters([city, day]).queryParams).toEqual({ city: 'Lima' })
    const demanded = withParameters([city, { ...day, required: true }])
    expect(demanded).not.toHaveProperty('queryParams')
    expect(demanded.schema?.queryParams).toMatchObject({ required: ['day'] })
    const other = { ...day, example: '7' }
    expect(withParameters([city, other]).queryParams).toEqual({ city: 'Lima', day: '7' })
  })

  test('OpenAPI parameters are read from the path entry and from the operation, 30 parameters at most', () => {
    const many = (count: number) =>
      Array.from({ length: count }, (_, n) => ({ in: 'query', name: `p${n}`, schema: TEXT }))
    const last = { in: 'header', name: 'last', schema: TEXT }
    const partsOf = (count: number) =>
      Object.keys(
        inputOf({ '/weather': { parameters: many(count), get: { parameters: [last] } } }).schema!,
      )
    expect(partsOf(29)).toEqual(['queryParams', 'headers'])
    expect(partsOf(30)).toEqual(['queryParams'])
    expect(withParameters('city')).toEqual({ method: 'GET' })
  })

  test('an OpenAPI parameter may be a reference to another part of the document', () => {
    const components = { parameters: { City: { in: 'query', name: 'city', schema: TEXT } } }
    const read = withParameters([{ $ref: '#/components/parameters/City' }], { components })
    expect(read.schema?.queryParams).toEqual({ type: 'object', properties: { city: TEXT } })
  })
})

describe('the example of an OpenAPI parameter is kept only if it is short and matches the schema', () => {
  const exampleOf = (parameter: Json, more: Json = {}) =>
    withQuery(parameter, more).queryParams?.city

  test('the example of an OpenAPI parameter is its `example`, else the first of `examples`, else the example of its schema', () => {
    const schema = { type: 'string', example: 'c', examples: ['d', 'x'], default: 'e' }
    const examples = { first: { value: 'b' }, second: { value: 'x' } }
    expect(exampleOf({ example: 'a', examples, schema })).toBe('a')
    expect(exampleOf({ examples, schema })).toBe('b')
    expect(exampleOf({ schema })).toBe('c')
    expect(exampleOf({ schema: { ...schema, example: undefined } })).toBe('d')
    expect(exampleOf({ schema: { type: 'string', examples: 'x', default: 'e' } })).toBe('e')
    expect(exampleOf({ schema: TEXT })).toBeUndefined()
  })

  test('the example of an OpenAPI parameter may be a reference to another part of the document', () => {
    const components = {
      examples: { City: { value: 'Lima' } },
      schemas: { 'a/b~c': { type: 'string', example: 'Rome' } },
    }
    const example = (pointer: string) => ({ examples: { first: { $ref: pointer } } })
    expect(exampleOf(example('#/components/examples/City'), { components })).toBe('Lima')
    const schema = { $ref: '#/components/schemas/a~1b~0c' }
    expect(exampleOf({ schema }, { components })).toBe('Rome')
    for (const pointer of [
      ...['#/components/examples/Town', '//components/examples/City'],
      ...['#/components/examples/toString', '#/components/examples/City/value/length', ''],
    ])
      expect([pointer, exampleOf(example(pointer), { components })]).toEqual([pointer, undefined])
  })

  test('the example of an OpenAPI parameter must match its schema, and has at most 2,048 characters of JSON', () => {
    expect(exampleOf({ example: 7, schema: TEXT })).toBeUndefined()
    expect(exampleOf({ example: 7, schema: { type: 'integer' } })).toBe(7)
    expect(exampleOf({ example: LONGEST })).toBe(LONGEST)
    expect(exampleOf({ example: `${LONGEST}x` })).toBeUndefined()
  })
})

describe('the request body of an OpenAPI operation becomes part of the endpoint’s metadata', () => {
  test.each([
    ['application/json', 'json', { a: 1 }],
    ['multipart/form-data', 'form-data', { a: 1 }],
    ['application/x-www-form-urlencoded', 'form-data', { a: 1 }],
    ['text/plain', 'text', 'Lima'],
  ])(
    'an OpenAPI request body with the media type %s gets the body type %s',
    (type, bodyType, example) => {
      expect(withContent({ [type]: { schema: {}, example } })).toEqual({
        ...{ method: 'POST', bodyType, body: example, schema: { body: {} } },
      } as never)
    },
  )

  test('an OpenAPI request body counts as JSON if one of several media types is JSON, or if no media type is known', () => {
    const content = { 'text/plain': {}, 'application/json': { schema: TEXT } }
    expect(withContent(content)).toMatchObject({ bodyType: 'json', schema: { body: TEXT } })
    for (const none of [{ 'image/png': {} }, {}, undefined])
      expect(withContent(none)).toEqual({ method: 'POST', bodyType: 'json' })
  })

  test('the example of an OpenAPI request body is a text for the body type text, and otherwise an object', () => {
    for (const example of [7, null, ['a'], 'text', true])
      expect(withContent({ 'application/json': { example } })).not.toHaveProperty('body')
    for (const example of [7, null, ['a'], { a: 1 }])
      expect(withContent({ 'text/plain': { example } })).not.toHaveProperty('body')
  })

  test('the example of an OpenAPI request body is kept only if it matches its schema and is short', () => {
    const schema = { type: 'object', properties: { a: TEXT } }
    const bodyFor = (a: unknown) => withContent({ 'application/json': { schema, example: { a } } })
    expect(bodyFor('b').body).toEqual({ a: 'b' })
    expect(bodyFor(7)).not.toHaveProperty('body')
    expect(bodyFor('x'.repeat(2_100))).not.toHaveProperty('body')
  })

  test('an OpenAPI request body may be a reference to another part of the document', () => {
    const components = { requestBodies: { City: ofType('text/plain', { example: 'Lima' }) } }
    const post = { requestBody: { $ref: '#/components/requestBodies/City' } }
    expect(inputOf({ '/weather': { post } }, { components }).body).toBe('Lima')
  })
})

describe('the first successful JSON response of an OpenAPI operation describes the endpoint’s response', () => {
  test('the description of an endpoint’s response comes from the first successful JSON response of the OpenAPI operation', () => {
    const responses = {
      '200': ofJson({ schema: TEXT, example: 'rain' }),
      '201': ofJson({ schema: { type: 'integer' } }),
      '400': ofJson({ schema: { type: 'boolean' } }),
    }
    expect(withResponses(responses)).toEqual({ type: 'json', example: 'rain', schema: TEXT })
    expect(withResponses({ '2XX': ofJson({ schema: TEXT }) })).toEqual({
      ...{ type: 'json', schema: TEXT },
    })
  })

  test('an OpenAPI operation gives no description of the response if no successful response is JSON', () => {
    for (const responses of [
      ...[undefined, {}, { default: ofJson({}) }, { '402': ofJson({}) }, { '200': {} }],
      { '200': ofType('text/plain', {}) },
    ])
      expect(withResponses(responses)).toBeUndefined()
  })

  test('an example of an OpenAPI response is kept only if it matches the schema', () => {
    const wrong = withResponses({ '200': ofJson({ schema: TEXT, example: 7 }) })
    expect(wrong).toEqual({ type: 'json', schema: TEXT })
    expect(wrong).not.toHaveProperty('example')
  })

  test('a response of an OpenAPI operation may be a reference to another part of the document', () => {
    const components = { responses: { Weather: ofJson({ schema: TEXT }) } }
    const responses = { '200': { $ref: '#/components/responses/Weather' } }
    expect(withResponses(responses, { components })?.schema).toEqual(TEXT)
  })
})

describe('the service follows a reference to another part of the OpenAPI document', () => {
  test('a reference inside an OpenAPI document is followed through at most ten nested members', () => {
    const nest = (value: unknown, depth: number): unknown =>
      depth === 0 ? value : { a: nest(value, depth - 1) }
    const parameter = { in: 'query', name: 'city', schema: TEXT }
    const read = (depth: number) =>
      withParameters([{ $ref: `#${'/a'.repeat(depth)}` }], nest(parameter, depth) as Json).schema
    expect(read(10)?.queryParams).toEqual({ type: 'object', properties: { city: TEXT } })
  })
})

describe('if the metadata are too long for an x402 challenge, the service drops parts of them', () => {
  const words = { serviceName: 'Weather' }
  const bare: HttpInput = { method: 'POST', body: { a: 1 } }
  const input: HttpInput = { ...bare, schema: { body: TEXT } }

  test('if the metadata of an endpoint are too long, the service drops these parts in this order: the response’s schema, the response, the request’s schema, the examples', () => {
    const output = { type: 'json', example: 'rain', schema: TEXT }
    const metadata = { ...words, input, output }
    expect(smallerForms(metadata)).toEqual([
      metadata,
      { ...words, input, output: { example: 'rain' } },
      { ...words, input },
      { ...words, input: bare },
      { ...words, input: { method: 'POST' } },
    ])
  })

  test('if the service must shorten the metadata of an endpoint, the description of the response is dropped unless it has an example', () => {
    for (const output of [{ schema: TEXT }, { example: undefined }])
      expect(smallerForms({ input, output })[1]).not.toHaveProperty('output')
    expect(smallerForms({ input })[1]).not.toHaveProperty('output')
    expect(smallerForms({ input, output: { example: null } })[1]?.output).toEqual({ example: null })
  })

  test('the service cannot shorten metadata of an MCP tool, or metadata that do not describe the request', () => {
    for (const metadata of [words, { ...words, input: { inputSchema: {} }, output: {} }])
      expect(smallerForms(metadata)).toEqual([metadata])
  })
})
