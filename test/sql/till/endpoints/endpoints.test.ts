/** Tests that each project sees only its own endpoints that are not deleted. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createSecretKey } from 'node:crypto'
import { readOpenApi } from '../../../../shared/till/bazaar/openApi.ts'
import { readSeen } from '../../../../shared/till/bazaar/seen.ts'
import { Keyring } from '../../../../shared/vault/envelope.ts'
import { deleteProject } from '../../../../sql/account/projects/deleteProject.ts'
import {
  deleteEndpoint,
  ENDPOINTS_MAX,
  putEndpoint,
  SecretWithoutWebhookError,
  TooManyEndpointsError,
  updateEndpoint,
} from '../../../../sql/till/endpoints/endpointChanges.ts'
import {
  endpointTotals,
  findEndpoint,
  findEndpointByResource,
  findUrlToVerify,
  recordOpenApi,
  recordVerification,
} from '../../../../sql/till/endpoints/endpoints.ts'
import { findSeller } from '../../../../sql/till/endpoints/seller.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import {
  newPayment,
  newProject,
  newSettled,
  row,
  whileHeld,
} from '../../../support/till/tillRows.ts'

const HOOK = 'http://127.0.0.1:9/hook'
let database: TestDatabase
let pool: TestDatabase['pool']
let keyring: Keyring

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  keyring = new Keyring([{ id: 'k1', key: createSecretKey(new Uint8Array(32)) }])
})
afterAll(() => database[Symbol.asyncDispose]())

const put = (projectId: string, more: { path?: string; webhookUrl?: string } = {}) => {
  const { path = 'a', ...change } = more
  const matchKey = `api.example.com/${path}`
  const urlPattern = `https://${matchKey}`
  const price = { priceAtomic: 10_000n, network: 'base-sepolia' }
  return putEndpoint(pool, keyring, { projectId, matchKey, urlPattern, ...price, ...change })
}
const newEndpoint = async (projectId: string, more: Parameters<typeof put>[1] = {}) =>
  (await put(projectId, more))!.endpoint.id
const fill = (projectId: string, count: number, isDeleted = false) =>
  pool.query(
    `insert into seller_endpoints (id, project_id, url_pattern, match_key, price_atomic, network, deleted_at)
     select $1 || n, $1, 'http://a.example/' || n, 'a.example/' || n, 1, 'base-sepolia', case when $3 then now() end
     from generate_series(1, $2::int) n`,
    [projectId, count, isDeleted],
  )

describe('a project has a limited number of endpoints, and its endpoints are deleted together with the project', () => {
  test('an endpoint is not stored if its project is deleted before or during the PUT request', async () => {
    const [gone, going] = [await newProject(pool), await newProject(pool)]
    await deleteProject(pool, gone, null)
    expect(await put(gone)).toBeNull()
    expect(await findSeller(pool, gone)).toBeNull()
    const deletion = `with locked as (select id from projects where id = $1 for update)
      update projects p set deleted_at = clock_timestamp() from locked where p.id = locked.id`
    expect(await whileHeld(pool, deletion, [going], () => [put(going)])).toEqual([null])
  })

  test('a project has at most ENDPOINTS_MAX active endpoints, even after concurrent PUT requests', async () => {
    const projectId = await newProject(pool)
    await fill(await newProject(pool), ENDPOINTS_MAX)
    await fill(projectId, 5, true)
    await fill(await newProject(pool), 5, true)
    await pool.query(
      `insert into seller_endpoints (id, project_id, url_pattern, match_key, price_atomic, network)
       select $1 || 'x' || n, $1, 'http://b.example/' || n, 'b.example/' || n, 1, 'base-sepolia'
       from generate_series(1, $2::int) n`,
      [projectId, ENDPOINTS_MAX - 1],
    )
    const hold = 'select from projects where id = $1 for update'
    const outcomes = await whileHeld(pool, hold, [projectId], () =>
      ['a', 'b'].map((path) =>
        put(projectId, { path }).then(
          () => 'put',
          (error) => error,
        ),
      ),
    )
    expect(outcomes.filter((outcome) => outcome === 'put')).toHaveLength(1)
    expect(outcomes.find((outcome) => outcome !== 'put')).toBeInstanceOf(TooManyEndpointsError)
  })

  test('the deletion of a project removes only the endpoints of this project', async () => {
    const [doomed, other] = [await newProject(pool), await newProject(pool)]
    const before = await newEndpoint(doomed)
    await deleteEndpoint(pool, { projectId: doomed, id: before })
    const { deleted_at } = await row(pool, 'seller_endpoints', before)
    const [id, kept] = [await newEndpoint(doomed), await newEndpoint(other)]
    await deleteProject(pool, doomed, null)
    expect(await findUrlToVerify(pool, id)).toBeNull()
    expect(await findUrlToVerify(pool, kept)).not.toBeNull()
    expect((await row(pool, 'seller_endpoints', before)).deleted_at).toEqual(deleted_at)
  })
})

describe('an endpoint can be found and changed only by its own project', () => {
  test('only the project that owns an endpoint can find, change and delete the endpoint, and no project can do so after the deletion', async () => {
    const [projectId, stranger] = [await newProject(pool), await newProject(pool)]
    const id = await newEndpoint(projectId)
    const change = { priceAtomic: 5n }
    const target = { projectId, id }
    const foreign = { projectId: stranger, id }
    expect(await findEndpoint(pool, foreign)).toBeNull()
    expect(await findEndpointByResource(pool, stranger, 'api.example.com/a')).toBeNull()
    expect(await updateEndpoint(pool, keyring, { ...foreign, change })).toBeNull()
    expect(await deleteEndpoint(pool, foreign)).toBe(false)
    expect((await findEndpoint(pool, target))?.priceAtomic).toBe(10_000n)
    expect(await deleteEndpoint(pool, target)).toBe(true)
    expect(await deleteEndpoint(pool, target)).toBe(false)
    expect(await findEndpoint(pool, target)).toBeNull()
    expect(await findEndpointByResource(pool, projectId, 'api.example.com/a')).toBeNull()
    expect(await updateEndpoint(pool, keyring, { ...target, change })).toBeNull()
  })

  test('if two concurrent calls set the webhook of an endpoint, the endpoint gets only one webhook secret', async () => {
    const projectId = await newProject(pool)
    const id = await newEndpoint(projectId)
    const change = { webhookUrl: HOOK }
    const hold = 'select from seller_endpoints where id = $1 for update'
    const changed = await whileHeld(pool, hold, [id], () =>
      [1, 2].map(() => updateEndpoint(pool, keyring, { projectId, id, change })),
    )
    expect(changed.filter((one) => one!.newSecret !== null)).toHaveLength(1)
  })

  test('an endpoint without a webhook has no webhook secret', async () => {
    const projectId = await newProject(pool)
    const id = await newEndpoint(projectId)
    const update = (change: Parameters<typeof updateEndpoint>[2]['change']) =>
      updateEndpoint(pool, keyring, { projectId, id, change })
    const hasSecret = async () =>
      (await row(pool, 'seller_endpoints', id)).webhook_ciphertext !== null
    expect((await update({ priceAtomic: 2n }))?.newSecret).toBeNull()
    await expect(update({ webhookSecret: 'a-secret-of-my-own' })).rejects.toBeInstanceOf(
      SecretWithoutWebhookError,
    )
    await update({ webhookUrl: HOOK })
    expect((await update({ priceAtomic: 3n }))?.newSecret).toBeNull()
    expect(await hasSecret()).toBe(true)
    await update({ webhookUrl: null })
    expect(await hasSecret()).toBe(false)
  })

  test('the result of a verification is stored only if the verified URL is still the endpoint’s URL', async () => {
    const projectId = await newProject(pool)
    const id = await newEndpoint(projectId)
    const record = (url: string) =>
      recordVerification(pool, {
        id,
        url,
        status: 'verified',
        detail: url,
        versions: [1],
        payees: [],
        seen: {},
      })
    const statusOf = async () => (await findEndpoint(pool, { projectId, id }))?.verification.status
    await record('http://api.example.com/a')
    expect(await statusOf()).toBe('pending')
    await record('https://api.example.com/a')
    expect(await statusOf()).toBe('verified')
  })

  test.each(['\0', '\ud800'])(
    'an endpoint is verified even if its 402 response and its OpenAPI document contain the text %j, which PostgreSQL cannot store',
    async (text) => {
      const projectId = await newProject(pool)
      const id = await newEndpoint(projectId)
      const url = 'https://api.example.com/a'
      const openApiUrl = `${url}/openapi.json`
      await updateEndpoint(pool, keyring, { projectId, id, change: { openApiUrl } })
      const bazaar = {
        info: { input: { type: 'http', method: 'GET', headers: { [text]: 'a' } } },
        schema: { type: 'object' },
      }
      const challenge = JSON.stringify({ resource: { tags: ['tides'] }, extensions: { bazaar } })
      const seen = readSeen(Buffer.from(challenge).toString('base64'))
      const verdict = { status: 'verified', detail: '', versions: [2], payees: [] } as const
      const checkedAt = (await recordVerification(pool, { id, url, ...verdict, seen }))!
      const parameters = [{ in: 'query', name: 'city', schema: { type: 'string', enum: [text] } }]
      const openApi = { openapi: '3.1.0', paths: { '/a': { get: { parameters } } } }
      const read = readOpenApi(JSON.stringify(openApi), url)
      const found = { fault: null, metadata: {}, ...read }
      await recordOpenApi(pool, { id, url: openApiUrl, checkedAt, ...found })
      expect(await findEndpoint(pool, { projectId, id })).toMatchObject({
        verification: { status: 'verified' },
        seen: { tags: ['tides'] },
        openApi: {
          ...{ status: 'failed', detail: 'the document holds a null character or broken Unicode' },
          metadata: {},
        },
      })
    },
  )

  test('the payment totals of an endpoint count only settled payments', async () => {
    const projectId = await newProject(pool)
    const endpointId = await newEndpoint(projectId)
    await newSettled(pool, { projectId, endpointId })
    await newPayment(pool, { projectId, endpointId })
    await newSettled(pool, { projectId })
    expect(await endpointTotals(pool, [endpointId])).toEqual(
      new Map([[endpointId, { callCount: 1, revenueAtomic: 10_000n }]]),
    )
  })
})
