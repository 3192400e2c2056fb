/**
 * Tests how the service reads the metadata of an endpoint for the public list: texts, server, OpenAPI document,
 * examples and size.
 */
import { describe, expect, test } from 'bun:test'
import { Type as t } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { ApiError } from '../../../../api/http/errors.ts'
import {
  hasListing,
  LISTING_FIELDS,
  readListing,
} from '../../../../api/till/endpoints/listingInput.ts'
import type { Metadata } from '../../../../shared/till/bazaar/metadata.ts'

const URL_SOLD = 'https://api.example/weather'
const TOOL = 'mcp://tool/weather'
const DOCUMENT = 'https://api.example/openapi.json'
const INPUT = { method: 'GET', queryParams: { city: 'Lima' } } as const
const TOOL_INPUT = { inputSchema: { type: 'object' } }

type Body = Parameters<typeof readListing>[1]['body']
type Stored = NonNullable<Parameters<typeof readListing>[1]['stored']>

const stored = (
  metadata: Metadata = {},
  document: Metadata | null = null,
  discoverable = false,
): Stored => ({
  ...{ metadata, discoverable },
  openApi:
    document === null ? null : { url: DOCUMENT, status: 'read', detail: null, metadata: document },
})

type Given = { url?: string; before?: Stored | null; allowPrivate?: boolean }
const read = (body: Body, { url = URL_SOLD, before = null, allowPrivate = false }: Given = {}) =>
  readListing({ config: { allowPrivateNetworks: allowPrivate } } as never, {
    ...{ url, body, stored: before },
  })

function faultOf(body: Body, given: Given = {}): string {
  try {
    read(body, given)
  } catch (error) {
    if (error instanceof ApiError && error.status === 400) return error.message
    throw error
  }
  throw new Error('the listing was read')
}

describe('a request changes an endpoint’s metadata for the public list if it contains one of the metadata fields', () => {
  test('a request contains metadata for the public list of endpoints if one of the metadata fields is set, even to null or false', () => {
    expect(hasListing({})).toBe(false)
    expect(hasListing({ tags: undefined, priceUsdc: '1' } as never)).toBe(false)
    for (const name of Object.keys(LISTING_FIELDS)) expect(hasListing({ [name]: null })).toBe(true)
    for (const discoverable of [true, false]) expect(hasListing({ discoverable })).toBe(true)
  })

  test('in the public list of endpoints, the name and the tags of an endpoint have 1 to 32 printable ASCII characters each, and at most 5 tags are allowed', () => {
    const fits = (body: object) => Value.Check(t.Object(LISTING_FIELDS), body)
    const word = 'x'.repeat(32)
    for (const body of [
      { serviceName: word },
      { serviceName: null },
      { tags: Array(5).fill(word) },
    ])
      expect(fits(body)).toBe(true)
    for (const body of [{ serviceName: '' }, { serviceName: `${word}x` }, { serviceName: 'ä' }])
      expect(fits(body)).toBe(false)
    for (const tags of [Array(6).fill('a'), [''], [`${word}x`]]) expect(fits({ tags })).toBe(false)
    for (const field of ['mcpUrl', 'openApiUrl']) {
      expect([fits({ [field]: 'x'.repeat(2_048) }), fits({ [field]: null })]).toEqual([true, true])
      expect([fits({ [field]: 'x'.repeat(2_049) }), fits({ [field]: '' })]).toEqual([false, false])
    }
  })
})

describe('the service stores the metadata of an endpoint for the public list of endpoints, and refuses invalid metadata', () => {
  test('if a request has no metadata for the public list of endpoints, the stored metadata do not change', () => {
    expect(read({})).toEqual({})
    expect(read({ discoverable: true })).toEqual({})
    expect(read({}, { before: stored({ tags: ['a'] }, { input: INPUT }) })).toEqual({})
  })

  test('the service stores the metadata fields of a request, and keeps only one of several tags that differ only in letter case', () => {
    const output = { type: 'json', example: { tempC: 7 } }
    const words = { serviceName: 'Weather', iconUrl: 'https://api.example/icon.png' }
    expect(read({ ...words, tags: ['Sun', 'rain', 'sun'], input: INPUT, output })).toEqual({
      metadata: { ...words, tags: ['Sun', 'rain'], input: INPUT, output },
    })
    expect(read({ tags: [] })).toEqual({ metadata: { tags: [] } })
  })

  test('if a request sets a metadata field of an endpoint to null, the service removes the stored field', () => {
    const none = {
      serviceName: null,
      tags: null,
      iconUrl: null,
      mcpUrl: null,
      input: null,
      output: null,
    }
    expect(read(none)).toEqual({ metadata: none })
    expect(read({ openApiUrl: null })).toEqual({ openApiUrl: null })
  })

  test('if a metadata field of an endpoint is invalid, the error names the field', () => {
    for (const [body, fault] of [
      [{ iconUrl: 'icon.png' }, 'iconUrl must be an http or https URL of ASCII characters'],
      [{ iconUrl: 'http://127.0.0.1/' }, 'iconUrl must name a host, and no IP address'],
      [
        { input: { method: 'TRACE' } },
        'input.method must be one of GET, HEAD, DELETE, POST, PUT, PATCH',
      ],
      [{ input: { ...INPUT, more: 1 } }, 'input must not hold "more"'],
      [{ output: { type: 7 } }, 'output.type must be a text'],
      [{ openApiUrl: 'openapi.json' }, 'openApiUrl must be an absolute http or https URL'],
    ] as const) {
      expect(faultOf(body as Body)).toBe(fault)
    }
  })
})

describe('the metadata of a listed MCP tool must name the URL of its MCP server', () => {
  test('the field mcpUrl (URL of the MCP server) is accepted only if the endpoint is an MCP tool', () => {
    const given = { url: TOOL }
    expect(read({ mcpUrl: 'https://mcp.example/#x' }, given)).toEqual({
      metadata: { mcpUrl: 'https://mcp.example/' },
    })
    expect(faultOf({ mcpUrl: 'https://mcp.example/' })).toBe(
      'mcpUrl must come with an MCP tool: urlPattern is a URL',
    )
    const local = { mcpUrl: 'http://127.0.0.1:9/' }
    expect(faultOf(local, given)).toStartWith('mcpUrl must be reachable from the public internet')
    expect(read(local, { ...given, allowPrivate: true })).toEqual({ metadata: local })
  })

  test('the URL of the MCP server is required while the MCP tool is in the public list', () => {
    const fault =
      'discoverable must come with mcpUrl for an MCP tool: an agent looks for its server'
    const mcpUrl = 'https://mcp.example/'
    expect(faultOf({ discoverable: true }, { url: TOOL })).toBe(fault)
    expect(read({ discoverable: true, mcpUrl }, { url: TOOL })).toEqual({ metadata: { mcpUrl } })
    expect(read({ discoverable: false }, { url: TOOL })).toEqual({})
    const known = stored({ mcpUrl }, null, true)
    expect(read({ discoverable: true }, { url: TOOL, before: known })).toEqual({})
    expect(faultOf({ mcpUrl: null }, { url: TOOL, before: known })).toBe(fault)
    expect(read({ mcpUrl: null, discoverable: false }, { url: TOOL, before: known })).toEqual({
      metadata: { mcpUrl: null },
    })
    expect(faultOf({ tags: ['a'] }, { url: TOOL, before: stored({}, null, true) })).toBe(fault)
  })

  test('the metadata of an MCP tool must describe the arguments of the tool, not the query or body of an HTTP request', () => {
    expect(read({ input: TOOL_INPUT }, { url: TOOL })).toEqual({ metadata: { input: TOOL_INPUT } })
    expect(faultOf({ input: INPUT }, { url: TOOL })).toStartWith('input')
    expect(faultOf({ input: TOOL_INPUT })).toStartWith('input')
  })
})

describe('the metadata of an endpoint may name an OpenAPI document only if the endpoint has a URL', () => {
  test('an OpenAPI document may be set only for an endpoint with a URL', () => {
    expect(read({ openApiUrl: `${DOCUMENT}#x` })).toEqual({ openApiUrl: DOCUMENT })
    expect(faultOf({ openApiUrl: DOCUMENT }, { url: TOOL })).toBe(
      'openApiUrl must come with a URL: an MCP tool has no path',
    )
    expect(read({ openApiUrl: null }, { url: TOOL })).toEqual({ openApiUrl: null })
    const local = 'http://127.0.0.1:9/openapi.json'
    expect(faultOf({ openApiUrl: local })).toStartWith('openApiUrl must be reachable')
    expect(read({ openApiUrl: local }, { allowPrivate: true })).toEqual({ openApiUrl: local })
  })

  test('the examples in an endpoint’s metadata must match the schemas of its stored OpenAPI document, unless the seller replaces these schemas', () => {
    const schema = { queryParams: { type: 'object', required: ['city'] } }
    const document: Metadata = { input: { method: 'GET', schema, queryParams: {} } }
    const before = stored({}, document)
    const fault = faultOf({ tags: ['a'] }, { before })
    expect(fault).toStartWith('input')
    expect(faultOf({ tags: ['a'], openApiUrl: DOCUMENT }, { before })).toBe(fault)
    for (const openApiUrl of [null, `${DOCUMENT}2`]) {
      expect(read({ tags: ['a'], openApiUrl }, { before })).toEqual({
        ...{ metadata: { tags: ['a'] }, openApiUrl },
      })
    }
    expect(read({ input: INPUT }, { before })).toEqual({ metadata: { input: INPUT } })
    expect(faultOf({ input: null }, { before: stored({ input: INPUT }, document) })).toBe(fault)
  })
})

describe('metadata for the public list of endpoints are refused if they do not fit in the header of an x402 challenge', () => {
  const long = (chars: number) =>
    ({ method: 'GET', queryParams: { city: 'x'.repeat(chars) } }) as const
  const fault =
    'input, output, tags, serviceName and iconUrl must be shorter: a challenge stands in a header of 2,990 characters'

  test('the new and the stored metadata of an endpoint together must fit the size limit of an x402 challenge', () => {
    expect(read({ input: long(300) }).metadata).toBeDefined()
    expect(faultOf({ input: long(1_900) })).toBe(fault)
    const output = { example: { text: 'x'.repeat(400) } }
    expect(read({ output }).metadata).toBeDefined()
    const before = stored({ input: long(1_000) })
    expect(faultOf({ output }, { before })).toBe(fault)
    expect(read({ output, input: null }, { before }).metadata).toBeDefined()
  })

  test('if the metadata of an endpoint do not change, the service does not check their size', () => {
    expect(read({ discoverable: true }, { before: stored({ input: long(1_900) }) })).toEqual({})
  })
})
