import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Secret } from 'otpauth'
import { type Agent, startTestService, type TestService } from '../../support/service.ts'
import { totpByTheBook } from '../../support/vault/hotp.ts'
import { vaultPath as path } from '../../support/vault/vault.ts'

let service: TestService
let agent: Agent
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
  agent = await service.newAgent()
})
afterAll(() => service[Symbol.asyncDispose]())

const MARKER = '[use /v0/vault/:name/totp]'
const SECRET = 'JBSWY3DPEHPK3PXP'
const key = Secret.fromBase32(SECRET).bytes

/** Returns the TOTP codes that are valid during the call, because a new TOTP period can begin while the call runs. */
async function codes(name: string, options = {}) {
  const before = totpByTheBook(key, Date.now(), options)
  const { status, body } = await agent.get(path(name, '/totp'))
  expect(status).toBe(200)
  return { body, allowed: [before, totpByTheBook(key, Date.now(), options)] }
}

test('a TOTP credential shows its current code, but never its secret', async () => {
  const data = { secret: 'jbsw y3dp ehpk 3pxp', note: 'x', backupCodes: ['b1', 'b2'] }
  await agent.put(path('totp'), { type: 'TOTP', data, metadata: { issuer: 'ACME' } })
  const got = await agent.get(path('totp'))
  expect(got.body).toMatchObject({
    hasTOTP: true,
    data: { secret: MARKER, note: 'x', backupCodes: ['b1', 'b2'] },
  })
  expect((await agent.get(path('totp', '/versions/1'))).body).toMatchObject({
    hasTOTP: true,
    data: { secret: MARKER, note: 'x' },
  })
  const { body, allowed } = await codes('totp')
  expect(allowed).toContain(body.code)
  expect(body).toEqual({
    code: expect.stringMatching(/^\d{6}$/),
    remaining: expect.any(Number),
    backupCodesRemaining: 2,
  })
  expect(body.remaining).toBeWithin(1, 31)
  const [item] = (await agent.get('/v0/vault')).body.credentials
  expect(item).not.toHaveProperty('hasTOTP')
  expect(item).not.toHaveProperty('data')
})

test('a credential of any type can have a field totp, which holds an otpauth URI with its own parameters', async () => {
  const totp = `otpauth://totp/ACME:ada?secret=${SECRET}&digits=8&period=60&algorithm=SHA512`
  await agent.put(path('login'), { type: 'LOGIN', data: { password: 'p', totp } })
  const got = await agent.get(path('login'))
  expect(got.body).toMatchObject({ hasTOTP: true, data: { password: 'p', totp: MARKER } })
  const { body, allowed } = await codes('login', { algorithm: 'sha512', digits: 8, periodS: 60 })
  expect(allowed).toContain(body.code)
  expect(body.backupCodesRemaining).toBe(0)
})

test('a field data.secret is an ordinary field in a credential that is not of type TOTP', async () => {
  await agent.put(path('pair'), { type: 'API_KEY', data: { clientId: 'a', secret: SECRET } })
  expect((await agent.get(path('pair'))).body).toMatchObject({
    hasTOTP: false,
    data: { clientId: 'a', secret: SECRET },
  })
  const { status, body } = await agent.get(path('pair', '/totp'))
  expect([status, body]).toEqual([
    400,
    { error: 'bad_request', message: 'No TOTP secret found on this credential', status: 400 },
  ])
})

test('the service refuses to store the placeholder that it shows for a hidden TOTP secret', async () => {
  await agent.put(path('back'), { type: 'TOTP', data: { secret: SECRET } })
  const { data } = (await agent.get(path('back'))).body
  expect((await agent.put(path('back'), { type: 'TOTP', data })).status).toBe(400)
  const { body, allowed } = await codes('back')
  expect(allowed).toContain(body.code)
})

test('only the operations get, totp and backup of a credential change its time lastUsedAt', async () => {
  const owner = await service.newAgent()
  const lastUsedAt = async () => (await owner.get('/v0/vault')).body.credentials[0].lastUsedAt
  const data = { secret: SECRET, backupCodes: ['a'] }
  await owner.put(path('used'), { type: 'TOTP', data })
  await owner.get(path('used', '/versions'))
  await owner.get(path('used', '/versions/1'))
  expect(await lastUsedAt()).toBeNull()
  let before = 0
  for (const call of [
    () => owner.get(path('used')),
    () => owner.get(path('used', '/totp')),
    () => owner.post(path('used', '/totp/backup')),
  ]) {
    // The test waits for the next millisecond, because lastUsedAt has a precision of milliseconds.
    while (Date.now() <= before + 1) await Bun.sleep(1)
    expect((await call()).status).toBe(200)
    const after = Date.parse(await lastUsedAt())
    expect(after).toBeGreaterThan(before)
    before = after
  }
  expect((await owner.post(path('used', '/totp/backup'))).status).toBe(400)
  expect(Date.parse(await lastUsedAt())).toBe(before)
})

test('backup codes move one by one from unused to used, without a change of the credential’s version or rotation time', async () => {
  await agent.put(path('codes'), {
    type: 'LOGIN',
    data: { password: 'p', backupCodes: ['a-1', 'b 2', 'ü3'], usedBackupCodes: ['z'] },
  })
  const pop = () => agent.post(path('codes', '/totp/backup'))
  expect((await pop()).body).toEqual({ code: 'a-1', remaining: 2 })
  expect((await pop()).body).toEqual({ code: 'b 2', remaining: 1 })
  expect((await agent.get(path('codes'))).body).toMatchObject({
    version: 1,
    lastRotatedAt: null,
    data: { password: 'p', backupCodes: ['ü3'], usedBackupCodes: ['z', 'a-1', 'b 2'] },
  })
  expect((await pop()).body).toEqual({ code: 'ü3', remaining: 0 })
  const { status, body } = await pop()
  expect([status, body]).toEqual([
    400,
    { error: 'bad_request', message: 'No unused backup codes remaining', status: 400 },
  ])
  await agent.put(path('none'), { type: 'LOGIN', data: { password: 'p' } })
  expect((await agent.post(path('none', '/totp/backup'))).body.message).toBe(
    'No unused backup codes remaining',
  )
  expect((await agent.post(path('absent', '/totp/backup'))).body.message).toBe(
    'Credential not found',
  )
})

/** Takes a backup code. If the busy service responds with 503, sends the request again. */
async function takeCode(name: string) {
  for (;;) {
    const answer = await agent.post(path(name, '/totp/backup'))
    if (answer.status !== 503) return answer
  }
}

test('in 100 concurrent requests for 10 backup codes, each code is returned once and 90 requests are refused', async () => {
  const backupCodes = Array.from({ length: 10 }, (_, n) => `code-${n}`)
  await agent.put(path('race'), { type: 'TOTP', data: { secret: SECRET, backupCodes } })
  const answers = await Promise.all(Array.from({ length: 100 }, () => takeCode('race')))
  const given = answers.filter(({ status }) => status === 200).map(({ body }) => body)
  expect(given.map(({ code }) => code).toSorted()).toEqual(backupCodes)
  expect(given.map(({ remaining }) => remaining).toSorted()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  const refused = answers.filter(({ status }) => status !== 200)
  expect(refused).toHaveLength(90)
  for (const { status, body } of refused) {
    expect([status, body.message]).toEqual([400, 'No unused backup codes remaining'])
  }
  const { data } = (await agent.get(path('race'))).body
  expect(data.backupCodes).toEqual([])
  expect(data.usedBackupCodes.toSorted()).toEqual(backupCodes)
})

test('concurrent overwrites of a credential never make the service return one backup code twice', async () => {
  const list = (n: number) => Array.from({ length: 5 }, (_, m) => `${n}-${m}`)
  const put = (n: number) =>
    agent.put(path('busy'), { type: 'LOGIN', data: { password: `p${n}`, backupCodes: list(n) } })
  await put(0)
  const popped: string[] = []
  await Promise.all([
    ...Array.from({ length: 40 }, async () => {
      const { status, body } = await takeCode('busy')
      expect([200, 400]).toContain(status)
      if (status === 200) popped.push(body.code)
    }),
    ...[1, 2, 3, 4, 5, 6].map(async (n) => expect((await put(n)).status).toBe(200)),
  ])
  expect(new Set(popped).size).toBe(popped.length)
  const { data, version } = (await agent.get(path('busy'))).body
  expect(version).toBe(7)
  const n = Number(data.password.slice(1))
  expect([...(data.usedBackupCodes ?? []), ...data.backupCodes].toSorted()).toEqual(list(n))
  for (const code of data.usedBackupCodes ?? []) expect(popped).toContain(code)
  for (const code of data.backupCodes) expect(popped).not.toContain(code)
})
