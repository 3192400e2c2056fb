/**
 * Tests which input, output and other metadata a seller may give for an endpoint in the public list, and which are
 * refused.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Agent, startTestService, type TestService } from '../../../support/service.ts'

const PATH = '/v0/sellers/endpoints'
const URL_PATTERN = 'https://api.example.com/weather'
let service: TestService
let seller: Agent
beforeAll(async () => {
  service = await startTestService({
    smtp: false,
    workers: false,
    env: { ALLOW_PRIVATE_NETWORKS: 'false' },
  })
  seller = await service.newAgent()
})
afterAll(() => service[Symbol.asyncDispose]())

const put = (more: object, urlPattern = URL_PATTERN) =>
  seller.put(PATH, { urlPattern, priceUsdc: '0.01', network: 'base-sepolia', ...more })

const input = (more: object) => ({ input: { method: 'GET', ...more } })
const posted = (more: object) => ({ input: { method: 'POST', ...more } })
const deep = (levels: number): unknown => (levels === 0 ? 1 : { a: deep(levels - 1) })

const refused: [string, object, RegExp][] = [
  ['a long name', { serviceName: 'x'.repeat(33) }, /^serviceName must be 1 to 32 printable ASCII/],
  ['a name outside ASCII', { serviceName: 'Wetter für alle' }, /^serviceName must/],
  ['six tags', { tags: ['a', 'b', 'c', 'd', 'e', 'f'] }, /^tags must be at most 5 texts/],
  ['a long tag', { tags: ['x'.repeat(33)] }, /^tags(?:\.0)? must/],
  ['a tag that is no text', { tags: [1] }, /^tags(?:\.0)? must/],
  ['an icon at an address', { iconUrl: 'https://127.0.0.1/i.png' }, /^iconUrl must name a host/],
  ['an icon at a number', { iconUrl: 'https://2130706433/i' }, /^iconUrl must name a host/],
  ['an icon at [::1]', { iconUrl: 'https://[::1]/i' }, /^iconUrl must name a host/],
  ['an icon at localhost', { iconUrl: 'http://localhost/i' }, /^iconUrl must name a host/],
  ['an icon without a scheme', { iconUrl: 'icon.png' }, /^iconUrl must be an http or https URL/],
  ['an icon with a password', { iconUrl: 'https://a:b@c.example/i' }, /^iconUrl must hold no user/],
  [
    'a long icon',
    { iconUrl: `https://a.example/${'x'.repeat(2048)}` },
    /^iconUrl must be a URL of/,
  ],
  ['no method', { input: {} }, /^input\.method must be one of GET, HEAD/],
  ['an unknown method', input({ method: 'TRACE' }), /^input\.method must be one of/],
  ['an unknown field', input({ querry: {} }), /^input must not hold "querry"/],
  ['a body of GET', input({ body: {} }), /^input\.body must come with the method POST/],
  ['a text as a body of JSON', posted({ body: 'x' }), /^input\.body must be a text where bodyType/],
  ['parameters in a list', input({ queryParams: [] }), /^input\.queryParams must be an object/],
  ['a template with ..', input({ routeTemplate: '/a/%252e%252e/b' }), /^input\.routeTemplate must/],
  ['a template with ://', input({ routeTemplate: '/a://b' }), /^input\.routeTemplate must/],
  ['a template without /', input({ routeTemplate: 'a' }), /^input\.routeTemplate must begin with/],
  ['a deep value', input({ queryParams: deep(21) }), /^input must be nested at most 20 levels/],
  ['a long value', input({ queryParams: { a: 'x'.repeat(3000) } }), /^input must be at most 2048/],
  [
    'an outside reference',
    input({ schema: { queryParams: { $ref: 'https://evil.example/schema' } } }),
    /^input\.schema\.queryParams\.\$ref must not stand here: write the schema itself/,
  ],
  [
    'an identifier',
    input({ schema: { queryParams: { properties: { a: { $id: 'https://evil.example' } } } } }),
    /^input\.schema\.queryParams\.properties\.a\.\$id must not stand here/,
  ],
  [
    'a pattern',
    input({ schema: { queryParams: { properties: { a: { pattern: '(a+)+$' } } } } }),
    /properties\.a\.pattern must not stand here: this keyword is not known/,
  ],
  [
    'an unknown type',
    input({ schema: { queryParams: { type: 'text' } } }),
    /^input\.schema\.queryParams\.type must be one or several of string/,
  ],
  [
    'an example that misses a name',
    input({ queryParams: {}, schema: { queryParams: { required: ['city'] } } }),
    /^input\.queryParams\.city must be there/,
  ],
  [
    'an example of the wrong type',
    posted({ body: { n: 1.5 }, schema: { body: { properties: { n: { type: 'integer' } } } } }),
    /^input\.body\.n must be of the type integer/,
  ],
  [
    'an output that does not follow its schema',
    { output: { example: ['a'], schema: { type: 'array', items: { enum: ['b'] } } } },
    /^output\.example\.0 must be one of enum/,
  ],
  ['an unknown field of output', { output: { shema: {} } }, /^output must not hold "shema"/],
  ['an openApiUrl that is no URL', { openApiUrl: 'file:///etc/passwd' }, /^openApiUrl must be/],
  [
    'a private openApiUrl',
    { openApiUrl: 'http://10.0.0.1/o.json' },
    /^openApiUrl must be reachable/,
  ],
  [
    'a server for a URL',
    { mcpUrl: 'https://mcp.example.com' },
    /^mcpUrl must come with an MCP tool/,
  ],
]

for (const [name, body, message] of refused) {
  test(`metadata for the public list of endpoints are refused in this case: ${name}`, async () => {
    const before = await put({})
    const { endpointId } = before.body
    for (const answer of [await put(body), await seller.patch(`${PATH}/${endpointId}`, body)]) {
      expect([answer.status, answer.body.message]).toEqual([400, expect.stringMatching(message)])
    }
    const { body: after } = await seller.get(`${PATH}/${endpointId}`)
    expect([after.input, after.output, after.tags]).toEqual([null, null, []])
  })
}

test('an MCP tool is refused as an endpoint if it has no input schema or has an OpenAPI document', async () => {
  const tool = 'mcp://tool/weather'
  const none = await put({ input: { method: 'GET' } }, tool)
  expect(none.body.message).toMatch(/^input\.inputSchema must be an object/)
  const { body } = await put({ openApiUrl: 'https://api.example.com/openapi.json' }, tool)
  expect(body.message).toMatch(/^openApiUrl must come with a URL/)
})

test('an endpoint’s metadata for the public list are refused if they and the stored metadata together are too long for an x402 challenge', async () => {
  const half = Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`key${n}`, 'value']))
  expect((await put(input({ queryParams: half }))).status).toBe(200)
  const { status, body } = await put({ output: { example: half } })
  expect([status, body.message]).toEqual([400, expect.stringMatching(/2,990 characters/)])
  expect((await put({ input: null, output: { example: half } })).status).toBe(200)
  await put({ output: null })
})

test('a metadata field of an endpoint stays unchanged if the request omits it, and is removed if its value is null', async () => {
  const queryParams = { city: null, list: [null] }
  await put({ serviceName: 'Weather', tags: ['a', 'A', 'b'], ...input({ queryParams }) })
  const { body } = await put({ serviceName: null })
  expect(body).toMatchObject({
    serviceName: null,
    tags: ['a', 'b'],
    input: { method: 'GET', queryParams },
  })
  const { body: patched } = await seller.patch(`${PATH}/${body.endpointId}`, {
    input: null,
    tags: null,
    iconUrl: 'https://api.example.com/i.png',
  })
  expect(patched).toMatchObject({
    input: null,
    tags: [],
    iconUrl: 'https://api.example.com/i.png',
  })
})
