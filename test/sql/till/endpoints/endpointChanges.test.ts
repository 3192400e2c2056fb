/** Tests how each field of a change affects an endpoint, its webhook and its checks. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createDelivery } from '../../../../sql/events/deliveries.ts'
import { openWebhookSecret, storedSecret } from '../../../../sql/events/webhookSecrets.ts'
import {
  deleteEndpoint,
  deleteEndpointsOfProject,
  ENDPOINTS_MAX,
  type EndpointChange,
  putEndpoint,
  rotateWebhookSecret,
  SecretWithoutWebhookError,
  TooManyEndpointsError,
  updateEndpoint,
} from '../../../../sql/till/endpoints/endpointChanges.ts'
import { findEndpoint } from '../../../../sql/till/endpoints/endpoints.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { HOOK, KEYRING } from '../../../support/events/eventRows.ts'
import { dropJobs, newProject, row } from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const DOCUMENT = 'https://api.example/openapi.json'

const put = async (
  projectId: string,
  { path = 'a', ...change }: EndpointChange & { path?: string } = {},
) => {
  const matchKey = `api.example/${path}`
  const basis = { urlPattern: `https://${matchKey}`, priceAtomic: 10_000n, network: 'base-sepolia' }
  return (await putEndpoint(pool, KEYRING, { projectId, matchKey, ...basis, ...change }))!
}

/**
 * Makes a paid endpoint of a new project. The function `change` changes the endpoint, and `stored` reads its database
 * row.
 */
async function newEndpoint(first: EndpointChange = {}) {
  const projectId = await newProject(pool)
  const { endpoint, newSecret } = await put(projectId, first)
  const target = { projectId, id: endpoint.id }
  return {
    ...target,
    endpoint,
    newSecret,
    change: async (change: EndpointChange) =>
      (await updateEndpoint(pool, KEYRING, { ...target, change }))!,
    rotate: () => rotateWebhookSecret(pool, KEYRING, target),
    stored: () => row(pool, 'seller_endpoints', endpoint.id),
    async secret() {
      const secret = storedSecret(await row(pool, 'seller_endpoints', endpoint.id))
      return secret === null ? null : openWebhookSecret(KEYRING, { ...target, secret })
    },
  }
}

const checks = async (endpointId: string) => {
  const { rows } = await pool.query('select from graphile_worker.jobs where key = $1', [
    `verify_endpoint:${endpointId}`,
  ])
  return rows.length
}

describe('a PUT creates an endpoint, or changes the project’s endpoint with the same URL', () => {
  test('a PUT of an endpoint creates the endpoint with the given fields and queues its check', async () => {
    const metadata = { summary: 'Tides' } as NonNullable<EndpointChange['metadata']>
    const made = await put(await newProject(pool), {
      description: 'Tide tables',
      discoverable: false,
      openApiUrl: DOCUMENT,
      metadata,
    })
    expect(made.created).toBe(true)
    expect(made.endpoint).toMatchObject({
      urlPattern: 'https://api.example/a',
      priceAtomic: 10_000n,
      network: 'base-sepolia',
      description: 'Tide tables',
      webhookUrl: null,
      discoverable: false,
      isPaused: false,
      metadata,
      openApi: { url: DOCUMENT, status: 'pending', detail: null, metadata: {} },
    })
    expect(made.newSecret).toBeNull()
    expect(await checks(made.endpoint.id)).toBe(1)
  })

  test('a PUT of the URL of an existing endpoint changes the given fields and keeps the other fields', async () => {
    const { projectId, id } = await newEndpoint({ description: 'Tides', webhookUrl: HOOK })
    await dropJobs(pool)
    const again = await put(projectId, { priceAtomic: 5n, network: 'base' })
    expect(again).toMatchObject({ created: false, newSecret: null })
    expect(again.endpoint).toMatchObject({
      ...{ id, priceAtomic: 5n, network: 'base', description: 'Tides', webhookUrl: HOOK },
    })
    expect(await checks(id)).toBe(1)
  })

  test('a PUT of a URL that is also an endpoint of another project creates a separate endpoint', async () => {
    const other = await newEndpoint()
    const { created, endpoint } = await put(await newProject(pool), { priceAtomic: 7n })
    expect(created).toBe(true)
    expect(endpoint.id).not.toBe(other.id)
    expect((await findEndpoint(pool, other))?.priceAtomic).toBe(10_000n)
  })

  test('a PUT of the URL of a deleted endpoint creates a new endpoint', async () => {
    const { projectId, id } = await newEndpoint()
    await deleteEndpoint(pool, { projectId, id })
    const { created, endpoint } = await put(projectId)
    expect([created, endpoint.id === id]).toEqual([true, false])
  })

  test('a project with the maximum number of endpoints can PUT an existing endpoint, but not a new one', async () => {
    const { projectId, id } = await newEndpoint()
    await pool.query(
      `insert into seller_endpoints (id, project_id, url_pattern, match_key, price_atomic, network)
       select $1 || n, $1, 'http://b.example/' || n, 'b.example/' || n, 1, 'base-sepolia'
       from generate_series(2, $2::int) n`,
      [projectId, ENDPOINTS_MAX],
    )
    expect((await put(projectId)).endpoint.id).toBe(id)
    await expect(put(projectId, { path: 'b' })).rejects.toBeInstanceOf(TooManyEndpointsError)
  })

  test('a PUT of an endpoint with a webhook secret but without a webhook stores nothing', async () => {
    const projectId = await newProject(pool)
    const refused = put(projectId, { webhookSecret: 'a-secret-of-my-own' })
    await expect(refused).rejects.toBeInstanceOf(SecretWithoutWebhookError)
    expect((await put(projectId)).created).toBe(true)
  })
})

describe('a change of an endpoint replaces only the fields that the request names', () => {
  test('a change of an endpoint with no fields changes nothing', async () => {
    const { change, endpoint, stored } = await newEndpoint({
      ...{ description: 'Tides', webhookUrl: HOOK, discoverable: false, openApiUrl: DOCUMENT },
    })
    const before = await stored()
    expect((await change({})).endpoint).toEqual(endpoint)
    expect(await stored()).toEqual(before)
  })

  test('if a request names fields of an endpoint, all these fields of the endpoint are changed', async () => {
    const { change } = await newEndpoint({ description: 'Tides' })
    const given = {
      urlPattern: 'https://api.example/a?x',
      priceAtomic: 9_223_372_036_854_775_807n,
      network: 'base',
      description: 'Ebb',
      discoverable: false,
    }
    expect((await change(given)).endpoint).toMatchObject(given)
    const { endpoint } = await change({ description: null, discoverable: true })
    expect(endpoint).toMatchObject({ ...given, description: null, discoverable: true })
  })

  test('a change can pause an endpoint, keeps the time of the first pause, and can end the pause', async () => {
    const { change, stored } = await newEndpoint()
    expect((await change({ active: false })).endpoint.isPaused).toBe(true)
    await pool.query(
      `update seller_endpoints set paused_at = '2026-01-01T00:00:00Z' where id = $1`,
      [(await stored()).id],
    )
    await change({ active: false })
    expect((await change({ priceAtomic: 1n })).endpoint.isPaused).toBe(true)
    expect((await stored()).paused_at).toEqual(new Date('2026-01-01T00:00:00Z'))
    expect((await change({ active: true })).endpoint.isPaused).toBe(false)
  })

  test('a change can replace or remove single metadata fields, and drops the metadata that the endpoint’s server reported before', async () => {
    const [one, two] = [
      { summary: 'a', tags: ['x'] },
      { summary: null, name: 'b' },
    ] as unknown as [
      NonNullable<EndpointChange['metadata']>,
      NonNullable<EndpointChange['metadata']>,
    ]
    const { change, id } = await newEndpoint({ metadata: one })
    const see = () =>
      pool.query(`update seller_endpoints set seen_metadata = '{"name":"seen"}' where id = $1`, [
        id,
      ])
    await see()
    await dropJobs(pool)
    expect((await change({ priceAtomic: 1n })).endpoint.seen as object).toEqual({ name: 'seen' })
    expect(await checks(id)).toBe(0)
    const { endpoint } = await change({ metadata: two })
    expect(endpoint.metadata as object).toEqual({ tags: ['x'], name: 'b' })
    expect(endpoint.seen).toEqual({})
    // A check must read again the data that the server of the endpoint reports, because otherwise the public list would
    // never show this data again.
    expect(await checks(id)).toBe(1)
    await see()
    await dropJobs(pool)
    expect((await change({ openApiUrl: null })).endpoint.seen).toEqual({})
    expect(await checks(id)).toBe(1)
    await dropJobs(pool)
    await change({ metadata: two })
    expect(await checks(id)).toBe(0)
  })
})

describe('the metadata from an endpoint’s OpenAPI document are read again or dropped if the document’s URL changes', () => {
  const read = (id: string) =>
    pool.query(
      `update seller_endpoints set open_api_status = 'read', open_api_detail = 'as read',
         open_api_metadata = '{"name":"of the document"}' where id = $1`,
      [id],
    )

  test('if the same OpenAPI document is set again, the service reads it again, and keeps the old metadata until then', async () => {
    const { change, id } = await newEndpoint({ openApiUrl: DOCUMENT })
    await read(id)
    await dropJobs(pool)
    expect((await change({ priceAtomic: 1n })).endpoint.openApi).toMatchObject({
      ...{ status: 'read', detail: 'as read', metadata: { name: 'of the document' } },
    })
    expect(await checks(id)).toBe(0)
    expect((await change({ openApiUrl: DOCUMENT })).endpoint.openApi).toMatchObject({
      ...{ status: 'pending', detail: null, metadata: { name: 'of the document' } },
    })
    expect(await checks(id)).toBe(1)
  })

  test('if another OpenAPI document is set, the metadata of the old document are dropped', async () => {
    const { change, id } = await newEndpoint({ openApiUrl: DOCUMENT })
    await read(id)
    const url = 'https://api.example/other.json'
    const none = { status: 'pending', detail: null, metadata: {} } as const
    expect((await change({ openApiUrl: url })).endpoint.openApi).toEqual({ url, ...none })
  })

  test('if an OpenAPI document is removed, all data read from it are removed, and no check is queued', async () => {
    const { change, id, stored } = await newEndpoint({ openApiUrl: DOCUMENT })
    await read(id)
    await dropJobs(pool)
    expect((await change({ openApiUrl: null })).endpoint.openApi).toBeNull()
    expect(await stored()).toMatchObject({
      ...{
        open_api_url: null,
        open_api_status: null,
        open_api_detail: null,
        open_api_metadata: {},
      },
    })
    expect(await checks(id)).toBe(0)
  })
})

describe('the webhook of an endpoint keeps its secret until the seller replaces or removes the secret', () => {
  test('an endpoint’s webhook gets a secret with its first URL, and keeps this secret if the URL changes', async () => {
    const { change, secret } = await newEndpoint()
    expect(await secret()).toBeNull()
    const { newSecret } = await change({ webhookUrl: HOOK })
    expect(newSecret).toStartWith('whsec_')
    expect(await secret()).toBe(newSecret)
    const next = await change({ webhookUrl: `${HOOK}/next` })
    expect([next.endpoint.webhookUrl, next.newSecret]).toEqual([`${HOOK}/next`, null])
    expect(await secret()).toBe(newSecret)
  })

  test('an owner can set the secret of an endpoint’s webhook, together with its URL or later', async () => {
    const { change, secret, newSecret } = await newEndpoint({
      ...{ webhookUrl: HOOK, webhookSecret: 'a-secret-of-my-own' },
    })
    expect([newSecret, await secret()]).toEqual(['a-secret-of-my-own', 'a-secret-of-my-own'])
    expect((await change({ webhookSecret: 'another-secret' })).newSecret).toBe('another-secret')
    expect(await secret()).toBe('another-secret')
    const both = change({ webhookUrl: null, webhookSecret: 'a-third-secret' })
    await expect(both).rejects.toBeInstanceOf(SecretWithoutWebhookError)
    expect(await secret()).toBe('another-secret')
  })

  test('a rotation gives an endpoint’s webhook another secret, and the secret is removed together with the URL', async () => {
    const { change, rotate, secret, newSecret } = await newEndpoint({ webhookUrl: HOOK })
    const rotated = (await rotate())!.newSecret
    expect(rotated).not.toBe(newSecret)
    expect(await secret()).toBe(rotated)
    expect((await change({ webhookUrl: null })).endpoint.webhookUrl).toBeNull()
    expect(await secret()).toBeNull()
    await expect(rotate()).rejects.toBeInstanceOf(SecretWithoutWebhookError)
    expect(await rotateWebhookSecret(pool, KEYRING, { projectId: 'prj_none', id: 'x' })).toBeNull()
  })

  test('an endpoint’s webhook keeps a plain-text secret from an older release until a new secret replaces it', async () => {
    const { change, rotate, stored, secret, id } = await newEndpoint({ webhookUrl: HOOK })
    await pool.query(
      `update seller_endpoints set webhook_secret = 'whsec_old', webhook_key_id = null,
         webhook_wrapped_key = null, webhook_ciphertext = null where id = $1`,
      [id],
    )
    expect((await change({ priceAtomic: 1n })).newSecret).toBeNull()
    expect(await secret()).toBe('whsec_old')
    expect(await secret()).not.toBe((await rotate())!.newSecret)
    expect((await stored()).webhook_secret).toBeNull()
  })
})

describe('the pending webhook deliveries of an endpoint are aborted when the webhook is removed', () => {
  const deliver = async ({ projectId, id }: { projectId: string; id: string }) => {
    const event = { subjectId: null, event: 'payment.received', url: HOOK, body: Buffer.from('{}') }
    return (await createDelivery(pool, { projectId, to: { endpointId: id }, ...event })).id
  }
  const stateOf = async (id: string) => {
    const { status, error } = await row(pool, 'webhook_deliveries', id)
    return error ?? status
  }

  test('pending webhook deliveries are aborted if the webhook URL, the endpoint or the project is removed', async () => {
    const made = await newEndpoint({ webhookUrl: HOOK })
    const kept = await newEndpoint({ webhookUrl: HOOK })
    const keptId = await deliver(kept)
    const first = await deliver(made)
    await made.change({ webhookUrl: `${HOOK}/next`, priceAtomic: 1n })
    expect(await stateOf(first)).toBe('pending')
    await made.change({ webhookUrl: null })
    expect(await stateOf(first)).toBe('the webhook URL was removed')
    await made.change({ webhookUrl: HOOK })
    const second = await deliver(made)
    await deleteEndpoint(pool, made)
    expect(await stateOf(second)).toBe('the endpoint was deleted')
    expect(await stateOf(first)).toBe('the webhook URL was removed')
    expect(await made.secret()).toBeNull()
    const { endpoint } = await put(made.projectId, { webhookUrl: HOOK })
    const third = await deliver({ projectId: made.projectId, id: endpoint.id })
    await deleteEndpointsOfProject(pool, made.projectId)
    expect(await stateOf(third)).toBe('the project was deleted')
    expect(storedSecret(await row(pool, 'seller_endpoints', endpoint.id))).toBeNull()
    expect(await stateOf(keptId)).toBe('pending')
    expect(await findEndpoint(pool, kept)).not.toBeNull()
  })

  test('pending webhook deliveries continue if another project tries to delete the endpoint', async () => {
    const made = await newEndpoint({ webhookUrl: HOOK })
    const id = await deliver(made)
    expect(await deleteEndpoint(pool, { projectId: await newProject(pool), id: made.id })).toBe(
      false,
    )
    expect(await stateOf(id)).toBe('pending')
  })
})
