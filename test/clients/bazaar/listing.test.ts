/** Tests with @x402/extensions how x402 challenges and the public list describe how to call a resource. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { HTTPFacilitatorClient } from '@x402/core/server'
import { ExactEvmScheme } from '@x402/evm'
import { paymentMiddleware } from '@x402/express'
import {
  bazaarResourceServerExtension,
  declareDiscoveryExtension,
  extractDiscoveryInfo,
  extractDiscoveryInfoV1,
  validateDiscoveryExtension,
  validateDiscoveryExtensionSpec,
  withBazaar,
} from '@x402/extensions/bazaar'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import { startReceiver, status } from '../../support/events/receiver.ts'
import { type Agent, createClient } from '../../support/service.ts'
import { CHALLENGE } from '../../support/till/headers/challenge.ts'
import { decodeHeader, encodeHeader } from '../../support/till/headers/x402v2.ts'
import { payer, redeem, startTestTill, type TestTill } from '../../support/till/till.ts'
import { waitFor } from '../../support/waitFor.ts'
import { facilitatorOf, onExpress, resourceServer, routesV2, type Seller } from '../sellers.ts'
import '../../support/long.ts'

const PATH = '/v0/sellers/endpoints'
const HEADER_CHARS_MAX = 2990
let till: TestTill
let agent: Agent
const sellers: Seller[] = []

beforeAll(async () => {
  till = await startTestTill({
    env: { ALLOW_PRIVATE_NETWORKS: 'true' },
    parts: { pools: ['webhooks'] },
  })
  agent = await till.newSeller()
})
afterAll(async () => {
  await Promise.all(sellers.map(({ stop }) => stop()))
  await till[Symbol.asyncDispose]()
})

const WEATHER = {
  serviceName: 'Weather of Oslo',
  tags: ['weather', 'oslo'],
  iconUrl: 'https://api.example.com/icon.png',
  output: {
    example: { tempC: 7 },
    schema: { type: 'object', properties: { tempC: { type: 'number' } }, required: ['tempC'] },
  },
}
/**
 * Holds for each test case its name, the path or MCP tool that the buyer calls, and the input that the endpoint's
 * metadata describe.
 */
const CALLS: [string, string, Record<string, unknown>][] = [
  [
    'a query',
    '/weather/berlin',
    {
      method: 'GET',
      queryParams: { city: 'Berlin', days: 3 },
      pathParams: { where: 'berlin' },
      headers: { 'x-unit': 'C' },
      schema: {
        queryParams: {
          type: 'object',
          properties: { city: { type: 'string', maxLength: 50 }, days: { type: 'integer' } },
          required: ['city'],
        },
      },
      routeTemplate: '/weather/:where',
    },
  ],
  [
    'a body',
    '/weather-of',
    { method: 'POST', body: { city: 'Berlin' }, schema: { body: { required: ['city'] } } },
  ],
  ['a text', '/say', { method: 'PUT', bodyType: 'text', body: 'Berlin' }],
  ['a method alone', '/now', { method: 'DELETE' }],
  [
    'a tool',
    'mcp://tool/weather',
    {
      inputSchema: { type: 'object', properties: { city: { type: 'string' } } },
      example: { city: 'Berlin' },
      transport: 'streamable-http',
      description: 'The weather of a city',
    },
  ],
]

for (const [name, path, input] of CALLS) {
  test(`the library @x402/extensions accepts the bazaar data (how to call) of ${name} in the service’s challenge and in its refusal of a payment`, async () => {
    await using shop = await startReceiver(status(402, CHALLENGE))
    const urlPattern = path.startsWith('/') ? `http://127.0.0.1:${shop.port}${path}` : path
    const put = await agent.put(PATH, { urlPattern, priceUsdc: '0.01', ...WEATHER, input })
    expect([put.status, put.body.input, put.body.tags]).toEqual([201, input, WEATHER.tags])
    const order = { amount: '0.01', resource: urlPattern, description: 'd'.repeat(450) }
    const { body: challenge } = await agent.post('/v0/payments/challenge', order)
    const refused = (await redeem(agent, encodeHeader({}), { resource: urlPattern })).body
    for (const { headers } of [challenge, refused]) {
      const header = headers['PAYMENT-REQUIRED']
      expect(header.length).toBeLessThanOrEqual(HEADER_CHARS_MAX)
      const required = decodeHeader(header)
      const { bazaar } = required.extensions
      expect([validateDiscoveryExtension(bazaar), validateDiscoveryExtensionSpec(bazaar)]).toEqual([
        { valid: true },
        { valid: true },
      ])
      const payment = { x402Version: 2, accepted: required.accepts[0], payload: {}, ...required }
      const found = extractDiscoveryInfo(payment, required.accepts[0])!
      const { routeTemplate, schema: _, ...example } = input
      expect(found).toMatchObject({
        discoveryInfo: { input: example, output: { type: 'json', example: { tempC: 7 } } },
        serviceName: WEATHER.serviceName,
        tags: WEATHER.tags,
        iconUrl: WEATHER.iconUrl,
        ...(routeTemplate === undefined ? {} : { routeTemplate }),
      })
    }
    const [v1] = challenge.accepts
    expect(refused.requirement.accepts[0].outputSchema).toEqual(v1.outputSchema)
    // The endpoint in this test is not in the public list. Clients of x402 version 1 learn this from the field
    // `discoverable`.
    if ('inputSchema' in input) expect(v1.outputSchema).toBeUndefined()
    else {
      expect(v1.outputSchema.input).toMatchObject({ method: input.method, discoverable: false })
      const listed = structuredClone(v1)
      listed.outputSchema.input.discoverable = true
      const { method, queryParams } = input
      const read = extractDiscoveryInfoV1(listed)!.input
      expect(read).toMatchObject({ type: 'http', method } as never)
      if (queryParams !== undefined) expect(read).toMatchObject({ queryParams } as never)
    }
  })
}

const declaration = () =>
  declareDiscoveryExtension({
    input: { city: 'Berlin' },
    inputSchema: { properties: { city: { type: 'string' } }, required: ['city'] },
    output: { example: { joke: 'ha' } },
  })

async function openShop() {
  const shop = { service: till.service, seller: agent }
  const answers: { bazaar: { status: string; rejectedReason?: string } }[] = []
  const client = new HTTPFacilitatorClient(facilitatorOf(shop))
  const server = resourceServer(shop, client).registerExtension(bazaarResourceServerExtension)
  const routes = {
    'GET /joke': { ...routesV2()['GET /joke'], extensions: declaration(), tags: ['fun'] },
  }
  const opened = await onExpress(paymentMiddleware(routes as never, server), [2])
  sellers.push(opened)
  return { ...opened, answers }
}

const buy = wrapFetchWithPayment(
  fetch,
  new x402Client().register('eip155:*', new ExactEvmScheme(payer as never)),
)

/** Verifies or settles a payment as the seller would, and reads the header `extension-responses` of the response. */
async function declared(payment: unknown, requirements: unknown, face = 'verify') {
  const response = await fetch(`${till.service.url}/v0/x402/${face}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${agent.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      x402Version: 2,
      paymentPayload: payment,
      paymentRequirements: requirements,
    }),
  })
  const header = response.headers.get('extension-responses')
  return header === null ? null : decodeHeader(header).bazaar
}

const bazaar = () =>
  withBazaar(new HTTPFacilitatorClient({ url: `${till.service.url}/v0/x402` })).extensions.bazaar

test('the metadata that @x402/express declares reaches the public list after the settlement of a payment', async () => {
  const { url } = await openShop()
  const { body } = await agent.put(PATH, { urlPattern: url, priceUsdc: '0.01' })
  const id = body.endpointId
  await waitFor('the first look', async () => {
    const { verification } = (await agent.get(`${PATH}/${id}`)).body
    return verification.status === 'verified'
  })
  // The test deletes the metadata that the service read when it checked the endpoint, so that the metadata can come
  // only from the payment.
  const { pool } = till.service.database
  await pool.query(`update seller_endpoints set seen_metadata = '{}' where id = $1`, [id])
  const required = decodeHeader((await fetch(url)).headers.get('payment-required')!)
  const { extensions, resource, accepts } = required
  const payment = { x402Version: 2, accepted: accepts[0], payload: {}, resource, extensions }
  const wanted = { ...accepts[0], extra: { ...accepts[0].extra, resource: url } }
  expect(await declared(payment, wanted)).toEqual({
    status: 'rejected',
    rejectedReason: expect.stringContaining('not discoverable'),
  })
  await agent.patch(`${PATH}/${id}`, { discoverable: true })
  expect((await buy(url)).status).toBe(200)
  const listed = await waitFor('the listing', async () => {
    const { items } = await bazaar().listResources({ extensions: 'bazaar' })
    return items.find((item) => item.resource === url) ?? null
  })
  expect(listed).toMatchObject({
    type: 'http',
    extensions: {
      bazaar: {
        info: {
          input: { type: 'http', method: 'GET', queryParams: { city: 'Berlin' } },
          output: { example: { joke: 'ha' } },
        },
      },
    },
  })
  expect(await declared(payment, wanted)).toEqual({ status: 'success' })
  const other = structuredClone(payment)
  other.extensions.bazaar.info.input.queryParams.city = 'Rome'
  expect(await declared(other, wanted)).toEqual({ status: 'processing' })
  expect(await declared(other, wanted, 'settle')).toEqual({ status: 'processing' })
  other.extensions.bazaar.info.input.queryParams.city = 7
  expect(await declared(other, wanted)).toMatchObject({ status: 'rejected' })
  expect(await declared({ ...payment, extensions: {} }, wanted)).toBeNull()
  const nowhere = { ...wanted, extra: { ...wanted.extra, resource: `${url}/other` } }
  expect(await declared(payment, nowhere)).toMatchObject({
    status: 'rejected',
    rejectedReason: expect.stringContaining('PUT /v0/sellers/endpoints'),
  })
})

test('the response of /v0/x402/supported names the x402 extension bazaar', async () => {
  const { body } = await agent.get('/v0/x402/supported')
  expect(body.extensions).toContain('bazaar')
})

const DOCUMENT = {
  openapi: '3.0.3',
  info: { title: 'Forecasts', version: '1' },
  servers: [{ url: '/v2' }],
  paths: {
    '/weather/{city}': {
      parameters: [{ name: 'city', in: 'path', required: true, schema: { type: 'string' } }],
      get: {
        tags: ['Weather'],
        parameters: [
          { $ref: '#/components/parameters/Days' },
          { name: 'session', in: 'cookie', schema: { type: 'string' } },
        ],
        responses: {
          '200': {
            content: {
              'application/json': {
                schema: { $ref: '#/components/schemas/Weather' },
                example: { tempC: 7 },
              },
            },
          },
        },
      },
    },
  },
  components: {
    parameters: {
      Days: {
        name: 'days',
        in: 'query',
        example: 3,
        schema: { type: 'integer', minimum: 1, nullable: true },
      },
    },
    schemas: {
      Weather: {
        type: 'object',
        properties: { tempC: { type: 'number' }, next: { $ref: '#/components/schemas/Weather' } },
      },
    },
  },
}

test('an OpenAPI document describes how to call a URL, and the seller’s own description overrides the document', async () => {
  await using receiver = await startReceiver((request, response) => {
    const { path } = request
    if (path === '/openapi.json') response.end(JSON.stringify(DOCUMENT))
    else if (path === '/html') response.end('<html>')
    else if (path === '/long') response.end('x'.repeat(1024 * 1024 + 1))
    else if (path === '/none') response.end(JSON.stringify({ ...DOCUMENT, paths: {} }))
    else response.writeHead(404).end()
  })
  const at = (path: string) => `http://127.0.0.1:${receiver.port}${path}`
  const urlPattern = at('/v2/weather/oslo')
  const { body } = await agent.put(PATH, {
    urlPattern,
    priceUsdc: '0.01',
    openApiUrl: at('/openapi.json'),
  })
  expect(body.openApi).toMatchObject({ status: 'pending', url: at('/openapi.json') })
  const read = () =>
    waitFor('the document', async () => {
      const { openApi } = (await agent.get(`${PATH}/${body.endpointId}`)).body
      return openApi.status === 'pending' ? null : openApi
    })
  expect(await read()).toMatchObject({
    status: 'read',
    detail: null,
    input: {
      method: 'GET',
      queryParams: { days: 3 },
      pathParams: { city: 'oslo' },
      routeTemplate: '/v2/weather/:city',
    },
    output: { example: { tempC: 7 } },
  })
  const challenge = async () => {
    const order = { amount: '0.01', resource: urlPattern }
    const { body: found } = await agent.post('/v0/payments/challenge', order)
    return decodeHeader(found.headers['PAYMENT-REQUIRED'])
  }
  const { resource, extensions } = await challenge()
  expect(resource).toMatchObject({ serviceName: 'Forecasts', tags: ['Weather'] })
  expect(validateDiscoveryExtension(extensions.bazaar)).toEqual({ valid: true })
  expect(extensions.bazaar).toMatchObject({
    routeTemplate: '/v2/weather/:city',
    info: { input: { queryParams: { days: 3 } }, output: { example: { tempC: 7 } } },
    schema: {
      properties: {
        input: {
          properties: {
            queryParams: { properties: { days: { type: ['integer', 'null'], minimum: 1 } } },
          },
        },
      },
    },
  })
  const change = { serviceName: 'Ours', output: { type: 'text' } }
  expect((await agent.patch(`${PATH}/${body.endpointId}`, change)).body).toMatchObject(change)
  const own = await challenge()
  expect([own.resource.serviceName, own.extensions.bazaar.info.output]).toEqual([
    'Ours',
    { type: 'text' },
  ])
  for (const [path, detail] of [
    ['/html', 'the document is not JSON'],
    ['/long', 'the document is longer than 1048576 bytes'],
    ['/none', 'the document has no path for this URL'],
    ['/missing', 'answered 404, expected 200'],
  ] as const) {
    await agent.patch(`${PATH}/${body.endpointId}`, { openApiUrl: at(path) })
    expect(await read()).toMatchObject({ status: 'failed', detail, input: null })
  }
  const { body: gone } = await agent.patch(`${PATH}/${body.endpointId}`, { openApiUrl: null })
  expect(gone.openApi).toBeNull()
})

test('the public list of endpoints filters by type, tag and price, and has pages by cursor', async () => {
  const { url } = await openShop()
  const own = await openShop()
  const tool = {
    urlPattern: 'mcp://tool/forecast',
    priceUsdc: '0.05',
    tags: ['Forecast'],
    input: { inputSchema: { type: 'object' } },
    mcpUrl: 'https://mcp.example.com/mcp',
    discoverable: true,
  }
  expect((await agent.put(PATH, tool)).status).toBe(201)
  for (const [urlPattern, priceUsdc, tags] of [
    [url, '0.01', ['Forecast', 'cheap']],
    [own.url, '0.02', null],
  ] as const) {
    await agent.put(PATH, { urlPattern, priceUsdc, tags, discoverable: true })
  }
  const open = createClient(till.service.url, null)
  const list = async (query: string) =>
    (await open.get(`/v0/x402/discovery/resources?${query}`)).body
  const names = async (query: string) => (await list(query)).items.map((one: any) => one.resource)
  await waitFor('the looks', async () => {
    const found = await names('limit=100')
    return found.includes(url) && found.includes(own.url)
  })
  const [mcp] = (await list('type=mcp')).items
  expect(mcp).toMatchObject({
    resource: tool.mcpUrl,
    type: 'mcp',
    extensions: { bazaar: { info: { input: { type: 'mcp', toolName: 'forecast' } } } },
  })
  expect(await names('tag=FORECAST')).toEqual([tool.mcpUrl, url])
  expect(await names('tag=forecast&type=http')).toEqual([url])
  expect(await names('tag=forecast&maxPriceUsdc=0.049')).toEqual([url])
  expect(await names('minPriceUsdc=0.02')).toEqual([tool.mcpUrl, own.url])
  expect(await names('tag=none')).toEqual([])
  const all = await names('limit=100')
  const walked: string[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page: any = await list(`limit=1${cursor === '' ? '' : `&cursor=${cursor}`}`)
    walked.push(...page.items.map((one: any) => one.resource))
    cursor = page.pagination.cursor
  }
  expect(walked).toEqual(all)
  const { body: known } = await open.get('/.well-known/x402')
  expect(known).toEqual({
    version: 1,
    resources: all,
    total: all.length,
    discovery: expect.stringContaining('/v0/x402/discovery/resources'),
  })
  for (const [query, field] of [
    ['minPriceUsdc=x', 'minPriceUsdc'],
    ['maxPriceUsdc=0', 'maxPriceUsdc'],
    ['cursor=x', 'cursor'],
  ] as const) {
    const { status, body } = await open.get(`/v0/x402/discovery/resources?${query}`)
    expect([status, body.message]).toEqual([
      400,
      expect.stringMatching(new RegExp(`^${field} must`)),
    ])
  }
})
