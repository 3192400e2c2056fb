import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { randomUUID } from 'node:crypto'
import type { Reveal } from '../../../shared/vault/bounds/allowedHosts.ts'
import { Keyring, masterKey } from '../../../shared/vault/envelope.ts'
import {
  CREDENTIALS_MAX,
  deleteCredential,
  type GivenContent,
  isOtherData,
  isWithheld,
  refusal,
  type StoredCredential,
  storeCredential,
  TooManyCredentialsError,
} from '../../../sql/vault/credentials.ts'
import { listVersions, openData, readVersion } from '../../../sql/vault/credentialVersions.ts'
import { restoreVersion } from '../../../sql/vault/restoreVersion.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { newProject } from '../../support/till/tillRows.ts'

const keyring = new Keyring([masterKey('one', Buffer.alloc(32, 7))])
const otherKeyring = new Keyring([masterKey('two', Buffer.alloc(32, 8))])
const UNBOUNDED = {
  allowedHosts: null,
  allowedMethods: null,
  allowedPaths: null,
  placement: null,
}

let database: TestDatabase
let pool: TestDatabase['pool']
let projectId: string
let name: string
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  projectId = await newProject(pool)
})
beforeEach(() => {
  name = randomUUID()
})
afterAll(() => database[Symbol.asyncDispose]())

type Put = Partial<GivenContent> & { reveal?: Reveal; project?: string; keyring?: Keyring }

const actorOf = (project: string) => ({ projectId: project, keyPrefix: 'k', requestId: name })

function put(isOwner: boolean, { reveal, project = projectId, keyring: ring, ...given }: Put) {
  return storeCredential(pool, {
    actor: actorOf(project),
    keyring: ring ?? keyring,
    name,
    isOwner,
    ...(reveal === undefined ? {} : { reveal }),
    content: { type: 'API_KEY', data: { key: 'a' }, metadata: {}, expiresAt: null, ...given },
  })
}
async function stored(put: Promise<unknown>): Promise<StoredCredential> {
  const found = await put
  if (found === null || found === 'withheld') throw new Error(`not stored: ${found}`)
  return found as StoredCredential
}
const asAgent = (content: Put = {}) => put(false, content)
const asOwner = (content: Put = {}) => put(true, content)

/** Lists the outcomes of the audited actions on the credential, in order. */
async function audited(): Promise<string[]> {
  const { rows } = await pool.query<{ text: string }>(
    `select action || ' ' || outcome as text from audit_log where subject = $1 order by row`,
    [name],
  )
  return rows.map(({ text }) => text)
}
const versionsOf = async (project = projectId) =>
  (await listVersions(pool, { projectId: project, name }))?.map(({ version }) => version)

test('a new credential has version 1 and no limits on its use, was never used, and may be revealed to agents', async () => {
  const expiresAt = new Date('2030-01-02T03:04:05Z')
  expect(await stored(asAgent({ metadata: { service: 'é' }, expiresAt }))).toEqual({
    id: expect.stringMatching(/^cred_[0-9a-f]{24}$/),
    name,
    version: 1,
    type: 'API_KEY',
    metadata: { service: 'é' },
    expiresAt,
    lastUsedAt: null,
    lastRotatedAt: null,
    createdAt: expect.any(Date),
    ...UNBOUNDED,
    reveal: 'agent',
  })
  expect(await audited()).toEqual(['vault.put ok'])
})

test('the next version of a credential keeps its id and its creation time, and only the last ten versions are kept', async () => {
  const first = await stored(asAgent())
  let last = first
  for (let n = 0; n < 9; n++) last = await stored(asAgent())
  expect(last).toMatchObject({ id: first.id, version: 10, createdAt: first.createdAt })
  expect((await versionsOf())?.at(-1)).toBe(1)
  await asAgent()
  expect(await versionsOf()).toEqual([11, 10, 9, 8, 7, 6, 5, 4, 3, 2])
})

describe('the rotation time of a credential is set when its secret changes', () => {
  const rotatedAt = async (content: Put, store = asAgent) =>
    (await stored(store(content))).lastRotatedAt

  test('a new version of a credential sets the rotation time if its data differ, but not if only the order of the data differs', async () => {
    await asAgent({ data: { key: 'a', secret: 'b' } })
    expect(await rotatedAt({ data: { secret: 'b', key: 'a' } })).toBeNull()
    const time = await rotatedAt({ data: { key: 'a', secret: 'c' } })
    expect(time).toBeInstanceOf(Date)
    expect(await rotatedAt({ data: { key: 'a', secret: 'c' }, metadata: { x: 1 } })).toEqual(time)
  })

  test('a new credential version with the same data sets the rotation time if agents may not read the secret before or after the change', async () => {
    for (const [before, after] of [
      ['agent', 'owner'],
      ['owner', 'owner'],
      ['owner', 'agent'],
    ] as const) {
      name = randomUUID()
      expect(await rotatedAt({ reveal: before }, asOwner)).toBeNull()
      expect(await rotatedAt({ reveal: after }, asOwner)).toBeInstanceOf(Date)
    }
  })

  test('a new credential version is stored even if the old data cannot be decrypted, and the rotation time is then set', async () => {
    await asAgent({ keyring: otherKeyring })
    expect(await rotatedAt({})).toBeInstanceOf(Date)
    name = randomUUID()
    await asAgent()
    await pool.query(
      `update credential_versions set ciphertext = set_byte(ciphertext, 20, get_byte(ciphertext, 20) # 1)
       where credential_row = (select row from credentials where name = $1)`,
      [name],
    )
    expect(await rotatedAt({})).toBeInstanceOf(Date)
  })
})

test('if the master keyring fails, no new credential version is stored, and the credential stays unchanged', async () => {
  await asAgent()
  class AwayKeyring extends Keyring {
    override open(): never {
      throw new Error('the keyring is away')
    }
  }
  const away = new AwayKeyring([masterKey('one', Buffer.alloc(32, 7))])
  await expect(asAgent({ keyring: away })).rejects.toThrow('the keyring is away')
  expect(await versionsOf()).toEqual([1])
})

describe('an agent with an API key can narrow, but not widen, the limits that the owner set on a credential', () => {
  const ONE = { allowedHosts: ['one.example'] }
  const BOTH = { allowedHosts: ['one.example', 'two.example'] }

  test('an API key may set any limits of a credential if no owner has changed the limits, and absent limits get the default', async () => {
    expect(await stored(asAgent(ONE))).toMatchObject(ONE)
    expect(await stored(asAgent(BOTH))).toMatchObject(BOTH)
    expect(await stored(asAgent())).toMatchObject(UNBOUNDED)
  })

  test('an API key can narrow the credential limits that the owner set, but can never widen the limits, not even after narrowing', async () => {
    await asOwner(BOTH)
    expect(await stored(asAgent(ONE))).toMatchObject(ONE)
    expect(await asAgent(BOTH)).toBe('withheld')
    expect(await asAgent({ ...ONE, allowedHosts: null })).not.toBe('withheld')
    expect(await audited()).toEqual([
      'vault.put ok',
      'vault.put ok',
      'vault.put refused',
      'vault.put ok',
    ])
  })

  test('if the owner set no value for a limit of a credential, an API key leaves it without a value, even if the new type has another default', async () => {
    await asOwner({ ...ONE, allowedMethods: ['GET'] })
    expect(
      await stored(asAgent({ type: 'LOGIN', metadata: { uri: 'https://two.example' } })),
    ).toMatchObject({
      ...ONE,
      allowedMethods: ['GET'],
    })
  })

  test('an API key cannot widen a limit of a credential that only the owner can reveal, even if no owner has set the limits', async () => {
    await asAgent({ ...ONE, reveal: 'owner' })
    expect(await asAgent(BOTH)).toBe('withheld')
    expect(await stored(asAgent(ONE))).toMatchObject({ version: 2, reveal: 'owner', ...ONE })
  })

  test('an API key can withhold a credential from agents, and afterwards only the owner can reveal the credential again', async () => {
    await asAgent()
    expect(await stored(asAgent({ reveal: 'owner' }))).toMatchObject({ reveal: 'owner' })
    expect(await asAgent({ reveal: 'agent' })).toBe('withheld')
    expect(await stored(asAgent())).toMatchObject({ version: 3, reveal: 'owner' })
    expect(await stored(asOwner({ reveal: 'agent' }))).toMatchObject({ reveal: 'agent' })
    expect(await stored(asAgent({ reveal: 'agent' }))).toMatchObject({ version: 5 })
  })
})

test('the owner can widen the limits on the use of a credential, and absent limits get the default', async () => {
  await asOwner({ reveal: 'owner', allowedHosts: ['one.example'], allowedPaths: ['/a'] })
  const wider = await stored(asOwner({ allowedHosts: ['two.example'] }))
  expect(wider).toMatchObject({ ...UNBOUNDED, allowedHosts: ['two.example'], reveal: 'owner' })
})

test('no credential is created for a deleted or unknown project', async () => {
  const gone = await newProject(pool)
  await pool.query('update projects set deleted_at = now() where id = $1', [gone])
  for (const project of [gone, 'prj_none']) {
    expect([project, await asOwner({ project })]).toEqual([project, null])
  }
  expect(await audited()).toEqual([])
})

test('no new version of a credential can be stored after its project is deleted', async () => {
  const project = await newProject(pool)
  await stored(asOwner({ project }))
  await pool.query('update projects set deleted_at = now() where id = $1', [project])
  expect(await asOwner({ project })).toBeNull()
})

test('a project with the maximum number of credentials cannot create one more but can change its own, and projects count separately', async () => {
  const full = await newProject(pool)
  await pool.query(
    `insert into credentials (id, project_id, name) select 'full_' || n, $1, 'n' || n from generate_series(2, $2::int) n`,
    [full, CREDENTIALS_MAX],
  )
  expect(await stored(asAgent({ project: full }))).toMatchObject({ version: 1 })
  const last = name
  name = randomUUID()
  await expect(asAgent({ project: full })).rejects.toBeInstanceOf(TooManyCredentialsError)
  expect(await stored(asAgent())).toMatchObject({ version: 1 })
  name = last
  expect(await stored(asAgent({ project: full }))).toMatchObject({ version: 2 })
  await pool.query('delete from credentials where project_id = $1', [full])
})

test('if five concurrent requests create a credential with the same name, the credential gets the versions 1 to 5', async () => {
  const made = await Promise.all([1, 2, 3, 4, 5].map((n) => stored(asAgent({ data: { n } }))))
  expect(made.map(({ version }) => version).toSorted()).toEqual([1, 2, 3, 4, 5])
  expect(new Set(made.map(({ id }) => id)).size).toBe(1)
  expect(made.filter(({ lastRotatedAt }) => lastRotatedAt === null)).toHaveLength(1)
})

test('each version of a credential contains the secret of this version and the name of the credential', async () => {
  await asAgent({ data: { key: 'first' } })
  await asAgent({ data: { key: 'second', totp: 'JBSWY3DPEHPK3PXP' } })
  const { rows } = await pool.query('select row from credentials where name = $1', [name])
  const secretOf = async (version: number) =>
    openData(keyring, projectId, name, (await readVersion(pool, rows[0].row, version))!)
  expect(await secretOf(1)).toEqual({ key: 'first' })
  expect(await secretOf(2)).toMatchObject({ key: 'second' })
  const { rows: marked } = await pool.query(
    'select has_totp, metadata_bytes from credential_versions where credential_row = $1 order by version',
    [rows[0].row],
  )
  expect(marked).toEqual([
    { has_totp: false, metadata_bytes: 2 },
    { has_totp: true, metadata_bytes: 2 },
  ])
})

test('the deletion of a credential removes all its versions, changes no other project, and is recorded in the audit log', async () => {
  const other = await newProject(pool)
  await asAgent()
  await asAgent()
  await asAgent({ project: other })
  const remove = () => deleteCredential(pool, { actor: actorOf(projectId), name })
  expect([await remove(), await remove()]).toEqual([true, false])
  expect([await versionsOf(), await versionsOf(other)]).toEqual([undefined, [1]])
  expect((await audited()).slice(-2)).toEqual(['vault.delete ok', 'vault.delete not_found'])
  expect(await stored(asAgent())).toMatchObject({ version: 1, lastRotatedAt: null })
})

test('the audit log entry of a restored credential names the copied version, and contains no data of the credential', async () => {
  await asAgent()
  const target = { actor: actorOf(projectId), keyring, name, isOwner: true, version: 1 }
  expect(await restoreVersion(pool, target)).toMatchObject({ kind: 'ok' })
  const { rows } = await pool.query(
    'select action, detail from audit_log where subject = $1 order by row',
    [name],
  )
  expect(rows).toEqual([
    { action: 'vault.put', detail: null },
    { action: 'vault.restore', detail: 'version 1' },
  ])
})

test('a secret counts as withheld from agents if any of the given versions of the credential says that only the owner may reveal the secret', () => {
  const [agent, owner] = [{ reveal: 'agent' }, { reveal: 'owner' }] as const
  expect([isWithheld(agent), isWithheld(agent, agent), isWithheld()]).toEqual([false, false, false])
  expect([isWithheld(owner, agent), isWithheld(agent, owner)]).toEqual([true, true])
})

test('credential data count as changed if a value differs or the old data are unknown, but not if only the order of the data differs', () => {
  expect(isOtherData({ a: 1, b: [2] }, { b: [2], a: 1 })).toBe(false)
  expect(isOtherData({ a: 1 }, { a: 2 })).toBe(true)
  expect(isOtherData({ a: [1, 2] }, { a: [2, 1] })).toBe(true)
  expect(isOtherData(null, {})).toBe(true)
})

test('a credential version that does not exist or has expired is refused, and the error for an expired version states the expiry time', async () => {
  const read = async (expiresAt: Date | null) => {
    const { version } = await stored(asAgent({ expiresAt }))
    const { rows } = await pool.query('select row from credentials where name = $1', [name])
    return readVersion(pool, rows[0].row, version)
  }
  const past = new Date(Date.now() - 1_000)
  expect(refusal(null)).toEqual({ kind: 'not_found' })
  expect(refusal(await read(null))).toBeNull()
  expect(refusal(await read(new Date(Date.now() + 60_000)))).toBeNull()
  expect(refusal(await read(past))).toEqual({ kind: 'expired', expiresAt: past })
})
