/**
 * Tests how the facilitator responds to the bazaar declaration (x402 metadata about a resource) that a payer repeats in
 * a payment.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { createSecretKey } from 'node:crypto'
import { extensionResponses } from '../../../../api/till/facilitator/extensionResponses.ts'
import { bazaarOf, type Metadata } from '../../../../shared/till/bazaar/metadata.ts'
import { Keyring } from '../../../../shared/vault/envelope.ts'
import { putEndpoint } from '../../../../sql/till/endpoints/endpointChanges.ts'
import {
  type Endpoint,
  findEndpointByResource,
  recordVerification,
} from '../../../../sql/till/endpoints/endpoints.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { newProject, row } from '../../../support/till/tillRows.ts'

const URL_PATTERN = 'https://api.example/weather'
const MATCH_KEY = 'api.example/weather'
const METADATA = {
  input: { method: 'GET', queryParams: { city: 'Lima' }, pathParams: { day: '1' } },
} satisfies Metadata
const DECLARED = bazaarOf(METADATA, URL_PATTERN)!
const keyring = new Keyring([{ id: 'k1', key: createSecretKey(new Uint8Array(32)) }])

let database: TestDatabase
let pool: TestDatabase['pool']
let projectId: string
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
beforeEach(async () => {
  projectId = await newProject(pool)
})
afterAll(() => database[Symbol.asyncDispose]())

async function listed({ discoverable = true, metadata = {} as Metadata } = {}): Promise<Endpoint> {
  const { endpoint } = (await putEndpoint(pool, keyring, {
    ...{ projectId, urlPattern: URL_PATTERN, matchKey: MATCH_KEY, discoverable, metadata },
    ...{ priceAtomic: 10_000n, network: 'base-sepolia' },
  }))!
  await pool.query('update seller_endpoints set check_queued_at = null where id = $1', [
    endpoint.id,
  ])
  return endpoint
}
const isChecked = async ({ id }: Endpoint) =>
  (await row(pool, 'seller_endpoints', id)).check_queued_at !== null

/**
 * Returns the facilitator's answer to a bazaar declaration (metadata for the x402 list), or null if the response has no
 * header about the declaration.
 */
async function answerTo(declared: unknown, endpoint: Endpoint | null) {
  const payment = { extensions: { bazaar: declared } }
  const header = await extensionResponses({ pool } as never, endpoint, payment)
  return header === null ? null : JSON.parse(Buffer.from(header, 'base64').toString()).bazaar
}
/** Returns the bazaar declaration (metadata for the x402 list) with other parameters in its member `info`. */
const withInfo = (change: object) => ({
  ...DECLARED,
  info: { ...DECLARED.info, input: { ...(DECLARED.info.input as object), ...change } },
})

test('a payment without a bazaar declaration (metadata for the x402 list) gets no extension header in the response', async () => {
  const endpoint = await listed({ metadata: METADATA })
  for (const payment of [
    ...[undefined, null, {}, { extensions: null }, { extensions: {} }],
    ...[{ extensions: { bazaar: null } }, { extensions: { other: DECLARED } }],
  ]) {
    expect(await extensionResponses({ pool } as never, endpoint, payment)).toBeNull()
  }
})

describe('the facilitator rejects a bazaar declaration (metadata for the public list) without a discoverable endpoint', () => {
  const nested = (levels: number) => JSON.parse(`${'['.repeat(levels)}1${']'.repeat(levels)}`)
  test.each<[name: string, reason: string, declared: unknown]>([
    ['is too deep', 'bazaar must be nested at most 20 levels', nested(21)],
    [
      'is too long',
      'bazaar must be at most 16384 characters of JSON',
      withInfo({ queryParams: { city: 'x'.repeat(16_384) } }),
    ],
    ['is a text', 'info must follow schema, without outside $ref or $id', 'text'],
    [
      'breaks its schema',
      'info must follow schema, without outside $ref or $id',
      withInfo({ method: 7 }),
    ],
  ])(
    'a bazaar declaration is rejected if the declaration %s',
    async (_, rejectedReason, declared) => {
      const endpoint = await listed({ metadata: METADATA })
      expect(await answerTo(declared, endpoint)).toEqual({ status: 'rejected', rejectedReason })
      expect(await isChecked(endpoint)).toBe(false)
    },
  )

  test('a bazaar declaration (metadata for the x402 list) is rejected if the resource has no endpoint, or if its endpoint is not discoverable', async () => {
    expect(await answerTo(DECLARED, null)).toEqual({
      status: 'rejected',
      rejectedReason:
        'the resource is no endpoint of the project: PUT /v0/sellers/endpoints registers it',
    })
    const hidden = await listed({ discoverable: false, metadata: METADATA })
    expect(await answerTo(DECLARED, hidden)).toEqual({
      status: 'rejected',
      rejectedReason: 'the endpoint is not discoverable: PATCH sets it',
    })
    expect(await isChecked(hidden)).toBe(false)
  })
})

describe('the facilitator accepts a bazaar declaration (metadata for the x402 list) that equals the stored metadata, and otherwise makes a worker check the endpoint', () => {
  test('a bazaar declaration (metadata for the x402 list) that equals the stored metadata of the endpoint succeeds, even with other path parameters', async () => {
    const endpoint = await listed({ metadata: METADATA })
    for (const declared of [DECLARED, withInfo({ pathParams: { day: '7' } })]) {
      expect(await answerTo(declared, endpoint)).toEqual({ status: 'success' })
    }
    expect(await isChecked(endpoint)).toBe(false)
  })

  test('if a check found the same bazaar declaration (metadata for the x402 list) in the endpoint’s 402 response, the declaration gets the status success', async () => {
    const { id } = await listed()
    const verdict = { id, url: URL_PATTERN, status: 'verified', detail: '' } as const
    const seen = { bazaar: DECLARED }
    await recordVerification(pool, { ...verdict, versions: [2], payees: [], seen })
    const endpoint = (await findEndpointByResource(pool, projectId, MATCH_KEY))!
    expect(await answerTo(DECLARED, endpoint)).toEqual({ status: 'success' })
  })

  test('if a bazaar declaration (metadata for the x402 list) differs from the endpoint’s metadata, or the endpoint has none, a worker checks the endpoint', async () => {
    const described = await listed({ metadata: METADATA })
    const other = withInfo({ queryParams: { city: 'Quito' } })
    expect(await answerTo(other, described)).toEqual({ status: 'processing' })
    expect(await isChecked(described)).toBe(true)
    projectId = await newProject(pool)
    const bare = await listed()
    expect(await answerTo(DECLARED, bare)).toEqual({ status: 'processing' })
    expect(await isChecked(bare)).toBe(true)
  })
})
