/** Tests how the service reads the fields of a paid endpoint: its resource, its price, its chain and its webhook. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { Type as t } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { ApiError } from '../../../../api/http/errors.ts'
import {
  ENDPOINT_FIELDS,
  orBadRequest,
  PriceUsdc,
  readChange,
  readNetwork,
  readOutboundUrl,
  readPrice,
  readUrlPattern,
  serviceNetwork,
} from '../../../../api/till/endpoints/endpointInput.ts'
import {
  SecretWithoutWebhookError,
  TooManyEndpointsError,
} from '../../../../sql/till/endpoints/endpointChanges.ts'
import { recordHead, recordRpcTrouble } from '../../../../sql/till/watch/chainStatus.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

const services = ({ embeddedDevnet = false, allowPrivateNetworks = false } = {}) =>
  ({
    pool: database.pool,
    config: { minPriceAtomic: 1_000, allowPrivateNetworks, chain: { embeddedDevnet } },
  }) as never

/** Returns the status and the text of the error with which the service refuses a field of an endpoint. */
async function faultOf(read: () => unknown): Promise<string> {
  try {
    await read()
  } catch (error) {
    if (error instanceof ApiError) return `${error.status} ${error.message}`
    throw error
  }
  throw new Error('the input was read')
}

describe('the service stores the normalised URL of an endpoint, and refuses a URL that is not public', () => {
  test('the URL of an endpoint is stored in normalised form, without query and fragment', () => {
    expect(readUrlPattern('HTTPS://API.Example:443/a?x=1#y', false)).toEqual({
      url: 'https://api.example/a',
      matchKey: 'api.example/a',
    })
  })

  test('the URL of an endpoint may name an MCP tool (mcp://tool/…), which the service does not call', () => {
    const tool = 'mcp://tool/report'
    expect(readUrlPattern(tool, false)).toEqual({ url: tool, matchKey: tool })
  })

  test('the URL of an endpoint is refused if it is malformed or not public', async () => {
    for (const [url, reason] of [
      ['report', 'must be an absolute http or https URL'],
      ['https:api.example/a', 'must be an absolute http or https URL'],
      ['https://ada@api.example/', 'must not hold a user name or password'],
      [`https://api.example/${'x'.repeat(2_048)}`, 'must be at most 2048 characters'],
      ['http://127.0.0.1/a', 'must be reachable from the public internet: address is not public'],
      [
        'https://api.example:25/',
        'must be reachable from the public internet: port is not allowed',
      ],
    ] as const) {
      expect(await faultOf(() => readUrlPattern(url, false))).toBe(`400 urlPattern ${reason}`)
    }
    expect(readUrlPattern('http://127.0.0.1:25/a', true).matchKey).toBe('127.0.0.1:25/a')
  })
})

describe('the service checks each URL that it will call itself, and refuses a URL that it cannot call', () => {
  const read = (text: string, allowPrivate = false) =>
    readOutboundUrl('webhookUrl', text, allowPrivate)

  test('if the service calls a URL, it keeps the query and removes the fragment', () => {
    expect(read('HTTPS://API.Example:443/a?x=1#y')).toBe('https://api.example/a?x=1')
    expect(read('http://127.0.0.1:9/a', true)).toBe('http://127.0.0.1:9/a')
  })

  test('a URL that the service calls has at most 2,048 characters, both as given and in its normalised form', async () => {
    const base = 'https://api.example/?q='
    const longest = base + 'x'.repeat(2_048 - base.length)
    expect(read(longest)).toBe(longest)
    const fault = '400 webhookUrl must be at most 2048 characters'
    expect(await faultOf(() => read(`${longest}x`))).toBe(fault)
    expect(await faultOf(() => read(`${base}${'ä'.repeat(400)}`))).toBe(fault)
  })

  test('if the service cannot call a URL, the error names the input field that contains the URL', async () => {
    expect(await faultOf(() => read('mcp://tool/report'))).toBe(
      '400 webhookUrl must be an absolute http or https URL',
    )
    expect(await faultOf(() => read('http://10.0.0.1/'))).toBe(
      '400 webhookUrl must be reachable from the public internet: address is not public',
    )
  })
})

describe('the service accepts a price of an endpoint only as an amount of USDC that is not below the minimum', () => {
  const read = (amount: string) => readPrice(amount, { minPriceAtomic: 1_000 })

  test('the price of an endpoint is at least the minimum price of the service', async () => {
    expect([read('0.001'), read('2')]).toEqual([1_000n, 2_000_000n])
    expect(await faultOf(() => read('0.000999'))).toBe(
      '400 priceUsdc must be at least 0.001 USDC on this service',
    )
  })

  test('the price of an endpoint is a decimal number of USDC', async () => {
    for (const [amount, reason] of [
      ['0', 'must be above 0'],
      ['1000000000000', 'must be below 1000000000000 USDC'],
      ['1e3', 'must be a decimal USDC string with at most 6 decimals, such as "0.01"'],
    ] as const) {
      expect(await faultOf(() => read(amount))).toBe(`400 priceUsdc ${reason}`)
    }
    for (const amount of ['0.01', '0', '1000000000000'])
      expect(Value.Check(PriceUsdc, amount)).toBe(true)
    for (const amount of ['', '01', '.5', '1.', '-1', '0.0000001', ' 1', `0.${'0'.repeat(63)}`])
      expect([amount, Value.Check(PriceUsdc, amount)]).toEqual([amount, false])
  })
})

describe('the service accepts only its own chain for the payments of an endpoint', () => {
  test('an endpoint’s field network may be absent, or may name the service’s chain in either x402 spelling', async () => {
    for (const network of [undefined, 'base-sepolia', 'eip155:84532'])
      expect(readNetwork(network, 'base-sepolia')).toBe('base-sepolia')
    for (const [network, reason] of [
      ['base', 'not the chain of this service'],
      ['eip155:8453', 'not the chain of this service'],
      ['solana', 'unknown'],
      ['constructor', 'unknown'],
      ['', 'unknown'],
    ] as const) {
      expect(await faultOf(() => readNetwork(network, 'base-sepolia'))).toBe(
        `400 network must be "base-sepolia" or left out: "${network}" is ${reason}`,
      )
    }
  })

  test('the chain of the service is the one that the payment workers reported, or else the devnet if it is enabled', async () => {
    const { pool } = database
    const unknown = '503 No payment worker has connected to the chain yet'
    for (const status of [async () => {}, () => recordRpcTrouble(pool, 'no answer')]) {
      await status()
      expect(await faultOf(() => serviceNetwork(services()))).toBe(unknown)
      expect(await faultOf(() => readChange(services(), { network: 'base' }))).toBe(unknown)
      expect(await serviceNetwork(services({ embeddedDevnet: true }))).toBe('base-sepolia')
    }
    await recordHead(pool, { network: 'base', chainId: 8453, number: 7n, hash: '0x7' })
    expect(await serviceNetwork(services({ embeddedDevnet: true }))).toBe('base')
    expect(await readChange(services(), { network: 'eip155:8453' })).toEqual({ network: 'base' })
  })
})

describe('the service changes only those fields of an endpoint that the request gives, and refuses invalid fields', () => {
  test('a change of an endpoint contains only the fields that the request gives', async () => {
    expect(await readChange(services(), {})).toEqual({})
    const secret = 'x'.repeat(16)
    expect(
      await readChange(services(), {
        ...{ priceUsdc: '0.01', description: 'Weather', webhookUrl: 'https://a.example/#x' },
        ...{ webhookSecret: secret, discoverable: false, active: false },
      }),
    ).toEqual({
      ...{ priceAtomic: 10_000n, description: 'Weather', webhookUrl: 'https://a.example/' },
      ...{ webhookSecret: secret, discoverable: false, active: false },
    })
    const none = { description: null, webhookUrl: null }
    expect(await readChange(services(), none)).toEqual(none)
  })

  test('an endpoint’s description is cut after 500 characters, and never in the middle of a character', async () => {
    const cut = async (description: string) =>
      (await readChange(services(), { description })).description
    expect(await cut('x'.repeat(501))).toBe('x'.repeat(500))
    expect(await cut(`${'x'.repeat(499)}😀`)).toBe('x'.repeat(499))
  })

  test('the webhook URL of an endpoint may be a private address only if the service allows private networks', async () => {
    const change = { webhookUrl: 'http://127.0.0.1:9/' }
    expect(await readChange(services({ allowPrivateNetworks: true }), change)).toEqual(change)
    expect(await faultOf(() => readChange(services(), change))).toStartWith(
      '400 webhookUrl must be',
    )
  })

  test('the webhook secret of an endpoint must have 16 to 256 visible ASCII characters', () => {
    const fits = (webhookSecret: string) =>
      Value.Check(t.Object(ENDPOINT_FIELDS), { webhookSecret })
    for (const length of [16, 256]) expect(fits('~'.repeat(length))).toBe(true)
    for (const secret of ['x'.repeat(15), 'x'.repeat(257), `${'x'.repeat(16)} `, 'ä'.repeat(16)])
      expect([secret, fits(secret)]).toEqual([secret, false])
  })

  test('a request is refused if it sets a webhook secret without a webhook, or if the project has too many endpoints', async () => {
    const throwing = (error: Error) => () => orBadRequest(() => Promise.reject(error))
    expect(await faultOf(throwing(new SecretWithoutWebhookError()))).toBe(
      '400 webhookSecret must come with a webhookUrl',
    )
    expect(await faultOf(throwing(new TooManyEndpointsError()))).toMatch(
      /^400 A project must have at most \d+ endpoints$/,
    )
    expect(throwing(new RangeError('other'))()).rejects.toThrow(RangeError)
    expect(await orBadRequest(async () => 7)).toBe(7)
  })
})
