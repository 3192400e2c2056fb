import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Agent, startTestService, type TestService } from '../../support/service.ts'
import { vaultPath as path } from '../../support/vault/vault.ts'
import '../../support/long.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
})
afterAll(() => service[Symbol.asyncDispose]())

/**
 * Copies a stored credential to several new names. The copies cannot be decrypted, but listing credentials does not
 * read the ciphertext.
 */
async function fill(owner: Agent, count: number, metadata = {}, bounds = {}): Promise<void> {
  await owner.put(path('first'), { type: 'CUSTOM', data: { a: 1 }, metadata, ...bounds })
  await service.database.pool.query(
    `with made as (
       insert into credentials (id, project_id, name, version, created_at)
       select c.id || n, c.project_id, 'copy ' || n, 1, c.created_at from credentials c, generate_series(2, $2::int) n
       where c.project_id = $1 returning row)
     insert into credential_versions
     select m.row, v.version, v.type, v.metadata, v.metadata_bytes, v.expires_at, v.has_totp, v.key_id, v.wrapped_key,
            v.ciphertext, v.created_at, v.allowed_hosts, v.allowed_methods, v.allowed_paths, v.placement, v.bounds_bytes
     from made m, credential_versions v join credentials c on c.row = v.credential_row where c.project_id = $1`,
    [owner.project.id, count],
  )
}

async function readPages(owner: Agent, query: string) {
  const items: any[] = []
  const sizes: number[] = []
  let token: string | undefined
  do {
    const page = token === undefined ? '' : `&pageToken=${encodeURIComponent(token)}`
    const { status, body } = await owner.get(`/v0/vault?${query}${page}`)
    expect(status).toBe(200)
    expect(body.count).toBe(body.credentials.length)
    items.push(...body.credentials)
    sizes.push(body.count)
    token = body.nextPageToken
  } while (token !== undefined)
  return { items, sizes }
}

test('the vault list shows each credential once in any number of pages, even if several were created in the same millisecond', async () => {
  const owner = await service.newAgent()
  await fill(owner, 250)
  const all = (await owner.get('/v0/vault')).body
  expect([all.count, all.credentials.length, all.nextPageToken]).toEqual([250, 250, undefined])
  const { items, sizes } = await readPages(owner, 'limit=30')
  expect(sizes).toEqual([...Array(8).fill(30), 10])
  expect(items).toEqual(all.credentials)
  expect(new Set(items.map((item) => item.name)).size).toBe(250)
  expect((await owner.get('/v0/vault?limit=500')).body.count).toBe(100)
  for (const query of ['limit=0', 'limit=x', 'pageToken=x']) {
    expect((await owner.get(`/v0/vault?${query}`)).status).toBe(400)
  }
})

test('a project has at most 10,000 credentials, and in a full vault a credential can still be overwritten', async () => {
  const owner = await service.newAgent()
  await fill(owner, 9_999)
  const store = (name: string) => owner.put(path(name), { type: 'CUSTOM', data: { a: 2 } })
  const answers = await Promise.all(['x', 'y', 'z'].map(store))
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 400, 400])
  expect(answers.find(({ status }) => status === 400)?.body.message).toBe(
    'A project must have at most 10000 credentials',
  )
  expect((await store('first')).body.version).toBe(2)
  expect((await owner.get('/v0/vault')).body.count).toBe(10_000)
  await owner.delete(path('copy 2'))
  expect((await store('new')).status).toBe(200)
})

test('a page of the vault list ends early if the metadata of its credentials reach the size limit, and then has a nextPageToken', async () => {
  const owner = await service.newAgent()
  await fill(owner, 1_200, { note: 'x'.repeat(16_000) })
  const { items, sizes } = await readPages(owner, '')
  expect(items).toHaveLength(1_200)
  expect(new Set(items.map((item) => item.credentialId)).size).toBe(1_200)
  expect(sizes.length).toBeGreaterThan(1)
  expect(Math.max(...sizes) * 16_000).toBeLessThan(9 * 1024 * 1024)
})

test('the filter expiringWithin finds credentials that are expired or expire soon, and lists the soonest first', async () => {
  const owner = await service.newAgent()
  const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()
  for (const [name, days] of [
    ['month', 30],
    ['six days', 6],
    ['tomorrow', 1],
    ['gone', -1],
    ['eight days', 8],
  ] as const) {
    await owner.put(path(name), { type: 'CUSTOM', data: { a: 1 }, expiresAt: inDays(days) })
  }
  await owner.put(path('never'), { type: 'CUSTOM', data: { a: 1 } })
  const names = async (within: string) =>
    (await owner.get(`/v0/vault?expiringWithin=${within}`)).body.credentials.map((c: any) => c.name)
  expect(await names('7d')).toEqual(['gone', 'tomorrow', 'six days'])
  expect(await names('1w')).toEqual(['gone', 'tomorrow', 'six days'])
  expect(await names('25h')).toEqual(['gone', 'tomorrow'])
  expect(await names('3600s')).toEqual(['gone'])
  expect(await names('365d')).toEqual(['gone', 'tomorrow', 'six days', 'eight days', 'month'])
  const { items, sizes } = await readPages(owner, 'expiringWithin=365d&limit=2')
  expect(sizes).toEqual([2, 2, 1])
  expect(items.map((item) => item.name)).toEqual(await names('365d'))
  for (const within of ['7', '', 'd', '7days', '-1d', '0d', '99999w']) {
    const { status, body } = await owner.get(`/v0/vault?expiringWithin=${within}`)
    expect([within, status, body.message]).toEqual([
      within,
      400,
      'expiringWithin must be a whole number and s, m, h, d or w, such as 7d, at most ten years',
    ])
  }
})

test('a page of the vault list without a limit ends after 8 MB, even if the bounds (allowed uses) of the credentials are large', async () => {
  const owner = await service.newAgent()
  const allowedPaths = Array.from({ length: 20 }, (_, n) => `/${n}${'a'.repeat(1_000)}`)
  await fill(owner, 500, {}, { allowedHosts: ['h.example'], allowedPaths })
  const { items, sizes } = await readPages(owner, '')
  expect(sizes).toHaveLength(2)
  expect(sizes[0]).toBeWithin(400, 425)
  expect(new Set(items.map((item) => item.name)).size).toBe(500)
  // A change of the bounds (where a credential may be used) must also change the stored size of the bounds.
  const { rows } = await service.database.pool.query(
    `select bounds_bytes as n from credential_versions v join credentials c on c.row = v.credential_row
     where c.project_id = $1 and c.name = 'first'`,
    [owner.project.id],
  )
  expect(rows[0].n).toBeWithin(20_000, 20_100)
  const changed = await owner.patch(path('first'), { allowedPaths: allowedPaths.slice(0, 1) })
  expect(changed.status).toBe(200)
  const after = await service.database.pool.query(
    `select bounds_bytes as n from credential_versions v join credentials c on c.row = v.credential_row
     where c.project_id = $1 and c.name = 'first'`,
    [owner.project.id],
  )
  expect(after.rows[0].n).toBeWithin(1_000, 1_100)
})
