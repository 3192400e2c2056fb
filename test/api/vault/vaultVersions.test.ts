import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Agent, startTestService, type TestService } from '../../support/service.ts'
import { vaultPath as path } from '../../support/vault/vault.ts'

let service: TestService
let agent: Agent
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
  agent = await service.newAgent()
})
afterAll(() => service[Symbol.asyncDispose]())

const store = (owner: Agent, name: string, n: number, more = {}) =>
  owner.put(path(name), {
    type: 'LOGIN',
    data: { password: `password ${n}` },
    metadata: { username: `user ${n}` },
    ...more,
  })
const numbers = async (owner: Agent, name: string): Promise<number[]> =>
  (await owner.get(path(name, '/versions'))).body.versions.map((item: any) => item.version)

test('an overwritten credential keeps its last ten versions', async () => {
  for (let n = 1; n <= 13; n++) expect((await store(agent, 'ten', n)).body.version).toBe(n)
  const { body } = await agent.get(path('ten', '/versions'))
  expect(body.count).toBe(10)
  expect(body.versions.map((item: any) => item.version)).toEqual([13, 12, 11, 10, 9, 8, 7, 6, 5, 4])
  expect(body.versions[0]).toEqual({
    version: 13,
    type: 'LOGIN',
    metadata: { username: 'user 13' },
    expiresAt: null,
    createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
    current: true,
  })
  expect(body.versions.map((item: any) => item.current)).toEqual([true, ...Array(9).fill(false)])
  for (const n of [4, 13]) {
    const got = await agent.get(path('ten', `/versions/${n}`))
    expect(got.body).toMatchObject({
      name: 'ten',
      version: n,
      data: { password: `password ${n}` },
      metadata: { username: `user ${n}` },
      hasTOTP: false,
      current: n === 13,
    })
  }
  const { rows } = await service.database.pool.query(
    `select count(*)::int as n from credential_versions v join credentials c on c.row = v.credential_row
     where c.name = 'ten'`,
  )
  expect(rows[0].n).toBe(10)
  for (const n of [3, 14, 999999999]) {
    for (const answer of [
      await agent.get(path('ten', `/versions/${n}`)),
      await agent.post(path('ten', `/versions/${n}/restore`)),
    ]) {
      expect([answer.status, answer.body.message]).toEqual([404, 'Version not found'])
    }
  }
})

test('the version number of a credential is a whole number of at least 1', async () => {
  await store(agent, 'numbered', 1)
  for (const n of ['0', '-1', '1.0', '01', 'x', '1e0', '9999999999', '%20']) {
    for (const answer of [
      await agent.get(path('numbered', `/versions/${n}`)),
      await agent.post(path('numbered', `/versions/${n}/restore`)),
    ]) {
      expect([n, answer.status, answer.body.message]).toEqual([
        n,
        400,
        'version must be a whole number of at least 1',
      ])
    }
  }
  for (const rest of ['/versions', '/versions/1']) {
    expect((await agent.get(path('absent', rest))).status).toBe(404)
  }
  expect((await agent.post(path('absent', '/versions/1/restore'))).status).toBe(404)
})

test('a restore copies an old version of a credential into a new version', async () => {
  const first = await store(agent, 'restored', 1, { expiresAt: '2099-01-01T00:00:00Z' })
  await agent.put(path('restored'), { type: 'CUSTOM', data: { other: 1 } })
  const restored = await agent.post(path('restored', '/versions/1/restore'))
  expect(restored.status).toBe(200)
  expect(restored.body).toEqual({ ...first.body, version: 3 })
  expect((await agent.get(path('restored'))).body).toMatchObject({
    type: 'LOGIN',
    version: 3,
    data: { password: 'password 1' },
    metadata: { username: 'user 1' },
    expiresAt: '2099-01-01T00:00:00.000Z',
    lastRotatedAt: expect.any(String),
  })
  expect(await numbers(agent, 'restored')).toEqual([3, 2, 1])
})

test('the old versions of an expired credential cannot be read', async () => {
  const past = { expiresAt: '2020-01-01T00:00:00Z' }
  await store(agent, 'over', 1, past)
  await store(agent, 'over', 2)
  const expired = { error: 'expired', status: 410 }
  for (const answer of [
    await agent.get(path('over', '/versions/1')),
    await agent.post(path('over', '/versions/1/restore')),
  ]) {
    expect(answer.body).toEqual({
      ...expired,
      message: 'Version 1 of credential "over" has expired (2020-01-01T00:00:00.000Z)',
    })
  }
  await store(agent, 'over', 3, past)
  expect((await agent.get(path('over', '/versions/2'))).body).toMatchObject(expired)
  // The service may restore an expired credential, because a restore stores a new version.
  expect((await agent.post(path('over', '/versions/2/restore'))).body.version).toBe(4)
  expect((await agent.get(path('over'))).body.data).toEqual({ password: 'password 2' })
})

test('a restore of an old version does not bring back used backup codes', async () => {
  const data = { password: 'p', backupCodes: ['a', 'b', 'c'] }
  await agent.put(path('spent'), { type: 'LOGIN', data })
  await agent.put(path('spent'), { type: 'LOGIN', data: { ...data, password: 'q' } })
  await agent.post(path('spent', '/totp/backup'))
  await agent.post(path('spent', '/versions/1/restore'))
  expect((await agent.get(path('spent'))).body.data).toEqual({
    password: 'p',
    backupCodes: ['b', 'c'],
    usedBackupCodes: ['a'],
  })
})

test('a restore of an old version does not bring back backup codes that were used in a later version', async () => {
  const data = { password: 'p', backupCodes: ['a', 'b', 'c'] }
  await agent.put(path('between'), { type: 'LOGIN', data })
  await agent.put(path('between'), { type: 'LOGIN', data: { ...data, password: 'q' } })
  await agent.post(path('between', '/totp/backup'))
  await store(agent, 'between', 3)
  await agent.post(path('between', '/versions/1/restore'))
  expect((await agent.get(path('between'))).body.data).toEqual({
    password: 'p',
    backupCodes: ['b', 'c'],
    usedBackupCodes: ['a'],
  })
})

test('concurrent writers of a credential get version numbers without gaps or repeats, each with the content that its writer sent', async () => {
  const owner = await service.newAgent()
  const answers = await Promise.all(Array.from({ length: 40 }, (_, n) => store(owner, 'crowd', n)))
  const versions = answers.map(({ status, body }) => (status === 200 ? body.version : status))
  expect(versions.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 40 }, (_, n) => n + 1))
  expect(new Set(answers.map(({ body }) => body.credentialId)).size).toBe(1)
  expect(await numbers(owner, 'crowd')).toEqual([40, 39, 38, 37, 36, 35, 34, 33, 32, 31])
  for (const [n, { body }] of answers.entries()) {
    if (body.version <= 30) continue
    const got = await owner.get(path('crowd', `/versions/${body.version}`))
    expect(got.body.data).toEqual({ password: `password ${n}` })
  }
})

test('concurrent restores and overwrites of a credential store only complete contents that a caller wrote', async () => {
  const owner = await service.newAgent()
  await store(owner, 'mixed', 0)
  const calls = Array.from({ length: 30 }, (_, n) =>
    n % 2 === 0
      ? store(owner, 'mixed', n)
      : owner.post(path('mixed', `/versions/${1 + (n % 5)}/restore`)),
  )
  const answers = await Promise.all(calls)
  for (const { status } of answers) expect([200, 404]).toContain(status)
  const written = answers.filter(({ status }) => status === 200).map(({ body }) => body.version)
  expect(written.toSorted((a, b) => a - b)).toEqual(written.map((_, n) => n + 2))
  for (const n of await numbers(owner, 'mixed')) {
    const { body } = await owner.get(path('mixed', `/versions/${n}`))
    expect(body.data.password.slice('password'.length)).toBe(body.metadata.username.slice(4))
  }
})

test('after concurrent deletions and writes, a credential is either complete or absent, and no version of a deleted credential remains', async () => {
  const owner = await service.newAgent()
  const answers = await Promise.all(
    Array.from({ length: 90 }, (_, n) =>
      n % 3 === 0
        ? owner.delete(path('here'))
        : n % 3 === 1
          ? store(owner, 'here', n)
          : owner.get(path('here')),
    ),
  )
  for (const [n, { status, body }] of answers.entries()) {
    expect([n % 3, status]).toEqual([
      n % 3,
      status === 404 && n % 3 !== 1 ? 404 : n % 3 === 0 ? 204 : 200,
    ])
    if (status === 200 && n % 3 === 2) {
      expect(body.data.password.slice('password'.length)).toBe(body.metadata.username.slice(4))
    }
  }
  await owner.delete(path('here'))
  const { rows } = await service.database.pool.query(
    `select (select count(*)::int from credentials where project_id = $1) as credentials,
            (select count(*)::int from credential_versions v
             where not exists (select from credentials c where c.row = v.credential_row)) as orphans`,
    [owner.project.id],
  )
  expect(rows[0]).toEqual({ credentials: 0, orphans: 0 })
})

test('a credential stored again after its deletion starts at version 1', async () => {
  const before = (await store(agent, 'anew', 1)).body
  await store(agent, 'anew', 2)
  await agent.delete(path('anew'))
  const after = (await store(agent, 'anew', 3)).body
  expect(after.credentialId).not.toBe(before.credentialId)
  expect(after.version).toBe(1)
  expect(await numbers(agent, 'anew')).toEqual([1])
})

test('a credential row that was copied or changed in the database cannot be decrypted, but a new version can still be stored', async () => {
  const [owner, thief] = [await service.newAgent(), await service.newAgent()]
  const { pool } = service.database
  await store(owner, 'prize', 1)
  await store(thief, 'prize', 2)
  await store(thief, 'other', 3)
  const steal = `update credential_versions v
    set key_id = s.key_id, wrapped_key = s.wrapped_key, ciphertext = s.ciphertext
    from credential_versions s join credentials sc on sc.row = s.credential_row, credentials c
    where c.row = v.credential_row and c.project_id = $1 and c.name = $2 and sc.project_id = $3 and sc.name = $4`
  for (const [name, from, fromName] of [
    ['prize', owner, 'prize'],
    ['other', thief, 'prize'],
  ] as const) {
    const { rowCount } = await pool.query(steal, [
      thief.project.id,
      name,
      from.project.id,
      fromName,
    ])
    expect(rowCount).toBe(1)
    const use = { request: { url: 'https://api.example/' } }
    for (const [action, detail, read] of [
      ['vault.get', null, () => thief.get(path(name))],
      ['vault.use', 'GET api.example/', () => thief.post(path(name, '/use'), use)],
      ['vault.restore', 'version 1', () => thief.post(path(name, '/versions/1/restore'))],
      ['vault.backup_code', null, () => thief.post(path(name, '/totp/backup'))],
    ] as const) {
      const { status, body } = await read()
      expect([action, status, body.error]).toEqual([action, 500, 'internal_error'])
      expect(body.message).toMatch(/^Something went wrong \(request req_[0-9a-f]{24}\)$/)
      const { logs } = (await thief.get(`/v0/logs?subject=${name}&action=${action}`)).body
      expect(logs).toMatchObject([{ action, description: detail, outcome: 'failed' }])
    }
    expect((await store(thief, name, 4)).body.version).toBe(2)
    expect((await thief.get(path(name))).body.data).toEqual({ password: 'password 4' })
  }
  await pool.query('update credentials set name = $1 where project_id = $2', [
    'renamed',
    owner.project.id,
  ])
  expect((await owner.get(path('renamed'))).status).toBe(500)
})
